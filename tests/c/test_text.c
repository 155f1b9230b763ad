/* Numbers are read bit for bit like strtod in the C locale, and other texts are refused. */
#include "program/text.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

static uint64_t state = 11;

static uint64_t bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double as_double(uint64_t from) {
    double value;
    memcpy(&value, &from, sizeof value);
    return value;
}

static void reads(const char *text) {
    double value = -7, right = strtod(text, NULL);
    int good = mpidata_number(text, &value);
    if (isfinite(right) && good && memcmp(&value, &right, sizeof value) == 0) return;
    if (!isfinite(right) && !good && value == -7) return;
    (void)fprintf(stderr, "%s: %d %.17g, not %.17g\n", text, good, value, right);
    exit(1);
}

static void refuses(const char *text) {
    double value = -7;
    if (!mpidata_number(text, &value) && value == -7) return;
    (void)fprintf(stderr, "taken for a number: '%s'\n", text);
    exit(1);
}

static void any_double(void) {
    char text[64];
    for (int i = 0; i < 5000; i++) {
        double value = as_double(i % 4 ? bits() : bits() & UINT64_C(0x800fffffffffffff)); /* or below DBL_MIN */
        if (!isfinite(value)) continue;
        (void)snprintf(text, sizeof text, "%.17g", value);
        reads(text);
        double again;
        CHECK(mpidata_number(text, &again) && memcmp(&again, &value, sizeof value) == 0);
        (void)snprintf(text, sizeof text, "%.*e", (int)(bits() % 25), value);
        reads(text);
        (void)snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(bits() >> bits() % 64),
                       (unsigned long long)bits(), (int)(bits() % 680) - 340);
        reads(text);
    }
}

/* Numbers halfway between two doubles, and just beside, with all their digits. */
static void half_way(void) {
    static char text[4096];
    for (int i = 0; i < 100; i++) {
        double value = as_double((i % 3 ? bits() : bits() >> 12) & INT64_MAX), next = nextafter(value, INFINITY);
        if (!isfinite(next)) continue;
        long double middle = ((long double)value + next) / 2;
        int length = snprintf(text, sizeof text - 2, "%.1100Le", middle);
        reads(text);
        char *exponent = strchr(text, 'e');
        CHECK(length > 1100 && exponent);
        exponent[-1] = '1'; /* far behind the digits that count */
        reads(text);
    }
}

static void edges(void) {
    static const char *const good[] = {
        "0", "-0", "0.0", ".5", "5.", "00.5", "+7", " 7", "\t7", "1e0", "1E+2", "1e-2", "60.0", "0.1", "-0.1", "0e999999999999", "1e23",
        "9007199254740993", "9007199254740991.5", "1e308", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
        "2e308", "1e400", "1e99999999999", "1e-99999999999", "4.9e-324", "2.5e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "1e-400", "2.2250738585072011e-308", "2.2250738585072014e-308", "-1e400",
        "100000000000000000000000000000000000000000000000000e-50", "0.00000000000000000000000000000000000000001e41"};
    static const char *const bad[] = {
        "", " ", "-", "+", ".", "-.", "e5", ".e5", "1e", "1e+", "1,5", "1.5,", "0,75", "1.000.000", "1 000", "1'000", "1_000", "1.5 ",
        "1.5x", "--1", "+-1", "1e5.0", "1.2.3", "inf", "-inf", "nan", "NaN", "infinity", "0x10", "0x1p3", "1d5", "1f",
        "\xd9\xa1", "\xc2\xa0" "1", "\xe2\x88\x92" "1", "1\n"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) reads(good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuses(bad[i]);
    static char text[100000];
    for (int digits = 700; digits < 90000; digits = digits * 5 / 4) { /* 1.000...0001, then 0.000...01e<digits>, then 1000...0e-<digits> */
        (void)snprintf(text, sizeof text, "1.%0*d", digits, 1);
        reads(text);
        (void)snprintf(text, sizeof text, "9007199254740993.%0*d", digits, 1);
        reads(text);
        (void)snprintf(text, sizeof text, "0.%0*de%d", digits, 123, digits);
        reads(text);
        (void)snprintf(text, sizeof text, "%-*de%d", digits, 1, 1 - digits);
        for (char *c = text; (c = strchr(c, ' '));) *c = '0';
        reads(text);
    }
}

int main(void) {
    edges();
    any_double();
    half_way();
    CHECK(mpidata_upper('i') == 'I' && mpidata_upper('_') == '_' && mpidata_upper('\xe9') == '\xe9' && mpidata_upper('z') == 'Z');
    double value, tenth = 0.1;
    (void)fesetround(FE_UPWARD);
    CHECK(mpidata_number("0.1", &value) && value == tenth);
    return 0;
}

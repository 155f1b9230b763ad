#include "program/text.h"

#include <stdint.h>
#include <string.h>

/* A number half way between two doubles has at most 768 digits: of further ones, it only matters whether any is not 0. Halving
 * the greatest double until it is less than 2^53 adds 971 digits. */
enum { KEPT = 800, ROOM = KEPT + 1000, HIGHEST = 310, LOWEST = -330, EXPONENT_MAX = 100000000, LEAST_POWER = -1074 };

typedef struct {
    int n, point; /* 0.d0d1d2... times 10 to the power of point; neither the first nor the last digit is 0 */
    unsigned char digits[ROOM];
} decimal;

static void halve(decimal *number) {
    int rest = 0;
    for (int i = 0; i < number->n; i++) {
        int twice = 10 * rest + number->digits[i];
        number->digits[i] = (unsigned char)(twice / 2);
        rest = twice % 2;
    }
    if (rest) number->digits[number->n++] = 5;
    if (number->digits[0]) return;
    memmove(number->digits, number->digits + 1, (size_t)--number->n);
    number->point--;
}

static void twice(decimal *number) {
    int carry = 0;
    for (int i = number->n; i-- > 0;) {
        int sum = 2 * number->digits[i] + carry;
        number->digits[i] = (unsigned char)(sum % 10);
        carry = sum / 10;
    }
    if (carry) {
        memmove(number->digits + 1, number->digits, (size_t)number->n++);
        number->digits[0] = 1;
        number->point++;
    }
    while (number->n && !number->digits[number->n - 1]) number->n--;
}

/* The digits before the point, at most 18. */
static uint64_t whole(const decimal *number) {
    uint64_t sum = 0;
    for (int i = 0; i < number->point; i++) sum = 10 * sum + (i < number->n ? number->digits[i] : 0u);
    return sum;
}

/* Halves go to the even neighbour. */
static int rounds_up(const decimal *number, uint64_t of) {
    if (number->point < 0 || number->point >= number->n) return 0;
    int next = number->digits[number->point];
    return next > 5 || (next == 5 && (number->n > number->point + 1 || of % 2));
}

/* The bits of the nearest double, as of IEEE 754. The number is brought to 2^52 or more, and less than 2^53, or to a whole
 * multiple of the least double. */
static uint64_t nearest(decimal *number) {
    int power = 0;
    for (; number->point > 18 || whole(number) >> 53; power++) halve(number);
    for (; power > LEAST_POWER && !(whole(number) >> 52); power--) twice(number);
    uint64_t fraction = whole(number);
    fraction += (uint64_t)rounds_up(number, fraction);
    return ((uint64_t)(power - LEAST_POWER) << 52) + fraction; /* the leading bit adds 1 to the exponent */
}

static int is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/* The digits and the point; returns what follows, or NULL if there is no digit. */
static const char *read_digits(const char *text, decimal *number) {
    int some = 0, fraction = 0, more = 0;
    number->n = number->point = 0;
    for (; is_digit(*text) || (*text == '.' && !fraction); text++) {
        if (*text == '.') {
            fraction = 1;
            continue;
        }
        some = 1;
        int counts = number->n || *text != '0';
        number->point += counts && !fraction ? 1 : !counts && fraction ? -1 : 0;
        if (number->n == KEPT) more |= *text != '0';
        else if (counts) number->digits[number->n++] = (unsigned char)(*text - '0');
    }
    while (number->n && !number->digits[number->n - 1]) number->n--;
    if (more) {
        memset(number->digits + number->n, 0, (size_t)(KEPT - number->n));
        number->digits[KEPT] = 1;
        number->n = KEPT + 1;
    }
    return some ? text : NULL;
}

/* What follows, or NULL if this is not an exponent. */
static const char *read_exponent(const char *text, int *exponent) {
    int minus = *text == '-';
    *exponent = 0;
    if (minus || *text == '+') text++;
    if (!is_digit(*text)) return NULL;
    for (; is_digit(*text); text++)
        if (*exponent < EXPONENT_MAX) *exponent = 10 * *exponent + (*text - '0');
    if (minus) *exponent = -*exponent;
    return text;
}

int mpidata_number(const char *text, double *value) {
    decimal number;
    int exponent = 0;
    text += strspn(text, " \t\n\v\f\r");
    int minus = *text == '-';
    if (minus || *text == '+') text++;
    text = read_digits(text, &number);
    if (text && (*text == 'e' || *text == 'E')) text = read_exponent(text + 1, &exponent);
    if (!text || *text) return 0;
    number.point += exponent;
    if (number.point < LOWEST) number.n = 0;
    if (!number.n) number.point = 0;
    if (number.point > HIGHEST) return 0;
    uint64_t bits = nearest(&number);
    if (bits >> 52 >= 0x7ff) return 0; /* beyond the greatest double */
    bits |= (uint64_t)minus << 63;
    memcpy(value, &bits, sizeof bits);
    return 1;
}

#define _GNU_SOURCE
#include "fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "containers/text_list.h"
#include "program/text.h"

int write_value(FILE *out, const char *value, const char *format)
{
    char whole[40];
    const size_t digits = strspn(format, "-+0123456789.");
    if (!*format) return fputs(value, out) >= 0;
    double number = 0.0;
    (void)mpidata_number(value, &number);
    if (strlen(format) != digits + 1 || digits > 15 || !strchr("eEfFgGd", format[digits])) return 0;
    const int is_whole = format[digits] == 'd';
    (void)snprintf(whole, sizeof whole, "%%%.*s%s%c", (int)digits, format, is_whole ? "ll" : "", format[digits]);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    /* Checked above: one conversion, of a double or a long long. */
    return (is_whole ? fprintf(out, whole, strtoll(value, NULL, 10)) : fprintf(out, whole, number)) >= 0;
#pragma GCC diagnostic pop
}

char *fill(const char *text, char **assignments, char **unknown)
{
    char *result = NULL;
    size_t size;
    FILE *stream = open_memstream(&result, &size);
    *unknown = NULL;
    while (stream && *text) {
        const size_t plain = strcspn(text, "{}");
        const char *brace = text + plain;
        (void)fwrite(text, 1, plain, stream);
        if (!*brace) break;
        text = brace + 1;
        if (*text == *brace) { /* a literal one is doubled */
            (void)fputc(*text++, stream);
            continue;
        }
        const size_t all = strcspn(text, "}"), name = strcspn(text, ":}");
        const char *value = mpidata_texts_value(assignments, text, name);
        char format[32] = "";
        if (name < all) (void)snprintf(format, sizeof format, "%.*s", (int)(all - name - 1), text + name + 1);
        if (!value || !write_value(stream, value, format)) {
            (void)fclose(stream);
            free(result);
            *unknown = strndup(text, all);
            return NULL;
        }
        text += all + (text[all] != 0);
    }
    if (!stream || fclose(stream)) return NULL;
    return result;
}

static int digit(char c)
{
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

char *unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        const int is_code = *from == '%' && digit(from[1]) >= 0 && digit(from[2]) >= 0;
        *to++ = (char)(is_code ? 16 * digit(from[1]) + digit(from[2]) : *from);
        if (is_code) from += 2;
    }
    *to = '\0';
    return text;
}

#define _GNU_SOURCE
#include "fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *value_of(const char *name, size_t length, char **assignments)
{
    for (; *assignments; assignments++)
        if (strncmp(*assignments, name, length) == 0 && (*assignments)[length] == '=') return *assignments + length + 1;
    return NULL;
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
        const size_t name = strcspn(text, "}");
        const char *value = value_of(text, name, assignments);
        if (!value) {
            (void)fclose(stream);
            free(result);
            *unknown = strndup(text, name);
            return NULL;
        }
        (void)fputs(value, stream);
        text += name + (text[name] != 0);
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

#define _POSIX_C_SOURCE 200809L
#include "containers/text_list.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

size_t mpidata_texts_count(char *const *texts) {
    size_t n = 0;
    while (texts && texts[n]) n++;
    return n;
}

int mpidata_texts_append_own(char ***texts, char *text) {
    size_t n = mpidata_texts_count(*texts);
    if (!text || !mpidata_array_resize(texts, (int64_t)n + 2, sizeof **texts)) {
        free(text);
        return 0;
    }
    (*texts)[n] = text;
    (*texts)[n + 1] = NULL;
    return 1;
}

int mpidata_texts_append(char ***texts, const char *text) { return mpidata_texts_append_own(texts, strdup(text)); }

int mpidata_texts_has(char *const *texts, const char *text) {
    for (; texts && *texts; texts++)
        if (!strcmp(*texts, text)) return 1;
    return 0;
}

const char *mpidata_texts_value(char *const *texts, const char *name, size_t length) {
    for (; texts && *texts; texts++)
        if (!strncmp(*texts, name, length) && (*texts)[length] == '=') return *texts + length + 1;
    return NULL;
}

void mpidata_texts_free(char **texts) {
    for (char **text = texts; text && *text; text++) free(*text);
    free(texts);
}

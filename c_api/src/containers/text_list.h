/* Lists of texts: arrays of pointers that end with NULL; NULL is an empty list. The list owns its texts. */
#ifndef MPIDATA_TEXT_LIST_H
#define MPIDATA_TEXT_LIST_H

#include <stddef.h>

/* Append a copy; or the text itself, which is from malloc, or NULL if memory was exhausted. Returns whether there was memory;
 * if not, the text is freed. */
int mpidata_texts_append(char ***texts, const char *text);
int mpidata_texts_append_own(char ***texts, char *text);

size_t mpidata_texts_count(char *const *texts);
int mpidata_texts_has(char *const *texts, const char *text);

/* The value of "name=value", for a name of `length` characters; NULL: there is none. */
const char *mpidata_texts_value(char *const *texts, const char *name, size_t length);

void mpidata_texts_free(char **texts);

#endif

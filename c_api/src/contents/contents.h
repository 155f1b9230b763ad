/* The published arrays of a trainer in one block of memory: this structure, a description of each array, and the values, each
 * array's aligned to 64 bytes. The trainer, the messages and the readers have the same layout. Needs no MPI. */
#ifndef MPIDATA_CONTENTS_H
#define MPIDATA_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "plan_text/plan_text.h"

#define MPIDATA_CONTENTS_MAGIC 0x4C425550u

typedef struct {
    uint32_t magic;
    uint32_t described; /* without values, as on trainers that do not publish */
    int64_t version;    /* from 1 */
    int64_t n;          /* arrays */
    int64_t bytes;      /* with the values */
} mpidata_contents;

typedef struct {
    char name[MPIDATA_NAME_MAX]; /* UTF-8, ends with 0 */
    int32_t dtype, ndim;
    int64_t shape[MPIDATA_PLAN_NDIM];
    int64_t at; /* offset of the values */
} mpidata_published_array;

/* Bytes of a description of n arrays. */
static inline size_t mpidata_description_bytes(int64_t n) {
    return sizeof(mpidata_contents) + (size_t)n * sizeof(mpidata_published_array);
}

static inline const mpidata_published_array *mpidata_contents_arrays(const mpidata_contents *contents) {
    return (const mpidata_published_array *)(contents + 1);
}

/* Bytes of an array's values. */
size_t mpidata_published_bytes(const mpidata_published_array *array);

/* Describe n arrays; shapes: MPIDATA_PLAN_NDIM numbers for each. *contents is to be freed; it has no version yet.
 * MPIDATA_ERR_ARGUMENT, _MEMORY. */
int mpidata_contents_describe(int64_t n, const char *const *names, const int32_t *dtypes, const int32_t *ndims,
                              const int64_t *shapes, mpidata_contents **contents);

/* Refuse (MPIDATA_ERR_ARGUMENT) contents that differ from those published first; the error names the difference. */
int mpidata_contents_alike(const mpidata_contents *first, const mpidata_contents *other);

/* Check received contents, 8-byte aligned; MPIDATA_ERR_WIRE: they must not be used. */
int mpidata_contents_check(const void *memory, size_t bytes);

/* The array of this name; NULL: there is none. */
const mpidata_published_array *mpidata_contents_find(const mpidata_contents *contents, const char *name);

/* "'a', 'b' and 3 more": for error messages. */
void mpidata_contents_names(const mpidata_contents *contents, char *text, size_t size);

#endif

/* Arrays that are lent by mpidata_iput. A trainer on the same host copies them out of this process page by page, which takes
 * twice as long from small pages as from huge ones: large arrays are therefore moved into huge pages, if Linux can. */
#ifndef MPIDATA_LENT_H
#define MPIDATA_LENT_H

#include <stddef.h>

enum { MPIDATA_LENT_KNOWN = 32 };

typedef struct {
    struct { const void *values; size_t bytes; } known[MPIDATA_LENT_KNOWN]; /* arrays that were moved, or cannot be */
    int next;
} mpidata_lent;

/* An array is lent: if it is large and new, request huge pages. Its address and its values do not change. */
void mpidata_lent_note(mpidata_lent *lent, const void *values, size_t bytes);

#endif

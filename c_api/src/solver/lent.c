#define _GNU_SOURCE
#include "solver/lent.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/arena.h"

#if defined __linux__ && !defined MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; older kernels refuse it */
#endif

static int is_known(const mpidata_lent *lent, const void *values, size_t bytes) {
    for (int i = 0; i < MPIDATA_LENT_KNOWN; i++)
        if (lent->known[i].values == values && lent->known[i].bytes == bytes) return 1;
    return 0;
}

/* For the huge pages within it. Only a hint: without it, access is slower. */
static void ask_for_huge_pages(const void *values, size_t bytes) {
    const uintptr_t begin = ((uintptr_t)values + MPIDATA_HUGE_PAGE - 1) / MPIDATA_HUGE_PAGE * MPIDATA_HUGE_PAGE;
    const uintptr_t end = ((uintptr_t)values + bytes) / MPIDATA_HUGE_PAGE * MPIDATA_HUGE_PAGE;
#if defined MADV_HUGEPAGE && defined MADV_COLLAPSE
    const int before = errno;
    if (begin < end && !madvise((void *)begin, end - begin, MADV_HUGEPAGE))
        (void)madvise((void *)begin, end - begin, MADV_COLLAPSE);
    errno = before;
#else
    (void)begin, (void)end;
#endif
}

void mpidata_lent_note(mpidata_lent *lent, const void *values, size_t bytes) {
    if (bytes < MPIDATA_LARGE || is_known(lent, values, bytes)) return;
    lent->known[lent->next].values = values;
    lent->known[lent->next].bytes = bytes;
    lent->next = (lent->next + 1) % MPIDATA_LENT_KNOWN;
    ask_for_huge_pages(values, bytes);
}

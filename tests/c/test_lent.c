/* Lent arrays keep their addresses and values when they move to huge pages. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "check.h"
#include "solver/lent.h"

static const size_t HUGE_PAGE = MPIDATA_HUGE_PAGE;

/* Kilobytes of huge pages in this process, or -1 if Linux does not report them. */
static long huge_kb(void) {
    char line[256];
    long all = -1, kb;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "AnonHugePages: %ld kB", &kb) == 1) all = kb;
    if (file) fclose(file);
    return all;
}

static int may_collapse(void) {
    char *pages = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    char *aligned = (char *)(((uintptr_t)pages + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    aligned[0] = 1;
    const int may = !madvise(aligned, HUGE_PAGE, 25); /* MADV_COLLAPSE */
    munmap(pages, 2 * HUGE_PAGE);
    return may;
}

static char *filled(size_t bytes) {
    char *values = malloc(bytes);
    CHECK(values);
    for (size_t i = 0; i < bytes; i++) values[i] = (char)(i * 7 + i / 4096);
    return values;
}

static int is_as_filled(const char *values, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (values[i] != (char)(i * 7 + i / 4096)) return 0;
    return 1;
}

int main(void) {
    const size_t large = (size_t)9 << 20, small = MPIDATA_LARGE - 1;
    const long may = may_collapse();
    char *values = filled(large), *other = filled(small);
    mpidata_lent lent = {0};
    const long before = huge_kb();
    mpidata_lent_note(&lent, other, small);
    CHECK(huge_kb() == before);
    mpidata_lent_note(&lent, values, large);
    CHECK(is_as_filled(values, large) && is_as_filled(other, small));
    if (may && before >= 0) CHECK(huge_kb() - before >= 6 << 10); /* of 9 MB, with at least 3 complete huge pages */
    for (int i = 0; i < 3 * MPIDATA_LENT_KNOWN; i++) mpidata_lent_note(&lent, values + i, large - (size_t)i); /* beyond the limit */
    mpidata_lent_note(&lent, (const void *)(uintptr_t)(HUGE_PAGE * 3), large); /* not memory: left alone */
    CHECK(is_as_filled(values, large));
    free(values);
    free(other);
    return 0;
}

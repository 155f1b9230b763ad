/* Batches of 32 random samples from a pool in memory, without transport, each time it is its turn, as in turns.py.
 * Arguments: folder, bytes of a sample, samples in the pool. Memory is in huge pages, as in mpidata. */
#include "gate.h"

#include <string.h>

enum { HUGE_PAGE = 2 << 20 };

static char *memory(size_t size) {
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    char *pages = aligned_alloc(HUGE_PAGE, size);
    if (!pages || madvise(pages, size, MADV_HUGEPAGE)) exit(1);
    memset(pages, 1, size);
    return pages;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const size_t bytes = strtoul(argv[2], NULL, 10), samples = strtoul(argv[3], NULL, 10);
    volatile int64_t *gate = gate_map(argv[1]);
    char *pool = memory(bytes * samples), *batch = memory(bytes * GATE_BATCH);
    uint64_t chance = 1;
    while (!gate[GATE_STOP]) {
        if (!gate_is_turn(gate)) {
            (void)usleep(500);
            continue;
        }
        const double start = gate_now();
        for (int64_t number = 0; number < gate[GATE_COUNT]; number++) {
            for (size_t i = 0; i < GATE_BATCH; i++) {
                chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                memcpy(batch + i * bytes, pool + (size_t)((chance >> 33) % samples) * bytes, bytes);
            }
            __asm__ volatile("" : : "r"(batch) : "memory"); /* makes the compiler treat the batch as used */
        }
        gate_turn_done(gate, gate_now() - start);
    }
    free(pool);
    free(batch);
    return 0;
}

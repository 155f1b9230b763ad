/* memcpy: batches of 32 gathered from existing memory. Arguments: folder, bytes of a sample, seconds. */
#include "gate.h"

#include <string.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    size_t bytes = strtoul(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL), start = 0.0, now;
    char *slots = (char *)gate_memory(GATE_BATCH * bytes), *batch = (char *)gate_memory(GATE_BATCH * bytes);
    int64_t batches = 0;
    do {
        if (batches == 0) start = gate_now();
        for (int64_t i = 0; i < GATE_BATCH; i++) {
            int64_t from = (i * 7 + batches) % GATE_BATCH; /* in no order, like received slots */
            slots[(size_t)from * bytes] = (char)batches;
            memcpy(batch + (size_t)i * bytes, slots + (size_t)from * bytes, bytes);
        }
        __asm__ volatile("" : : "r"(batch) : "memory"); /* makes the compiler treat the batch as used */
        batches++;
        now = gate_now();
    } while (now - start < seconds);
    gate_result(argv[1], batches * GATE_BATCH, now - start);
    free(slots);
    free(batch);
    return 0;
}

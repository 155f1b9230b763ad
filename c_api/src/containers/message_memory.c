#include "containers/message_memory.h"

#include <stdlib.h>
#include <string.h>

char *mpidata_message_memory_take(mpidata_message_memory *memory, size_t bytes) {
    if (bytes > memory->size) return malloc(bytes);
    char *spare = memory->spare;
    if (!spare) return mpidata_arena_take(&memory->arena, memory->size);
    memcpy(&memory->spare, spare, sizeof memory->spare);
    return spare;
}

void mpidata_message_memory_give_back(mpidata_message_memory *memory, char *message, size_t bytes) {
    if (bytes > memory->size) {
        free(message);
        return;
    }
    memcpy(message, &memory->spare, sizeof memory->spare);
    memory->spare = message;
}

void mpidata_message_memory_close(mpidata_message_memory *memory) {
    mpidata_arena_close(&memory->arena);
    memory->spare = NULL;
}

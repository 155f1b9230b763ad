/* Reusable memory for messages of pieces. The receiver (mpidata_incoming) owns it; not thread-safe. */
#ifndef MPIDATA_MESSAGE_MEMORY_H
#define MPIDATA_MESSAGE_MEMORY_H

#include "base/arena.h"

/* Zeros except for the size: empty. */
typedef struct {
    size_t size;         /* bytes of each message's memory; a longer one gets its own */
    mpidata_arena arena;
    char *spare;         /* free memory of this size; each piece starts with the address of the next */
} mpidata_message_memory;

char *mpidata_message_memory_take(mpidata_message_memory *memory, size_t bytes); /* NULL: there is none */
void mpidata_message_memory_give_back(mpidata_message_memory *memory, char *message, size_t bytes);

/* To be called when all has been given back. */
void mpidata_message_memory_close(mpidata_message_memory *memory);

#endif

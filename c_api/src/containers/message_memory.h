/* Memory for messages of pieces, which is used again. Its owner is who receives them (mpidata_incoming); not thread-safe. */
#ifndef MPIDATA_MESSAGE_MEMORY_H
#define MPIDATA_MESSAGE_MEMORY_H

#include "base/arena.h"

/* One of zeros but for the size is empty. */
typedef struct {
    size_t size;         /* bytes that each message has; a longer one has memory of its own */
    mpidata_arena arena;
    char *spare;         /* such memory that is free; each begins with the address of the next */
} mpidata_message_memory;

char *mpidata_message_memory_take(mpidata_message_memory *memory, size_t bytes); /* NULL: there is none */
void mpidata_message_memory_give_back(mpidata_message_memory *memory, char *message, size_t bytes);

/* When all has been given back. */
void mpidata_message_memory_close(mpidata_message_memory *memory);

#endif

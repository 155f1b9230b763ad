/* Matched messages that wait to be received: first in, first out. */
#ifndef MPIDATA_MESSAGE_LIST_H
#define MPIDATA_MESSAGE_LIST_H

#include <mpi.h>

typedef struct mpidata_matched {
    MPI_Message message;
    MPI_Status status;
    struct mpidata_matched *next;
} mpidata_matched;

typedef struct {
    mpidata_matched *first, *last;
} mpidata_message_list;

/* Returns whether there was memory. */
int mpidata_messages_append(mpidata_message_list *messages, MPI_Message message, const MPI_Status *status);

mpidata_matched *mpidata_messages_pop(mpidata_message_list *messages); /* to be freed; NULL: there is none */
void mpidata_messages_free(mpidata_message_list *messages);

#endif

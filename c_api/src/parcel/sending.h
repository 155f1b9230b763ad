/* A parcel to send, or being sent. Made by any thread, sent by one. */
#ifndef MPIDATA_SENDING_H
#define MPIDATA_SENDING_H

#include "parcel/parcel.h"

typedef struct mpidata_sending {
    struct mpidata_sending *next;
    int to;         /* trainer or loader */
    int64_t ticket; /* the caller's */
    const void *over; /* the caller's: the link that it is sent over */
    mpidata_pending pending;
    int64_t n_parts;
    int64_t *sizes;
    const char **parts;
    char *first, *copies;
    size_t first_bytes;
} mpidata_sending;

/* Prepare it: MPIDATA_ERR_MEMORY, _ARGUMENT. copies: the parts may be changed after this call; else not before its end. */
int mpidata_sending_new(const mpidata_parcel_head *head, const int64_t *sizes, const void *const *parts, int copies,
                        mpidata_sending **sending);
void mpidata_sending_free(mpidata_sending *sending);

/* Start to send it, if the receiver lives. It has ended when sending->pending.left is 0. */
int mpidata_sending_begin(mpidata_sending *sending, mpidata_transfers *transfers, int rank, int tag, MPI_Comm comm);

/* Those in flight, and those that wait: the oldest first. */
typedef struct {
    mpidata_sending *first, *last;
} mpidata_sending_list;

void mpidata_sendings_append(mpidata_sending_list *list, mpidata_sending *sending);
mpidata_sending *mpidata_sendings_pop(mpidata_sending_list *list); /* NULL: it is empty */

/* Move those that have ended to the end of the other list. */
void mpidata_sendings_move_ended(mpidata_sending_list *list, mpidata_sending_list *ended);
void mpidata_sendings_free(mpidata_sending_list *list);

#endif

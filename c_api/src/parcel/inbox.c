#include "parcel/inbox.h"

#include <stdlib.h>
#include <string.h>

#include "containers/message_list.h"

enum { AT_ONCE = 32 };

typedef struct source {
    int peer, lost;
    char *first; /* the first message of a parcel in flight, or any of a lost rank, to be dropped; NULL: none */
    size_t first_bytes;
    mpidata_pending pending; /* its receive */
    mpidata_parcel *parcel;  /* whose other messages must still be matched */
    mpidata_message_list waiting; /* messages that wait for the header before them */
    struct source *next; /* in the list of those with a first message in flight */
    int listed;
} source;

struct mpidata_inbox {
    MPI_Comm comm;
    int tag, n_ranks, from;
    source *sources; /* by rank */
    source *listed;
    mpidata_placing placing;
    mpidata_parcel_list landing; /* all messages have been matched */
};

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for parcels"); }

mpidata_inbox *mpidata_inbox_open(MPI_Comm comm, int tag, const int *peers, int n_ranks) {
    mpidata_inbox *inbox = calloc(1, sizeof *inbox);
    if (inbox) inbox->sources = calloc((size_t)n_ranks, sizeof *inbox->sources);
    if (!inbox || !inbox->sources) {
        free(inbox);
        return NULL;
    }
    inbox->comm = comm;
    inbox->tag = tag;
    inbox->from = MPI_ANY_SOURCE;
    inbox->n_ranks = n_ranks;
    for (int rank = 0; rank < n_ranks; rank++) inbox->sources[rank].peer = peers[rank];
    return inbox;
}

void mpidata_inbox_listen_to(mpidata_inbox *inbox, int rank) { inbox->from = rank; }

void mpidata_inbox_place(mpidata_inbox *inbox, mpidata_placing placing) { inbox->placing = placing; }

void mpidata_inbox_close(mpidata_inbox *inbox) {
    if (!inbox) return;
    for (int rank = 0; rank < inbox->n_ranks; rank++) {
        free(inbox->sources[rank].first);
        mpidata_parcel_free(inbox->sources[rank].parcel);
        mpidata_messages_free(&inbox->sources[rank].waiting);
    }
    mpidata_parcels_free(&inbox->landing);
    free(inbox->sources);
    free(inbox);
}

static int receive_first(mpidata_inbox *inbox, mpidata_transfers *transfers, source *from, MPI_Message *message, int bytes) {
    if (!(from->first = malloc(bytes ? (size_t)bytes : 1))) return no_memory();
    from->first_bytes = (size_t)bytes;
    from->pending = (mpidata_pending){0};
    if (!from->listed) {
        from->listed = 1;
        from->next = inbox->listed;
        inbox->listed = from;
    }
    return mpidata_transfers_receive(transfers, from->first, bytes, message, &from->pending);
}

static void land_if_matched(mpidata_inbox *inbox, source *from) {
    if (!from->parcel || mpidata_parcel_has_rest(&from->parcel->rest)) return;
    mpidata_parcels_append(&inbox->landing, from->parcel);
    from->parcel = NULL;
}

static int receive_rest(mpidata_inbox *inbox, mpidata_transfers *transfers, source *from, MPI_Message *message, int come) {
    mpidata_parcel *parcel = from->parcel;
    int64_t part, at;
    int bytes;
    mpidata_parcel_next(&parcel->rest, &part, &at, &bytes);
    if (bytes != come)
        return mpidata_error(MPIDATA_ERR_WIRE, "Part %lld of a parcel continues with %d bytes instead of %d", (long long)part,
                             come, bytes);
    char *to = mpidata_parcel_part(parcel, part) + at;
    land_if_matched(inbox, from);
    return mpidata_transfers_receive(transfers, to, bytes, message, &parcel->pending);
}

static int receive(mpidata_inbox *inbox, mpidata_transfers *transfers, source *from, MPI_Message *message,
                   const MPI_Status *status) {
    int bytes = 0;
    MPIDATA_TRY_MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
    return from->parcel ? receive_rest(inbox, transfers, from, message, bytes)
                        : receive_first(inbox, transfers, from, message, bytes);
}

/* The first message has come: make its parcel, and start with the messages that wait behind it. */
static int advance(mpidata_inbox *inbox, mpidata_transfers *transfers, source *from) {
    for (;;) {
        if (from->first && from->pending.left) return MPIDATA_SUCCESS;
        if (from->first) {
            char *first = from->first;
            from->first = NULL;
            const mpidata_placing *placing = inbox->placing.choose ? &inbox->placing : NULL;
            int status = from->lost || from->pending.failed
                             ? MPIDATA_SUCCESS
                             : mpidata_parcel_open(first, from->first_bytes, from->peer, placing, &from->parcel);
            free(first);
            MPIDATA_TRY(status);
            land_if_matched(inbox, from);
        }
        mpidata_matched *matched = mpidata_messages_pop(&from->waiting);
        if (!matched) return MPIDATA_SUCCESS;
        int status = receive(inbox, transfers, from, &matched->message, &matched->status);
        free(matched);
        MPIDATA_TRY(status);
    }
}

static int take_message(mpidata_inbox *inbox, mpidata_transfers *transfers, source *from, MPI_Message *message,
                        const MPI_Status *status) {
    if (!from->first && !from->waiting.first) return receive(inbox, transfers, from, message, status);
    if (!mpidata_messages_append(&from->waiting, *message, status)) return no_memory();
    return advance(inbox, transfers, from);
}

static int take_messages(mpidata_inbox *inbox, mpidata_transfers *transfers, int *rank, int *did) {
    for (int n = 0; n < AT_ONCE; n++) {
        int here = 0;
        MPI_Message message;
        MPI_Status status;
        MPIDATA_TRY_MPI(MPI_Improbe(inbox->from, inbox->tag, inbox->comm, &here, &message, &status));
        if (!here) return MPIDATA_SUCCESS;
        *did = 1;
        *rank = status.MPI_SOURCE;
        source *from = &inbox->sources[*rank];
        if (from->peer < 0) return mpidata_error(MPIDATA_ERR_WIRE, "A parcel came from a rank that sends none");
        MPIDATA_TRY(take_message(inbox, transfers, from, &message, &status));
    }
    return MPIDATA_SUCCESS;
}

/* A whole parcel is handed over first, because somebody may wait for it. */
static int is_any_whole(const mpidata_inbox *inbox) {
    for (const mpidata_parcel *parcel = inbox->landing.first; parcel; parcel = parcel->next)
        if (!parcel->pending.left) return 1;
    return 0;
}

int mpidata_inbox_take(mpidata_inbox *inbox, mpidata_transfers *transfers, int *from, int *did) {
    for (source **at = &inbox->listed; *at;) {
        source *one = *at;
        *from = (int)(one - inbox->sources);
        MPIDATA_TRY(advance(inbox, transfers, one));
        if (one->first) {
            at = &one->next;
        } else {
            *at = one->next;
            one->listed = 0;
        }
    }
    return is_any_whole(inbox) ? MPIDATA_SUCCESS : take_messages(inbox, transfers, from, did);
}

void mpidata_inbox_whole(mpidata_inbox *inbox, mpidata_parcel_list *whole) {
    mpidata_parcel_list kept = {0};
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(&inbox->landing));) {
        if (parcel->pending.left)
            mpidata_parcels_append(&kept, parcel);
        else if (parcel->dropped || parcel->pending.failed)
            mpidata_parcel_free(parcel);
        else
            mpidata_parcels_append(whole, parcel);
    }
    inbox->landing = kept;
}

int mpidata_inbox_holds(const mpidata_inbox *inbox, int rank, uint64_t number) {
    const source *from = &inbox->sources[rank];
    if (from->parcel && from->parcel->head.number == number) return 1;
    for (const mpidata_parcel *parcel = inbox->landing.first; parcel; parcel = parcel->next)
        if (parcel->peer == from->peer && parcel->head.number == number) return 1;
    return 0;
}

void mpidata_inbox_lose(mpidata_inbox *inbox, int rank) {
    source *from = &inbox->sources[rank];
    from->lost = 1;
    if (from->parcel) mpidata_parcels_append(&inbox->landing, from->parcel);
    from->parcel = NULL;
    for (mpidata_parcel *parcel = inbox->landing.first; parcel; parcel = parcel->next)
        if (parcel->peer == from->peer) parcel->dropped = 1;
}

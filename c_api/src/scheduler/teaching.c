#include "scheduler/teaching.h"

#include <stdlib.h>

#include "parcel/inbox.h"
#include "parcel/sending.h"
#include "parcel/parcel_view.h"
#include "wire/messages.h"

static struct {
    const mpidata_link *link; /* NULL: nobody is asked */
    int learner, rank;
    mpidata_inbox *inbox;
    mpidata_transfers transfers;
    mpidata_sending_list sending;
    mpidata_parcel_list answers;
} teaching;

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the learner."); }

static int forgive_death(int status) { return status == MPIDATA_ERR_DIED ? MPIDATA_SUCCESS : status; }

int mpidata_teaching_begin(const mpidata_link *link, int learner, int rank) {
    int *peers = malloc((size_t)link->n_ranks * sizeof *peers);
    if (!peers) return no_memory();
    mpidata_teaching_close();
    for (int r = 0; r < link->n_ranks; r++) peers[r] = r == rank ? learner : -1;
    teaching.inbox = mpidata_inbox_open(link->comm, MPIDATA_TAG_PARCEL, peers, link->n_ranks);
    free(peers);
    if (!teaching.inbox) return no_memory();
    mpidata_inbox_listen_to(teaching.inbox, rank);
    teaching.link = link;
    teaching.learner = learner;
    teaching.rank = rank;
    return MPIDATA_SUCCESS;
}

static void free_sent(void) {
    mpidata_sending_list ended = {0};
    mpidata_sendings_move_ended(&teaching.sending, &ended);
    mpidata_sendings_free(&ended);
}

/* The check for events, which uses the same communicator, reports a death. */
int mpidata_teaching_round(int *did) {
    int from = 0, moved = 0;
    const mpidata_parcel *before = teaching.answers.first ? teaching.answers.last : NULL; /* of an empty list, last was freed */
    if (!teaching.link) return MPIDATA_SUCCESS;
    MPIDATA_TRY(forgive_death(mpidata_transfers_test(&teaching.transfers, &moved)));
    MPIDATA_TRY(forgive_death(mpidata_inbox_take(teaching.inbox, &teaching.transfers, &from, &moved)));
    mpidata_inbox_whole(teaching.inbox, &teaching.answers);
    free_sent();
    *did |= teaching.answers.first && teaching.answers.last != before;
    return MPIDATA_SUCCESS;
}

void mpidata_teaching_end(int learner) {
    if (!teaching.link || learner != teaching.learner) return;
    mpidata_inbox_lose(teaching.inbox, teaching.rank);
    for (mpidata_sending *sent = teaching.sending.first; sent; sent = sent->next)
        mpidata_transfers_forget(&teaching.transfers, &sent->pending);
    mpidata_teaching_close();
}

/* Memory that MPI still reads or writes stays until the process ends. */
void mpidata_teaching_close(void) {
    if (!teaching.link) return;
    free_sent();
    mpidata_parcels_free(&teaching.answers);
    if (!teaching.transfers.n) {
        mpidata_inbox_close(teaching.inbox);
        mpidata_transfers_close(&teaching.transfers);
    }
    teaching.link = NULL;
}

int mpidata_scheduler_teach(uint64_t number, int64_t n_parts, const void *const *parts, const int64_t *sizes) {
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .number = number, .n_parts = n_parts};
    mpidata_sending *sending;
    if (!teaching.link || teaching.link->dead[teaching.rank]) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_sending_new(&head, sizes, parts, 0, &sending));
    mpidata_sendings_append(&teaching.sending, sending);
    return forgive_death(mpidata_sending_begin(sending, &teaching.transfers, teaching.rank, MPIDATA_TAG_REQUEST,
                                               teaching.link->comm));
}

int mpidata_scheduler_learnt(mpidata_taken *answer) {
    mpidata_parcel *parcel = mpidata_parcels_pop(&teaching.answers);
    if (!parcel) return MPIDATA_ERR_AGAIN;
    *answer = mpidata_taken_of(parcel);
    return MPIDATA_SUCCESS;
}

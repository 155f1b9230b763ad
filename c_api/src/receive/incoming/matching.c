#include "receive/incoming/matching.h"

#include <stdlib.h>

#include "base/wait.h"
#include "containers/array.h"
#include "receive/incoming/blocks.h"
#include "receive/incoming/deaths.h"
#include "receive/incoming/mapped.h"
#include "receive/incoming/pieces.h"
#include "receive/replay.h"
#include "stream/budget.h"

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory in the trainer's receive thread."); }

static int reserve_pending(mpidata_incoming *in) {
    return mpidata_array_reserve(&in->pending, &in->pending_allocated, in->n_pending + 1, MPIDATA_PENDING_MAX, sizeof *in->pending)
               ? MPIDATA_SUCCESS
               : no_memory();
}

static int may_begin_pieces(const mpidata_incoming *in) {
    return in->n_pending < MPIDATA_PENDING_MAX || mpidata_lasts_long(in->pending[in->n_pending - MPIDATA_PENDING_MAX]->since);
}

/* Room was reserved. */
static void add_pending(mpidata_incoming *in, mpidata_source *source) {
    for (int i = 0; i < in->n_pending; i++)
        if (in->pending[i] == source) return;
    source->since = mpidata_now();
    in->pending[in->n_pending++] = source;
}

static void end_message(mpidata_incoming *in, mpidata_source *source) {
    mpidata_message_memory_give_back(&in->memory, source->message, source->bytes);
    source->message = NULL;
}

static int take_message(mpidata_incoming *in, mpidata_source *source) {
    int status;
    if (!mpidata_is_map(source->message, source->bytes))
        status = mpidata_take_pieces(in, source, source->message, source->bytes);
    else if ((status = mpidata_take_map(source)))
        status = mpidata_name_sender(in, source, status);
    end_message(in, source);
    return status;
}

/* A message with the header of one large piece, with small pieces, or with a map. */
static int receive_pieces(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    int bytes = 0, done = 0;
    MPIDATA_TRY_MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
    in->simulation = in->step = -1;
    const mpidata_plan *plan = &in->trainer->job.plan;
    int64_t moments = (int64_t)MPIDATA_BLOCKS_MAX * plan->n_moments;
    size_t header = mpidata_piece_header_bytes(plan->n_parameters, MPIDATA_BLOCKS_MAX, moments);
    if (bytes <= 0 || ((size_t)bytes > header + MPIDATA_BUNDLE_MAX && (size_t)bytes > mpidata_map_bytes_max(plan)))
        return mpidata_error(MPIDATA_ERR_WIRE, "A message of %d bytes has no pieces", bytes);
    char *memory = source->message = mpidata_message_memory_take(&in->memory, (size_t)bytes);
    if (!memory) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory: %d bytes for a message", bytes);
    source->bytes = (size_t)bytes;
    int result = mpidata_check_mpi(MPI_Imrecv(memory, bytes, MPI_BYTE, message, &source->request), "MPI_Imrecv");
    if (!result) result = mpidata_check_mpi(MPI_Test(&source->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (result) {
        end_message(in, source);
        return result;
    }
    if (done) return take_message(in, source);
    add_pending(in, source);
    return MPIDATA_SUCCESS;
}

static int start(mpidata_incoming *in, mpidata_source *source, MPI_Message *message, const MPI_Status *status) {
    int result = source->next < source->n_blocks ? mpidata_receive_block(in, source, message, status)
                                                 : receive_pieces(in, source, message, status);
    if (result == MPIDATA_ERR_WIRE || result == MPIDATA_ERR_MEMORY) return mpidata_name_sender(in, source, result);
    return mpidata_forgive_death(result);
}

static int enqueue(mpidata_incoming *in, mpidata_source *source, MPI_Message message, const MPI_Status *status) {
    if (!mpidata_messages_append(&source->waiting, message, status)) return no_memory();
    add_pending(in, source);
    return MPIDATA_SUCCESS;
}

static int start_waiting(mpidata_incoming *in, mpidata_source *source) {
    while (source->waiting.first && !source->message && mpidata_receives_may_begin(&in->receives)) {
        mpidata_matched *matched = mpidata_messages_pop(&source->waiting);
        int status = start(in, source, &matched->message, &matched->status);
        free(matched);
        MPIDATA_TRY(status);
    }
    return MPIDATA_SUCCESS;
}

static int advance_source(mpidata_incoming *in, mpidata_source *source, int *did) {
    if (source->message) {
        int done = 0, status = mpidata_check_mpi(MPI_Test(&source->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (!status && !done) return MPIDATA_SUCCESS;
        *did = 1;
        if (!status)
            status = take_message(in, source);
        else
            end_message(in, source);
        MPIDATA_TRY(mpidata_forgive_death(status));
    }
    return start_waiting(in, source);
}

int mpidata_advance_pending(mpidata_incoming *in, int *did) {
    int kept = 0, status = MPIDATA_SUCCESS;
    for (int i = 0; i < in->n_pending; i++) {
        mpidata_source *source = in->pending[i];
        if (!status) status = advance_source(in, source, did);
        if (source->message || source->waiting.first) in->pending[kept++] = source;
    }
    in->n_pending = kept;
    return status;
}

static int intake_open(mpidata_incoming *in) {
    mpidata_trainer *trainer = in->trainer;
    mpidata_lock_take(&trainer->lock);
    int room = !trainer->n_arrived && !mpidata_buffer_full(&trainer->buffer) && !mpidata_budget_behind_locked(trainer);
    room = room || trainer->journal.replayed;
    int open = mpidata_record_lets_in_locked(&trainer->record, room) || mpidata_stopping(&trainer->phase);
    mpidata_lock_give(&trainer->lock);
    return open;
}

static int take_matched(mpidata_incoming *in, mpidata_inlet *inlet, int validation, MPI_Message *message, const MPI_Status *status) {
    MPIDATA_TRY(reserve_pending(in));
    mpidata_source *source = &inlet->sources[MPIDATA_STREAMS * status->MPI_SOURCE + validation];
    if (source->message || source->waiting.first) return enqueue(in, source, *message, status);
    return start(in, source, message, status);
}

/* Take messages of groups whose simulations are cancelled, so that they continue even without room. Messages of a group's
 * previous simulation come first, and wait for room here: at most as many as may be in flight. */
static int match_drained(mpidata_incoming *in, mpidata_inlet *inlet, int *did) {
    for (int rank = 0; rank < inlet->link.n_ranks; rank++) {
        int here = inlet->sources[MPIDATA_STREAMS * rank].drained;
        while (here && mpidata_receives_may_begin(&in->receives) && may_begin_pieces(in)) {
            MPI_Message message;
            MPI_Status status;
            int found = mpidata_check_mpi(MPI_Improbe(rank, MPIDATA_TAG_SAMPLE, inlet->link.comm, &here, &message, &status), "MPI_Improbe");
            if (found == MPIDATA_ERR_DIED) return mpidata_incoming_note_deaths(inlet);
            MPIDATA_TRY(found);
            if (!here) break;
            *did = 1;
            MPIDATA_TRY(take_matched(in, inlet, 0, &message, &status));
        }
    }
    return MPIDATA_SUCCESS;
}

int mpidata_match_messages(mpidata_incoming *in, mpidata_inlet *inlet, int validation, int *did) {
    int tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    for (int n = 0; n < MPIDATA_RECEIVES_MAX; n++) {
        int here = 0;
        MPI_Message message;
        MPI_Status status;
        if (!mpidata_receives_may_begin(&in->receives) || !may_begin_pieces(in)) break;
        if (n % 8 == 0 && !validation && !intake_open(in)) return in->drains ? match_drained(in, inlet, did) : MPIDATA_SUCCESS;
        int found = !validation && in->trainer->journal.replayed
            ? mpidata_replay_probe(in->trainer, inlet, &here, &message, &status)
            : mpidata_check_mpi(MPI_Improbe(MPI_ANY_SOURCE, tag, inlet->link.comm, &here, &message, &status), "MPI_Improbe");
        if (found == MPIDATA_ERR_DIED) return mpidata_incoming_note_deaths(inlet);
        MPIDATA_TRY(found);
        if (!here) break;
        *did = 1;
        MPIDATA_TRY(take_matched(in, inlet, validation, &message, &status));
    }
    return MPIDATA_SUCCESS;
}

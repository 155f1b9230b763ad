#include "receive/answering/publishing.h"

#include <stdlib.h>

#include "base/wait.h"
#include "containers/array.h"

/* Until somebody has asked, each check costs a call of MPI that finds nothing. */
static const double LOOK_EVERY_S = 1e-3;

static int no_memory(void) {
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for requests for published arrays.");
}

/* -- answers ------------------------------------------------------------------------------------------------------- */

static void release(mpidata_publishing *publishing, int64_t edition) {
    if (edition < 0) return;
    mpidata_lock_take(&publishing->trainer->lock);
    mpidata_versions_release_locked(&publishing->trainer->versions, edition);
    mpidata_lock_give(&publishing->trainer->lock);
}

static void give_back_sent(mpidata_publishing *publishing) {
    mpidata_sending_list ended = {0};
    mpidata_sendings_move_ended(&publishing->sending, &ended);
    for (mpidata_sending *sent; (sent = mpidata_sendings_pop(&ended));) {
        release(publishing, sent->ticket);
        mpidata_sending_free(sent);
    }
}

/* contents NULL: the asker has the newest version. */
static int answer(mpidata_publishing *publishing, const mpidata_asker *asker, int64_t edition,
                  const mpidata_contents *contents) {
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .n_parts = 1,
                                      .kind = contents ? MPIDATA_PUBLISHED_NEWER : MPIDATA_PUBLISHED_SAME,
                                      .number = (uint64_t)(contents ? contents->version : asker->version)};
    const int64_t bytes = contents ? contents->bytes : 0;
    const void *part = contents;
    mpidata_sending *sending;
    int status = mpidata_sending_new(&head, &bytes, &part, 0, &sending);
    if (status) {
        release(publishing, edition);
        return status;
    }
    sending->ticket = edition;
    sending->to = asker->rank;
    sending->over = asker->inlet;
    mpidata_sendings_append(&publishing->sending, sending);
    return mpidata_sending_begin(sending, &publishing->transfers, asker->rank, MPIDATA_TAG_PUBLISHED,
                                 asker->inlet->link.comm);
}

/* Answer with a newer version; *newer: whether there was one. */
static int answer_newer(mpidata_publishing *publishing, const mpidata_asker *asker, int *newer) {
    mpidata_trainer *trainer = publishing->trainer;
    mpidata_lock_take(&trainer->lock);
    const int64_t edition = mpidata_versions_read_locked(&trainer->versions, asker->version);
    const mpidata_contents *contents = edition < 0 ? NULL : trainer->versions.editions[edition].contents;
    mpidata_lock_give(&trainer->lock);
    *newer = edition >= 0;
    return contents ? answer(publishing, asker, edition, contents) : MPIDATA_SUCCESS;
}

static int answer_waiting(mpidata_publishing *publishing, int *did) {
    int64_t kept = 0;
    int status = MPIDATA_SUCCESS;
    for (int64_t i = 0; i < publishing->n_waiting; i++) {
        int newer = 0;
        const mpidata_asker asker = publishing->waiting[i];
        if (!status) status = answer_newer(publishing, &asker, &newer);
        if (newer)
            *did = 1;
        else
            publishing->waiting[kept++] = asker;
    }
    publishing->n_waiting = kept;
    return status;
}

/* -- questions ----------------------------------------------------------------------------------------------------- */

static int begin_to_wait(mpidata_publishing *publishing, const mpidata_asker *asker) {
    if (!mpidata_array_reserve(&publishing->waiting, &publishing->allocated, publishing->n_waiting + 1, 16,
                               sizeof *publishing->waiting))
        return no_memory();
    publishing->waiting[publishing->n_waiting++] = *asker;
    return MPIDATA_SUCCESS;
}

/* A new question of a rank replaces its earlier one. */
static void waits_no_more(mpidata_publishing *publishing, const mpidata_inlet *inlet, int rank) {
    int64_t kept = 0;
    for (int64_t i = 0; i < publishing->n_waiting; i++) {
        const mpidata_asker asker = publishing->waiting[i];
        if (asker.inlet != inlet || asker.rank != rank) publishing->waiting[kept++] = asker;
    }
    publishing->n_waiting = kept;
}

static int take_question(mpidata_publishing *publishing, const mpidata_inlet *inlet, MPI_Message *message,
                         const MPI_Status *status) {
    const mpidata_plan *plan = &publishing->trainer->job.plan;
    char who[128];
    int bytes = 0, number, newer = 0;
    mpidata_ask ask = {0};
    MPIDATA_TRY_MPI(MPI_Get_count(status, MPI_BYTE, &bytes));
    MPIDATA_TRY_MPI(MPI_Mrecv(&ask, (int)sizeof ask, MPI_BYTE, message, MPI_STATUS_IGNORE));
    const int role = mpidata_link_role(&inlet->link, plan, status->MPI_SOURCE, &number);
    const int may = role == MPIDATA_ROLE_SOLVER || role == MPIDATA_ROLE_INFERENCE || role == MPIDATA_ROLE_SCHEDULER;
    if (!may || !mpidata_ask_fits(&ask, bytes)) {
        mpidata_link_who(&inlet->link, plan, status->MPI_SOURCE, who, sizeof who);
        return mpidata_error(MPIDATA_ERR_WIRE,
                             "%s requested published arrays with an invalid message of %d bytes. Use one build of "
                                               "libmpidata for the whole job.",
                             who, bytes);
    }
    const mpidata_asker asker = {.inlet = inlet, .rank = status->MPI_SOURCE, .version = ask.version};
    waits_no_more(publishing, inlet, asker.rank);
    MPIDATA_TRY(answer_newer(publishing, &asker, &newer));
    if (newer) return MPIDATA_SUCCESS;
    return ask.waits ? begin_to_wait(publishing, &asker) : answer(publishing, &asker, -1, NULL);
}

static int take_questions(mpidata_publishing *publishing, mpidata_inlet *inlet, int *did) {
    for (;;) {
        int here = 0;
        MPI_Message message;
        MPI_Status from;
        int status = mpidata_check_mpi(MPI_Improbe(MPI_ANY_SOURCE, MPIDATA_TAG_ASK, inlet->link.comm, &here, &message,
                                                   &from),
                                       "MPI_Improbe");
        if (status == MPIDATA_ERR_DIED) return mpidata_incoming_note_deaths(inlet);
        MPIDATA_TRY(status);
        if (!here) return MPIDATA_SUCCESS;
        *did = publishing->used = 1;
        MPIDATA_TRY(mpidata_forgive_death(take_question(publishing, inlet, &message, &from)));
    }
}

int mpidata_publishing_round(mpidata_publishing *publishing, int *did) {
    const double now = mpidata_now();
    if (!publishing->used && now < publishing->next_look) return MPIDATA_SUCCESS;
    publishing->next_look = now + LOOK_EVERY_S;
    MPIDATA_TRY(mpidata_transfers_test(&publishing->transfers, did));
    give_back_sent(publishing);
    for (int i = 0; i < publishing->in->n_inlets; i++) {
        mpidata_inlet *inlet = publishing->in->inlets[i];
        /* in the world the scheduler may also ask */
        const int asks = inlet->link.n_groups || inlet->link.n_inference || !inlet->link.trainers;
        if (asks && !inlet->lost) MPIDATA_TRY(take_questions(publishing, inlet, did));
    }
    if (publishing->n_waiting) MPIDATA_TRY(answer_waiting(publishing, did));
    publishing->in->answers_under_way = publishing->transfers.n;
    return MPIDATA_SUCCESS;
}

void mpidata_publishing_forget(mpidata_publishing *publishing, int role, int number) {
    const mpidata_plan *plan = &publishing->trainer->job.plan;
    const mpidata_inlet *inlet = mpidata_inlet_of(publishing->in, role, number);
    const int leader = inlet ? mpidata_link_leader(&inlet->link, plan, role, number) : -1;
    if (leader >= 0) waits_no_more(publishing, inlet, leader);
    for (mpidata_sending *sending = publishing->sending.first; sending && leader >= 0; sending = sending->next)
        if (sending->over == inlet && sending->to == leader)
            mpidata_transfers_forget(&publishing->transfers, &sending->pending);
}

int mpidata_publishing_close(mpidata_publishing *publishing) {
    if (publishing->transfers.n) return 1;
    mpidata_sendings_free(&publishing->sending);
    mpidata_transfers_close(&publishing->transfers);
    free(publishing->waiting);
    return 0;
}

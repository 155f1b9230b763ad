#include "solver/asking/infer_by_mpi.h"

#include <stddef.h>

#include "asked/questions.h"
#include "base/wait.h"

/* Interval at which a waiting rank checks for messages of the scheduler, and progresses its samples. */
static const double OTHERS_EVERY_S = 5e-5;
/* How long a rank still waits for an answer after it has learned that it must leave. */
static const double PATIENT_S = 1.0;

static mpidata_questions *questions; /* NULL: nothing was asked yet */
static double told_at;               /* when the order to leave was seen, s; 0: not yet */
static int was_answered;             /* whether any question was: then there are weights */
static mpidata_yields yields;        /* while it waits */

void mpidata_infer_close(void) {
    mpidata_questions_close(questions);
    questions = NULL;
    told_at = 0.0;
    was_answered = 0;
}

int mpidata_infer_ask(mpidata_sender *sender, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                      int64_t *version, int64_t *question) {
    if (!questions && !(questions = mpidata_questions_open(sender->job, MPIDATA_QUESTIONS_MAX)))
        return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for questions.");
    return mpidata_questions_begin(questions, in, n_in, out, n_out, version, question);
}

/* A rank that must leave does not wait for an answer that nobody gives, for example if no weights were published: then no rank
 * of the group gets one, and those that ask together all give up in the same call. In a group of several, a rank that was
 * answered before continues to wait, because it will be answered again: else a slow function would separate the ranks that it
 * answers from the others. The ranks that do not ask learn of it in the next agreement (mpi_transport.c). */
static int gives_up(const mpidata_job *job, int64_t question) {
    if (!job->told_to_stop) return 0;
    if (told_at <= 0) told_at = mpidata_now();
    if (mpidata_questions_has_answerer(questions)) {
        if (mpidata_now() - told_at < PATIENT_S) return 0;
        if (job->plan.ranks_per_group > 1 && was_answered) return 0;
    }
    return mpidata_questions_give_up(questions, question);
}

static int look_at_others(mpidata_sender *sender, int64_t question, double since) {
    MPIDATA_TRY(mpidata_sender_wait(sender));
    mpidata_job_waits(sender->job, since);
    return gives_up(sender->job, question) ? MPIDATA_END : MPIDATA_SUCCESS;
}

static int wait_for(mpidata_sender *sender, int64_t question, double since) {
    mpidata_backoff backoff = {0};
    double looked = since;
    for (;;) {
        int did = 0;
        MPIDATA_TRY(mpidata_questions_round(questions, &did));
        if (mpidata_questions_ended(questions, question)) return MPIDATA_SUCCESS;
        const double now = mpidata_now();
        if (now - looked > OTHERS_EVERY_S) {
            looked = now;
            MPIDATA_TRY(look_at_others(sender, question, since));
        }
        if (did)
            backoff = (mpidata_backoff){0};
        else if (!mpidata_yield_between(&yields, now - since))
            mpidata_backoff_pause(&backoff);
    }
}

int mpidata_infer_answer(mpidata_sender *sender, int64_t question) {
    if (questions && mpidata_questions_settled(questions, question)) return MPIDATA_SUCCESS;
    if (!questions || !mpidata_questions_knows(questions, question)) return MPIDATA_ERR_ARGUMENT;
    const double since = mpidata_now();
    const int status = wait_for(sender, question, since);
    if (!status) was_answered = 1;
    yields.last_s = mpidata_now() - since;
    sender->waited += yields.last_s;
    return status;
}

int mpidata_infer_settle(mpidata_sender *sender) {
    for (int64_t question; questions && (question = mpidata_questions_any(questions));) {
        const int status = mpidata_infer_answer(sender, question);
        if (status && status != MPIDATA_END) return status;
        if (status && mpidata_questions_knows(questions, question)) break;
    }
    if (questions) mpidata_questions_settle(questions);
    return MPIDATA_SUCCESS;
}

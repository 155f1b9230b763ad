#include "asked/questions.h"

#include <stdlib.h>
#include <string.h>

#include "question/description.h"
#include "base/wait.h"
#include "job/link.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"

enum { NOBODY = -1 };
static const double LEAVE_S = 2.0;

/* An open question. */
typedef struct {
    int64_t question; /* its number; 0: none */
    uint64_t sent_as; /* number of the parcel in which it was last sent */
    int answerer;     /* the inference rank that it was sent to; NOBODY: not sent yet, or not again */
    int via;          /* the trainer that forwards it, if one of both was spawned; NOBODY: none */
    int rank;         /* that it was sent to, and that the answer comes from */
    int answered;
    mpidata_sending *sending;
    mpidata_sending_list leaving; /* to trainers that should have forwarded it to a lost rank */
    mpidata_description *description;
    int n_in, n_out;
    const void *parts[1 + MPIDATA_ARRAYS_MAX]; /* of the parcel: the description, then the arrays */
    int64_t sizes[1 + MPIDATA_ARRAYS_MAX];
    void *out[MPIDATA_ARRAYS_MAX];
    int64_t out_bytes[MPIDATA_ARRAYS_MAX];
    int64_t *version;
} asked;

struct mpidata_questions {
    mpidata_job *job;
    mpidata_link link;
    mpidata_inbox *inbox;
    mpidata_transfers transfers;
    asked *open;
    int most; /* most open questions */
    int64_t asked, settled; /* numbers of the last question, and of the last settled one */
    uint64_t parcels;
    int last; /* that was asked */
};

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a question."); }

static int rank_of(const mpidata_questions *questions, int answerer) {
    return mpidata_link_leader(&questions->link, &questions->job->plan, MPIDATA_ROLE_INFERENCE, answerer);
}

static int place_answer(void *context, const mpidata_parcel *answer);

static mpidata_inbox *open_inbox(const mpidata_questions *questions) {
    const mpidata_link *link = &questions->link;
    int *peers = malloc((size_t)link->n_ranks * sizeof *peers);
    if (!peers) return NULL;
    for (int rank = 0; rank < link->n_ranks; rank++) {
        int number;
        const int role = mpidata_link_role(link, &questions->job->plan, rank, &number);
        peers[rank] = role == MPIDATA_ROLE_INFERENCE || role == MPIDATA_ROLE_TRAINER ? rank : -1;
    }
    mpidata_inbox *inbox = mpidata_inbox_open(questions->job->data, MPIDATA_TAG_ANSWER, peers, link->n_ranks);
    free(peers);
    return inbox;
}

static int open_link(mpidata_questions *questions) {
    const mpidata_job *job = questions->job;
    if (!job->spawned) return mpidata_link_open_world(&questions->link, job->data, &job->plan);
    return mpidata_link_open_spawned(&questions->link, job->data, job->kind, job->index, &job->plan, job->trainer_ranks);
}

static void free_all(mpidata_questions *questions) {
    free(questions->open);
    free(questions);
}

mpidata_questions *mpidata_questions_open(mpidata_job *job, int most) {
    mpidata_questions *questions = calloc(1, sizeof *questions);
    if (!questions) return NULL;
    questions->job = job;
    questions->most = most;
    questions->open = calloc((size_t)most, sizeof *questions->open);
    questions->last = job->index * job->plan.ranks_per_group + job->rank_in_group; /* so that ranks start at different ones */
    if (!questions->open || open_link(questions) || !(questions->inbox = open_inbox(questions))) {
        mpidata_link_close(&questions->link);
        free_all(questions);
        return NULL;
    }
    mpidata_inbox_place(questions->inbox, (mpidata_placing){place_answer, questions});
    return questions;
}

static void drop_sending(mpidata_questions *questions, asked *one) {
    if (!one->sending) return;
    mpidata_transfers_forget(&questions->transfers, &one->sending->pending);
    mpidata_sending_free(one->sending);
    one->sending = NULL;
}

static int trainer_lives(const mpidata_job *job, int trainer) {
    return mpidata_job_trainer_rank(job, trainer) >= 0 && !(job->dead_trainers && job->dead_trainers[trainer]);
}

/* A living trainer receives what was sent to it, whoever the final receiver is: MPI reads it until then. */
static void free_left(mpidata_questions *questions, asked *one, int all) {
    mpidata_sending_list ended = {0};
    for (mpidata_sending *sending = one->leaving.first; sending; sending = sending->next)
        if (all || !trainer_lives(questions->job, sending->to)) mpidata_transfers_forget(&questions->transfers, &sending->pending);
    mpidata_sendings_move_ended(&one->leaving, &ended);
    mpidata_sendings_free(&ended);
}

static void close_question(mpidata_questions *questions, asked *one) {
    drop_sending(questions, one);
    free_left(questions, one, 1);
    free(one->description);
    memset(one, 0, sizeof *one);
}

static int any_leaves(const mpidata_questions *questions) {
    for (int i = 0; i < questions->most; i++)
        if (questions->open[i].leaving.first || (questions->open[i].sending && questions->open[i].sending->pending.left)) return 1;
    return 0;
}

void mpidata_questions_close(mpidata_questions *questions) {
    if (!questions) return;
    int did = 0, status = MPIDATA_SUCCESS;
    mpidata_backoff backoff = {0};
    for (double until = mpidata_now() + LEAVE_S; !status && any_leaves(questions) && mpidata_now() < until;
         mpidata_backoff_pause(&backoff))
        status = mpidata_questions_round(questions, &did);
    for (int i = 0; i < questions->most; i++) close_question(questions, &questions->open[i]);
    mpidata_link_close(&questions->link);
    if (questions->transfers.n) return; /* memory that MPI still writes to stays until the process ends */
    mpidata_transfers_close(&questions->transfers);
    mpidata_inbox_close(questions->inbox);
    free_all(questions);
}

static asked *find(const mpidata_questions *questions, int64_t question) {
    for (int i = 0; i < questions->most; i++)
        if (questions->open[i].question == question) return (asked *)&questions->open[i];
    return NULL;
}

int mpidata_questions_knows(const mpidata_questions *questions, int64_t question) { return question > 0 && find(questions, question); }

int64_t mpidata_questions_any(const mpidata_questions *questions) {
    for (int i = 0; i < questions->most; i++)
        if (questions->open[i].question) return questions->open[i].question;
    return 0;
}

int mpidata_questions_full(const mpidata_questions *questions) { return !find(questions, 0); }

int mpidata_questions_give_up(mpidata_questions *questions, int64_t question) {
    asked *one = find(questions, question);
    if (one && (one->leaving.first || (one->sending && one->sending->pending.left))) return 0;
    if (one && one->answerer != NOBODY && mpidata_inbox_holds(questions->inbox, one->rank, one->sent_as)) return 0;
    if (one) close_question(questions, one);
    return 1;
}

void mpidata_questions_settle(mpidata_questions *questions) {
    for (int i = 0; i < questions->most; i++)
        if (questions->open[i].question) close_question(questions, &questions->open[i]);
    questions->settled = questions->asked;
}

int mpidata_questions_settled(const mpidata_questions *questions, int64_t question) {
    return question > 0 && question <= questions->settled;
}

int mpidata_questions_has_answerer(const mpidata_questions *questions) {
    return mpidata_answerers_next(&questions->job->answerers, questions->last) >= 0;
}

/* The trainer that forwards this rank's questions. NOBODY: none lives. */
static int trainer_for(const mpidata_questions *questions) {
    const mpidata_job *job = questions->job;
    for (int i = 0; i < job->plan.trainers; i++) {
        const int trainer = (job->index + job->rank_in_group + i) % job->plan.trainers;
        if (trainer_lives(job, trainer)) return trainer;
    }
    return NOBODY;
}

/* Send it to the next living inference rank, if there is one. */
static int ask(mpidata_questions *questions, asked *one) {
    const int answerer = mpidata_answerers_next(&questions->job->answerers, questions->last);
    if (answerer < 0) return MPIDATA_SUCCESS;
    int rank = rank_of(questions, answerer);
    const int via = rank < 0 ? trainer_for(questions) : NOBODY;
    if (rank < 0 && via < 0) return MPIDATA_SUCCESS;
    if (rank < 0) rank = mpidata_job_trainer_rank(questions->job, via);
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC,
                                      .dataset = via < 0 ? 0 : 1 + (uint32_t)answerer,
                                      .kind = MPIDATA_PARCEL_QUESTION,
                                      .number = ++questions->parcels,
                                      .n_parts = 1 + one->n_in};
    MPIDATA_TRY(mpidata_sending_new(&head, one->sizes, one->parts, 0, &one->sending));
    one->sending->to = via;
    one->sent_as = head.number;
    one->answerer = questions->last = answerer;
    one->via = via;
    one->rank = rank;
    return mpidata_sending_begin(one->sending, &questions->transfers, rank, MPIDATA_TAG_QUESTION, questions->job->data);
}

static int fill(asked *one, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out) {
    size_t bytes;
    if (!(one->description = mpidata_describe(in, n_in, out, n_out, &bytes))) return no_memory();
    one->n_in = n_in;
    one->n_out = n_out;
    one->answerer = NOBODY;
    one->parts[0] = one->description;
    one->sizes[0] = (int64_t)bytes;
    for (int i = 0; i < n_in; i++) {
        one->parts[1 + i] = in[i].values;
        one->sizes[1 + i] = (int64_t)mpidata_array_bytes(&in[i]);
    }
    for (int i = 0; i < n_out; i++) {
        one->out[i] = out[i].values;
        one->out_bytes[i] = (int64_t)mpidata_array_bytes(&out[i]);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_questions_begin(mpidata_questions *questions, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                         int64_t *version, int64_t *question) {
    asked *one = find(questions, 0);
    if (!one) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%d questions are already open", questions->most);
    MPIDATA_TRY(fill(one, in, n_in, out, n_out));
    one->version = version;
    *question = one->question = ++questions->asked;
    return ask(questions, one);
}

/* Note inference ranks that MPI reports dead. The scheduler handles other deaths. */
static int note_deaths(mpidata_questions *questions) {
    mpidata_link *link = &questions->link;
    MPIDATA_TRY(mpidata_link_deaths(link));
    if (link->dead[0]) return mpidata_job_scheduler_gone(&questions->job->plan);
    for (int i = 0; i < link->n_newly; i++) {
        int number;
        if (mpidata_link_role(link, &questions->job->plan, link->newly[i], &number) != MPIDATA_ROLE_INFERENCE) continue;
        MPIDATA_TRY(mpidata_answerers_hear(&questions->job->answerers, mpidata_answerer_word(number, 1)));
    }
    return MPIDATA_SUCCESS;
}

static int wrong(int answerer, const char *what) {
    return mpidata_error(MPIDATA_ERR_WIRE, "Inference rank %d sent an answer that does not fit its question: %s. Use one build of "
                                           "mpidata for the whole job.", answerer, what);
}

static int waits_for(const asked *one, const mpidata_parcel *answer) {
    return one->question && one->answerer != NOBODY && !one->answered && one->sent_as == answer->head.number &&
           one->rank == answer->peer;
}

/* The question of an answer. NULL: nobody waits for it any longer. */
static asked *asked_by(mpidata_questions *questions, const mpidata_parcel *answer) {
    for (int i = 0; i < questions->most; i++)
        if (waits_for(&questions->open[i], answer)) return &questions->open[i];
    return NULL;
}

/* An answer is received into the asker's arrays; one that nobody waits for is dropped when it is whole. */
static int place_answer(void *context, const mpidata_parcel *answer) {
    mpidata_questions *questions = context;
    const asked *one = asked_by(questions, answer);
    const mpidata_parcel_head *head = &answer->head;
    if (!one) return MPIDATA_SUCCESS;
    if (head->kind != MPIDATA_PARCEL_QUESTION || head->n_parts != 1 + one->n_out || answer->sizes[0] != sizeof(mpidata_answer_head))
        return wrong(one->answerer, "another number of arrays");
    for (int i = 0; i < one->n_out; i++)
        if (answer->sizes[1 + i] != one->out_bytes[i]) return wrong(one->answerer, "an array of another size");
    if (mpidata_inbox_holds(questions->inbox, one->rank, one->sent_as)) return wrong(one->answerer, "it comes twice");
    for (int i = 0; i < one->n_out; i++) answer->places[1 + i] = one->out[i];
    return MPIDATA_SUCCESS;
}

static int take_answer(mpidata_questions *questions, const mpidata_parcel *parcel) {
    asked *one = asked_by(questions, parcel);
    mpidata_answer_head head;
    if (!one) return MPIDATA_SUCCESS;
    memcpy(&head, mpidata_parcel_part(parcel, 0), sizeof head);
    if (one->version) *one->version = head.version;
    one->answered = 1;
    return MPIDATA_SUCCESS;
}

static int take_answers(mpidata_questions *questions, int *did) {
    int from = 0;
    mpidata_parcel_list whole = {0};
    int status = mpidata_inbox_take(questions->inbox, &questions->transfers, &from, did);
    if (status == MPIDATA_ERR_DIED) status = note_deaths(questions);
    mpidata_inbox_whole(questions->inbox, &whole);
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(&whole));) {
        if (!status) status = take_answer(questions, parcel);
        mpidata_parcel_free(parcel);
    }
    return status;
}

static int is_lost(const mpidata_questions *questions, const asked *one) {
    if (one->via != NOBODY && !trainer_lives(questions->job, one->via)) return 1;
    return !mpidata_answerer_lives(&questions->job->answerers, one->answerer);
}

/* Ask questions of a lost one again; not while MPI may still write to the memory of the answer, or a living trainer still
 * forwards it. */
static int ask_again(mpidata_questions *questions, asked *one) {
    if (one->answerer != NOBODY && is_lost(questions, one)) {
        if (one->via == NOBODY || !trainer_lives(questions->job, one->via)) mpidata_inbox_lose(questions->inbox, one->rank);
        if (mpidata_inbox_holds(questions->inbox, one->rank, one->sent_as)) return MPIDATA_SUCCESS;
        if (one->via != NOBODY && one->sending) mpidata_sendings_append(&one->leaving, one->sending);
        if (one->via != NOBODY) one->sending = NULL;
        drop_sending(questions, one);
        one->answerer = NOBODY;
    }
    return one->answerer == NOBODY && !one->answered ? ask(questions, one) : MPIDATA_SUCCESS;
}

int mpidata_questions_round(mpidata_questions *questions, int *did) {
    MPIDATA_TRY(mpidata_transfers_test(&questions->transfers, did));
    MPIDATA_TRY(take_answers(questions, did));
    for (int i = 0; i < questions->most; i++)
        if (questions->open[i].question) {
            free_left(questions, &questions->open[i], 0);
            MPIDATA_TRY(ask_again(questions, &questions->open[i]));
        }
    return MPIDATA_SUCCESS;
}

int mpidata_questions_ended(mpidata_questions *questions, int64_t question) {
    asked *one = find(questions, question);
    if (!one->answered || one->leaving.first || (one->sending && one->sending->pending.left)) return 0;
    close_question(questions, one);
    return 1;
}

/* How all trainers come to draw the same number of batches without waiting for one another at every one.
 *
 * Each trainer says how many batches it can be sure to draw; the least of these numbers is granted to all. A trainer
 * says so again as soon as it can be sure of more than is granted, or knows that there will be no more; one that can draw
 * no more than is granted (or leaves) thereby ends the stream for all at the same batch. One nonblocking MPI_Iallreduce at
 * a time; under `tail: repeat` the greatest of the final numbers counts, and who has fewer repeats samples.
 *
 * A checkpoint is taken on all trainers at the same batch: as soon as one of them says in the agreement that the scheduler
 * has ordered one, it is that of the batches granted by then, which no trainer has gone past. */
#include <limits.h>

#include "trainer/trainer_state.h"

enum { LEAST = 0, TOTAL, NOT_ENDED, STOP, BATCH, MINUS_BATCH, NO_MORE, CHECKPOINT };

/* Batches that may be promised before they are drawn: hides the agreement behind the training step, and bounds what is
 * still drawn after a stop. At most half the capacity, so that a trainer that runs ahead of a slow one still has samples. */
static int64_t lookahead(const mpidata_trainer *trainer) {
    if (trainer->job.plan.policy == MPIDATA_POLICY_RESERVOIR) return 1;
    int64_t most = trainer->batch == 1 ? 64 : 4, half = trainer->job.plan.capacity / (2 * trainer->batch);
    return half < 1 ? 1 : half < most ? half : most;
}

int64_t mpidata_trainer_guaranteed(const mpidata_trainer *trainer, int *final) {
    const mpidata_buffer *buffer = &trainer->buffer;
    int64_t batch = trainer->batch, available = mpidata_buffer_available(buffer);
    *final = 0;
    if (!batch) return 0;
    if (buffer->ended) {
        /* Of what is left of a large buffer not all is promised at once: a checkpoint falls behind what is promised. */
        int64_t rest = available / batch, next = lookahead(trainer);
        *final = rest <= next;
        return trainer->drawn + (*final ? rest : next);
    }
    /* In a reservoir draws are without end, but at the end of the stream those promised must still be possible. */
    int64_t batches = available == INT64_MAX ? buffer->count / batch : available / batch, ahead = lookahead(trainer);
    return trainer->drawn + (batches < ahead ? batches : ahead);
}

static int64_t total_with_repeats(const mpidata_trainer *trainer) {
    int64_t have_any = trainer->buffer.count + trainer->n_retired;
    return have_any ? trainer->drawn + (trainer->buffer.count + trainer->batch - 1) / trainer->batch : 0;
}

/* Fill in this trainer's part; 0: nothing new to say. */
static int my_part(mpidata_trainer *trainer, int64_t *mine) {
    int final, stop = trainer->left || trainer->stopping;
    int wanted = trainer->checkpoint.wanted > trainer->checkpoint.agreed;
    int64_t sure = mpidata_trainer_guaranteed(trainer, &final);
    if (!stop && (!trainer->batch || (!final && !wanted && sure <= trainer->granted))) return 0;
    int repeats = final && trainer->job.plan.tail == MPIDATA_TAIL_REPEAT;
    int64_t total = repeats ? total_with_repeats(trainer) : sure;
    mine[TOTAL] = total;
    mine[LEAST] = -(repeats && total > 0 ? INT64_MAX / 2 : sure);
    mine[NOT_ENDED] = !final;
    mine[STOP] = stop;
    mine[BATCH] = trainer->batch ? trainer->batch : INT64_MIN / 2;
    mine[MINUS_BATCH] = trainer->batch ? -trainer->batch : INT64_MIN / 2;
    mine[NO_MORE] = final && !(repeats && total > 0) && sure <= trainer->granted;
    mine[CHECKPOINT] = trainer->checkpoint.wanted;
    return 1;
}

static void conclude(mpidata_trainer *trainer, const int64_t *all) {
    int64_t least = -all[LEAST];
    if (all[STOP]) {
        trainer->finished = 1;
    } else if (all[BATCH] != -all[MINUS_BATCH]) {
        mpidata_trainer_fail(trainer, mpidata_error(MPIDATA_ERR_ARGUMENT,
                                                    "The trainers draw batches of different sizes (%lld and %lld). Use "
                                                    "the same batch_size on all trainers.",
                                                    (long long)-all[MINUS_BATCH], (long long)all[BATCH]));
        trainer->finished = 1;
    } else if (trainer->job.plan.tail == MPIDATA_TAIL_REPEAT && !all[NOT_ENDED]) {
        int64_t total = all[TOTAL] < least ? all[TOTAL] : least;
        if (total > trainer->granted) trainer->granted = total;
        trainer->finished = 1;
    } else if (least > trainer->granted) {
        trainer->granted = least;
    } else if (all[NO_MORE]) {
        trainer->finished = 1;
    }
    if (!all[STOP]) mpidata_checkpoint_agree(trainer, all[CHECKPOINT], trainer->granted);
    (void)pthread_cond_broadcast(&trainer->news);
}

int mpidata_agree(mpidata_trainer *trainer, mpidata_agreement *agreement, int *did) {
    int several = trainer->job.plan.trainers > 1;
    if (!agreement->under_way) {
        (void)pthread_mutex_lock(&trainer->lock);
        int status = mpidata_checkpoint_give_up(trainer);
        int say = several && !trainer->finished && my_part(trainer, agreement->mine);
        (void)pthread_mutex_unlock(&trainer->lock);
        if (status || !say) return status;
        MPIDATA_TRY_MPI(MPI_Iallreduce(agreement->mine, agreement->all, MPIDATA_AGREEMENT_ENTRIES, MPI_INT64_T, MPI_MAX,
                                       trainer->agreement, &agreement->request));
        agreement->under_way = 1;
        *did = 1;
    }
    int done = 0;
    MPIDATA_TRY_MPI(MPI_Test(&agreement->request, &done, MPI_STATUS_IGNORE));
    if (!done) return MPIDATA_SUCCESS;
    agreement->under_way = 0;
    *did = 1;
    (void)pthread_mutex_lock(&trainer->lock);
    conclude(trainer, agreement->all);
    (void)pthread_mutex_unlock(&trainer->lock);
    return MPIDATA_SUCCESS;
}

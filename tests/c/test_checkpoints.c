/* Trainers agree on checkpoints, and take each at the same batch, while trainers die and join. Results of agreements,
 * orders and batches come in any order, and any trainer may know the result of an agreement that a death breaks. As
 * with parameter servers, all wait for each other when they take a checkpoint. */
#include "fake_mpi.h"
#include "stream/agreement.h"
#include "stream/checkpoint.h"
#include "stream/deaths/adoption.h"
#include "stream/shares/shares.h"
#include "trainer/draw.h"
#include "trainer/trainer.h"

enum { TRAINERS = 6, SPARES = 3, BATCH = 4, MOST = 64, SEEDS = 3000, EVENTS = 400, SETTLES = 200, GAP = 3 };

static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 8\ntrainers 6\ntrainer_spares 3\ngroups %d\nloaders %d\nloader_timeout_s 60\nloader_start_timeout_s 60\nranks_per_group 1\nin_flight 4\n"
    "simulations 10\nvalidation 0\ntrainers_at_least 1\npolicy fifo\ncapacity 100\ntail drop\n%s";

typedef struct {
    mpidata_trainer trainer;
    mpidata_agreement agreement;
    int trains, dead;
    int64_t waits; /* for the others to take this checkpoint */
} member;

static member all[TRAINERS];
static mpidata_random dice;
static int64_t newest, taken_at[MOST];             /* orders; batch by number, 0: not taken by anyone */
static int has_stream, of[TRAINERS], wrote[TRAINERS], counted[TRAINERS]; /* the newest one; who is counted */

static int below(int n) { return (int)mpidata_random_below(&dice, n); }

static int trains(int t) { return all[t].trains && !all[t].dead; }

static void open_members(int stream) {
    char text[1024];
    (void)snprintf(text, sizeof text, plan_text, stream, !stream, stream ? "field u float32 1 4\n" : "");
    memset(all, 0, sizeof all);
    has_stream = stream;
    for (int t = 0; t < TRAINERS; t++) {
        mpidata_trainer *trainer = &all[t].trainer;
        CHECK(!mpidata_plan_parse(text, &trainer->job.plan));
        CHECK(!mpidata_trainer_open_state(trainer));
        CHECK(!mpidata_buffer_open(&trainer->buffer, trainer->job.plan.policy, 100, 0, 0, 0));
        CHECK(!mpidata_adoption_open(trainer) && trainer->adoption.on == stream);
        trainer->living = MPI_COMM_NULL;
        trainer->job.index = t;
        trainer->batch = stream ? BATCH : 0;
        all[t].trains = counted[t] = t < TRAINERS - SPARES;
    }
    newest = 0;
    memset(taken_at, 0, sizeof taken_at);
}

static void close_members(void) {
    for (int t = 0; t < TRAINERS; t++) {
        mpidata_trainer *trainer = &all[t].trainer;
        for (mpidata_outgoing *one = trainer->outbox, *next; one; one = next) {
            next = one->next;
            free(one);
        }
        mpidata_adoption_close(trainer);
        mpidata_buffer_close(&trainer->buffer);
        mpidata_shares_close(trainer);
        mpidata_trainer_close_state(trainer);
        mpidata_plan_free(&trainer->job.plan);
    }
}

static int64_t furthest(void) {
    int64_t most = 0;
    for (int t = 0; t < TRAINERS; t++)
        if (trains(t) && all[t].trainer.drawn > most) most = all[t].trainer.drawn;
    return most;
}

static int64_t slowest(void) {
    int64_t least = INT64_MAX;
    for (int t = 0; t < TRAINERS; t++)
        if (trains(t) && all[t].trainer.drawn < least) least = all[t].trainer.drawn;
    return least;
}

/* -- the scheduler ---------------------------------------------------------------------------------------------------- */

/* The scheduler orders one checkpoint at a time, from the trainers that train as far as it knows. */
static void order(void) {
    for (int t = 0; t < TRAINERS; t++)
        if (newest && of[t] && !all[t].dead && !wrote[t]) return;
    if (newest + 1 == MOST) return;
    newest++;
    for (int t = 0; t < TRAINERS; t++) {
        of[t] = counted[t] && !all[t].dead;
        wrote[t] = 0;
    }
}

static void hear_of_order(int t) {
    mpidata_lock_take(&all[t].trainer.lock);
    mpidata_checkpoint_want_locked(&all[t].trainer, newest);
    mpidata_lock_give(&all[t].trainer.lock);
}

/* -- batches, and taking a checkpoint ----------------------------------------------------------------------------------- */

static int takes_part(int t, int64_t number) {
    return trains(t) && !all[t].trainer.checkpoint.joining && all[t].trainer.checkpoint.before < number;
}

/* The loop first gets the batches that are drawn ahead; none of them is drawn beyond the batch of a checkpoint. */
static int draw_ahead(mpidata_trainer *trainer) {
    if (trainer->ahead && below(2)) {
        CHECK(!mpidata_trainer_had_ahead());
        return 1;
    }
    if (trainer->ahead < 2 && below(2) && mpidata_trainer_ahead(-1.0) == MPIDATA_SUCCESS) {
        CHECK(!trainer->checkpoint.due || trainer->drawn < trainer->checkpoint.at);
        trainer->drawn++;
        trainer->ahead++;
    }
    return trainer->ahead > 0;
}

static void draw(int t) {
    mpidata_trainer *trainer = &all[t].trainer;
    if (!trains(t) || all[t].waits || trainer->drawn > slowest() + GAP) return;
    mpidata_trainer_set(trainer);
    if (has_stream) trainer->granted = trainer->granted > trainer->drawn ? trainer->granted : trainer->drawn + below(3);
    if (has_stream && draw_ahead(trainer)) return;
    const int status = has_stream ? mpidata_trainer_ahead(0.0) : mpidata_trainer_count_batch(0.0);
    CHECK(!trainer->checkpoint.due || trainer->drawn <= trainer->checkpoint.at);
    if (status == MPIDATA_CHECKPOINT) all[t].waits = trainer->checkpoint.agreed;
    if (status == MPIDATA_SUCCESS && has_stream) trainer->drawn++;
}

/* The servers release all that wait for the oldest checkpoint, once nobody else will come. */
static void take(void) {
    int64_t number = INT64_MAX;
    for (int t = 0; t < TRAINERS; t++)
        if (trains(t) && all[t].waits && all[t].waits < number) number = all[t].waits;
    for (int t = 0; t < TRAINERS && number < INT64_MAX; t++)
        if (trains(t) && !all[t].waits && (takes_part(t, number) || all[t].trainer.checkpoint.joining)) return;
    for (int t = 0; t < TRAINERS; t++) {
        mpidata_checkpoint *checkpoint = &all[t].trainer.checkpoint;
        if (!trains(t) || all[t].waits != number) continue;
        CHECK(checkpoint->due && checkpoint->agreed == number && checkpoint->at == all[t].trainer.drawn && !all[t].trainer.ahead);
        CHECK(!taken_at[number] || taken_at[number] == checkpoint->at + 1);
        taken_at[number] = checkpoint->at + 1;
        checkpoint->due = 0;
        all[t].waits = 0;
        wrote[t] |= number == newest;
    }
}

/* -- agreements --------------------------------------------------------------------------------------------------------- */

static int is_under_way(void) {
    for (int t = 0; t < TRAINERS; t++)
        if (trains(t) && !all[t].agreement.under_way) return 0;
    return 1;
}

/* All have contributed, also a trainer that has died; deaf ones receive a failure instead of the result. */
static void end_agreement(const char *deaf) {
    int64_t most[MPIDATA_AGREEMENT_ENTRIES];
    int did;
    for (int e = 0; e < MPIDATA_AGREEMENT_ENTRIES; e++) {
        most[e] = INT64_MIN;
        for (int t = 0; t < TRAINERS; t++)
            if (all[t].trains && all[t].agreement.under_way && all[t].agreement.mine[e] > most[e]) most[e] = all[t].agreement.mine[e];
    }
    for (int t = 0; t < TRAINERS; t++) {
        if (!trains(t)) continue;
        fake_message *message = &fake_messages[fake_number_of(&all[t].agreement.requests[0]) - 1];
        *message = (fake_message){.bytes = most, .size = sizeof most, .target = message->target, .dead = deaf && deaf[t]};
        CHECK(!mpidata_agree(&all[t].trainer, &all[t].agreement, &did) && all[t].agreement.broken == message->dead);
    }
    fake_reset();
}

static void agree(int t) {
    int did;
    if (!trains(t) || all[t].agreement.under_way) return;
    CHECK(!mpidata_agree(&all[t].trainer, &all[t].agreement, &did));
    if (is_under_way()) end_agreement(NULL);
}

/* Like the survivors, in their own communicator. */
static void regroup(void) {
    fake_reset();
    for (int t = 0; t < TRAINERS; t++) {
        mpidata_trainer *trainer = &all[t].trainer;
        all[t].agreement = (mpidata_agreement){.first = 1};
        if (!trains(t)) continue;
        mpidata_lock_take(&trainer->lock);
        trainer->checkpoint.again = !has_stream;
        trainer->checkpoint.asking = !has_stream && mpidata_checkpoint_asks_locked(trainer);
        trainer->adoption.greets = trainer->shares.changes = has_stream;
        all[t].waits = 0;
        mpidata_lock_give(&trainer->lock);
    }
}

/* -- what happens ------------------------------------------------------------------------------------------------------- */

/* Some trainers may continue before they learn of it. */
static void break_agreement(void) {
    char deaf[TRAINERS];
    if (!is_under_way()) return;
    for (int t = 0; t < TRAINERS; t++) deaf[t] = (char)below(2);
    end_agreement(deaf);
    for (int i = below(12); i > 0; i--) draw(below(TRAINERS));
}

static void die(int t) {
    int others = 0;
    for (int i = 0; i < TRAINERS; i++) others += i != t && trains(i) && !all[i].trainer.checkpoint.joining;
    if (!trains(t) || !others) return;
    const int under_way = is_under_way();
    all[t].dead = 1;
    if (under_way || below(2)) break_agreement();
    regroup();
}

/* A trainer joins once all are at the same batch and nobody waits to take a checkpoint. */
static void join(int t) {
    if (trains(t) || all[t].dead || slowest() < furthest()) return;
    for (int i = 0; i < TRAINERS; i++)
        if (trains(i) && all[i].waits) return;
    break_agreement();
    const int64_t at = furthest();
    if (slowest() < at) {
        regroup();
        return;
    }
    mpidata_trainer_set(&all[t].trainer);
    CHECK(!mpidata_trainer_takes_place());
    all[t].trains = 1;
    for (int i = 0; i < TRAINERS; i++) all[i].trainer.shares.anew = has_stream;
    regroup();
    CHECK(!mpidata_trainer_be_at(at));
}

static void event(void) {
    const int t = below(TRAINERS), what = below(100);
    if (what < 4) order();
    else if (what < 16) hear_of_order(t);
    else if (what < 50) draw(t);
    else if (what < 80) agree(t);
    else if (what < 90) take();
    else if (what < 94) counted[t] |= trains(t) && !all[t].trainer.checkpoint.joining;
    else if (what < 96) die(t);
    else if (what < 99) join(t);
}

/* Once nothing more is ordered and nobody dies, all have the checkpoint that was agreed on, and continue. */
static void settle(void) {
    const int64_t before = furthest();
    for (int i = 0; i < SETTLES; i++) {
        for (int t = 0; t < TRAINERS; t++) {
            hear_of_order(t);
            agree(t);
            draw(t);
        }
        take();
    }
    CHECK(slowest() > before + SETTLES / 4);
    for (int t = 0; t < TRAINERS; t++) {
        const mpidata_checkpoint *checkpoint = &all[t].trainer.checkpoint;
        if (trains(t)) CHECK(!checkpoint->due && !checkpoint->asking && !checkpoint->joining && checkpoint->agreed == newest);
    }
}

static void one_job(int seed) {
    mpidata_random_seed(&dice, (uint64_t)seed, 1);
    fake_reset();
    open_members(seed % 2);
    for (int i = 0; i < EVENTS; i++) event();
    settle();
    close_members();
}

static void check_word(mpidata_said said, int64_t number, int64_t batch, int again) {
    const mpidata_word word = mpidata_checkpoint_decide(&said);
    CHECK(word.number == number && word.batch == batch && word.again == again);
}

static void what_follows_from_what_all_say(void) {
    const mpidata_said wanted = {.ordered = 2, .agreed = 1, .at = 7, .drawn = 9, .granted = 12};
    mpidata_said said = wanted;
    check_word(wanted, 2, 9, 0);
    said.ordered = 1;
    check_word(said, 1, 7, 0);
    said = wanted;
    said.takes = 1; /* the previous checkpoint comes first */
    check_word(said, 1, 7, 1);
    said.over = 1;
    check_word(said, 1, 7, 1);
    said = wanted;
    said.unaware = 1;
    check_word(said, 1, 7, 1);
    said.over = 1; /* nobody draws more than is granted */
    check_word(said, 2, 12, 0);
}

int main(void) {
    what_follows_from_what_all_say();
    for (int seed = 0; FAKE_DEATH != 0 && seed < SEEDS; seed++) one_job(seed);
    return 0;
}

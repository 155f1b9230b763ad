/* What a trainer passes to one that joins, or to the others if it leaves, and declares as trained on: samples of
 * one step, and windows that share steps, checked against a simple account. */
#include "stream/deaths/joining.h"

#include <string.h>

#include "check.h"
#include "receive/completion.h"
#include "stream/progress.h"

static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 5\ntrainers 3\ntrainers_at_least 1\ntrainer_spares 1\ngroups 1\n"
    "ranks_per_group 1\nin_flight 4\nsimulations 6\nvalidation 0\npolicy %s\ncapacity %d\ncapacity_in_bytes %d\ntail drop\n"
    "samples_window %d\nsamples_stride %d\nsamples_run %d\nfield u float64 0\n";

enum { SIMULATIONS = 6, STEPS = 40, SEEDS = 30, SPARE = 2 };

static mpidata_random dice;
static char drawn[SIMULATIONS][STEPS]; /* by first step */

static mpidata_trainer *open_trainer(int index, const char *policy, int in_bytes, int window, int stride, int run) {
    char text[1024];
    mpidata_trainer *trainer = calloc(1, sizeof *trainer);
    const int capacity = window * 12 * (in_bytes ? 8 : 1);
    (void)snprintf(text, sizeof text, plan_text, policy, capacity, in_bytes, window, stride, run);
    CHECK(!mpidata_plan_parse(text, &trainer->job.plan));
    trainer->job.index = index;
    CHECK(!mpidata_trainer_open_memory(trainer));
    mpidata_lock_take(&trainer->lock);
    trainer->buffer.batch = 2;
    return trainer;
}

static void close_trainer(mpidata_trainer *trainer) {
    mpidata_lock_give(&trainer->lock);
    mpidata_buffer_close(&trainer->buffer);
    mpidata_windows_close(&trainer->windows);
    mpidata_slots_close(&trainer->slots);
    mpidata_ledger_close(&trainer->ledger);
    mpidata_scales_close(&trainer->scales);
    mpidata_plan_free(&trainer->job.plan);
    mpidata_trainer_close_state(trainer);
    free(trainer->arrived);
    free(trainer);
}

static int64_t samples(const mpidata_trainer *trainer) { return STEPS - mpidata_plan_span(&trainer->job.plan); }

static int is_own(const mpidata_trainer *trainer, int64_t simulation, int64_t first) {
    return mpidata_plan_trainer(&trainer->job.plan, simulation, first) == trainer->job.index;
}

static void receive_step(mpidata_trainer *trainer, int64_t simulation, int64_t step) {
    if (mpidata_trainer_has_step_locked(trainer, simulation, step)) return;
    if (mpidata_is_anothers_locked(trainer, simulation, step)) return;
    const int64_t number = mpidata_slots_take(&trainer->slots, -1);
    *trainer->slots.slots[number]->simulation = simulation;
    *trainer->slots.slots[number]->step = step;
    CHECK(!mpidata_enter_step_locked(trainer, 0, 1, number, 0));
}

static int64_t first_of(const mpidata_trainer *trainer, int64_t number, int64_t *simulation) {
    const mpidata_slot *slot = trainer->slots.slots[*mpidata_trainer_steps_of_locked(trainer, &number)];
    *simulation = *slot->simulation;
    return *slot->step;
}

static void draw_one(mpidata_trainer *trainer) {
    int removed;
    int64_t simulation;
    if (!trainer->buffer.count) return;
    const int64_t number = mpidata_buffer_draw(&trainer->buffer, &removed), first = first_of(trainer, number, &simulation);
    mpidata_trainer_count_draw_locked(trainer, number);
    drawn[simulation][first] = 1;
    if (removed) mpidata_trainer_give_back_locked(trainer, number);
}

static int *draws_of(mpidata_trainer *trainer, int64_t number) {
    return trainer->windows.plan ? &trainer->windows.draws[number] : &trainer->slots.slots[number]->draws;
}

/* Like after a resume: the draws of some samples that have not been drawn are not counted. */
static void count_fewer(mpidata_trainer *trainer) {
    for (int64_t i = 0; i < trainer->buffer.count; i += 3) {
        int *draws = draws_of(trainer, mpidata_buffer_at(&trainer->buffer, i));
        if (*draws) continue;
        *draws = -1;
        trainer->by_draws[0]--;
    }
}

/* Only half of the last simulation has come. */
static void receive_and_draw(mpidata_trainer *trainer) {
    int64_t n;
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < (s + 1 < SIMULATIONS ? STEPS : STEPS / 2); i++) {
            receive_step(trainer, s, i);
            CHECK(!mpidata_trainer_fill_buffer_locked(trainer, &n));
            if (mpidata_random_below(&dice, 100) < 15) draw_one(trainer);
        }
}

/* The joining trainer knows what was drawn, and nothing else. */
static void check_what_is_told(const mpidata_trainer *trainer, mpidata_trainer *spare) {
    int64_t *numbers, n;
    CHECK(!mpidata_pack_trained_locked(trainer, &numbers, &n));
    CHECK(!mpidata_take_trained_locked(spare, numbers, n));
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < samples(trainer); i++) CHECK(mpidata_ledger_has(&spare->ledger, s, i) == drawn[s][i]);
    free(numbers);
}

/* A sample not yet drawn is in the buffer or waits for it: the ledger has it, and it belongs to this trainer. */
static int64_t check_one(mpidata_trainer *trainer, int64_t number, char (*there)[STEPS]) {
    int64_t simulation;
    const int64_t first = first_of(trainer, number, &simulation);
    if (drawn[simulation][first]) return 0; /* in a reservoir */
    CHECK(is_own(trainer, simulation, first) && !there[simulation][first]);
    there[simulation][first] = 1;
    return *draws_of(trainer, number) == 0;
}

static void check_what_is_kept(mpidata_trainer *trainer, const char (*had)[STEPS]) {
    char there[SIMULATIONS][STEPS] = {{0}};
    int64_t counted = 0;
    for (int64_t i = 0; i < trainer->buffer.count; i++)
        counted += check_one(trainer, mpidata_buffer_at(&trainer->buffer, i), there);
    for (int64_t i = 0; i < trainer->n_arrived; i++) counted += check_one(trainer, trainer->arrived[i], there);
    CHECK(trainer->by_draws[0] == counted && trainer->buffer.refused == -1);
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < samples(trainer); i++) {
            CHECK(mpidata_ledger_has(&trainer->ledger, s, i) == (drawn[s][i] || there[s][i]));
            CHECK(there[s][i] == (had[s][i] && !drawn[s][i] && is_own(trainer, s, i)));
        }
}

/* Steps of another try complete what is missing, and nothing else; after all is drawn, no slot is held. */
static void check_what_comes_again(mpidata_trainer *trainer) {
    int64_t n, count = trainer->buffer.count, in_use = 0;
    if (trainer->windows.plan) mpidata_windows_drop_all(&trainer->windows);
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < STEPS; i++) receive_step(trainer, s, i);
    if (trainer->windows.plan) mpidata_windows_drop_all(&trainer->windows);
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < samples(trainer); i++)
            CHECK(mpidata_ledger_has(&trainer->ledger, s, i) == (drawn[s][i] || is_own(trainer, s, i)));
    while (count || trainer->n_arrived) {
        CHECK(!mpidata_trainer_fill_buffer_locked(trainer, &n));
        if (!trainer->n_arrived) mpidata_buffer_end(&trainer->buffer);
        draw_one(trainer);
        count = trainer->buffer.count;
    }
    CHECK(trainer->by_draws[0] == 0 && mpidata_buffer_fill(&trainer->buffer) == 0);
    CHECK(!trainer->windows.in_buffer && !trainer->windows.unseen && !trainer->buffer.unseen_bytes);
    for (int64_t i = 0; i < trainer->slots.n_slots; i++) in_use += trainer->slots.slots[i]->page->in_use;
    CHECK(in_use == 0);
}

static void one_job(int seed, const char *policy, int in_bytes, int window, int stride, int joins) {
    const int run = (window - 1) * stride + 1 + seed % 4;
    mpidata_random_seed(&dice, (uint64_t)seed, 1);
    memset(drawn, 0, sizeof drawn);
    mpidata_trainer *trainer = open_trainer(0, policy, in_bytes, window, stride, run);
    mpidata_trainer *spare = open_trainer(SPARE, policy, in_bytes, window, stride, run);
    char had[SIMULATIONS][STEPS];
    receive_and_draw(trainer);
    count_fewer(trainer);
    for (int64_t s = 0; s < SIMULATIONS; s++)
        for (int64_t i = 0; i < STEPS; i++) had[s][i] = (char)mpidata_ledger_has(&trainer->ledger, s, i);
    check_what_is_told(trainer, spare);
    CHECK(!mpidata_plan_change(&trainer->job.plan, joins ? SPARE : 0, joins));
    CHECK(!mpidata_drop_others_locked(trainer));
    check_what_is_kept(trainer, had);
    CHECK(joins || !trainer->buffer.count);
    check_what_comes_again(trainer);
    close_trainer(trainer);
    close_trainer(spare);
}

int main(void) {
    static const char *const policies[] = {"fifo", "firo", "reservoir"};
    for (int seed = 0; seed < SEEDS; seed++)
        for (int policy = 0; policy < 3; policy++)
            for (int window = 1; window < 4; window++)
                one_job(seed, policies[policy], seed % 2, window, 1 + seed % 3, seed % 5 != 0);
    return 0;
}

/* Windows of steps match a simple account: each comes once, is of one try, and its slots are released. */
#include "buffer/windows.h"

#include <string.h>

#include "check.h"
#include "example_plan.h"

enum { SIMULATIONS = 3, STEPS = 40, TRIES = 3, ROUNDS = 400, MOST = 6 };

static mpidata_plan plan;
static mpidata_slots slots;
static mpidata_ledger ledger;
static mpidata_windows windows;
static uint64_t state;
static int64_t waits[SIMULATIONS][TRIES][STEPS]; /* slots of steps that wait for their windows, or -1 */
static int entered[SIMULATIONS][STEPS];     /* windows, by their first step */
static int64_t held[SIMULATIONS * STEPS];   /* numbers of windows that were not released */
static int n_held;

static int chance(int n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

/* A group counts its own tries of a simulation. */
static int group_of(int of) { return of % 2; }
static int try_of(int of) { return 1 + of / 2; }

static void forget(int simulation, int of) {
    for (int i = 0; i < STEPS; i++) waits[simulation][of][i] = -1;
}

static int64_t free_slots(void) {
    int64_t taken = 0;
    for (int64_t i = 0; i < slots.n_slots; i++) taken += slots.slots[i]->page->in_use > 0;
    return slots.n_slots - taken;
}

/* Only the slots of waiting steps and of windows are in use. */
static void check_slots(void) {
    static char used[1 << 16];
    int64_t n = 0;
    CHECK(slots.n_slots <= (int64_t)sizeof used);
    memset(used, 0, sizeof used);
    for (int s = 0; s < SIMULATIONS; s++)
        for (int of = 0; of < TRIES; of++)
            for (int i = 0; i < STEPS; i++)
                if (waits[s][of][i] >= 0) used[waits[s][of][i]] = 1;
    for (int w = 0; w < n_held; w++)
        for (int i = 0; i < plan.samples_window; i++) used[mpidata_windows_steps(&windows, held[w])[i]] = 1;
    for (int64_t i = 0; i < slots.n_slots; i++) n += used[i];
    CHECK(n == slots.n_slots - free_slots());
}

static int is_mine(int simulation, int first) { return mpidata_plan_trainer(&plan, simulation, first) == ledger.trainer; }

/* Whether the step is in a window of this trainer that has not been entered: the definition of mpidata_windows_want. */
static int wanted(int simulation, int step) {
    for (int i = 0; i < plan.samples_window; i++) {
        int first = step - i * plan.samples_stride;
        if (first >= 0 && is_mine(simulation, first) && !entered[simulation][first]) return 1;
    }
    return 0;
}

static int is_whole(int simulation, int of, int first) {
    for (int i = 0; i < plan.samples_window; i++)
        if (first + i * plan.samples_stride >= STEPS || waits[simulation][of][first + i * plan.samples_stride] < 0)
            return 0;
    return 1;
}

/* The slots of a window have its steps in order, all of one try; a slot's time is its try. */
static void check_window(int64_t number, int simulation, int of, int first) {
    const int64_t *steps = mpidata_windows_steps(&windows, number);
    for (int i = 0; i < plan.samples_window; i++) {
        const mpidata_slot *slot = slots.slots[steps[i]];
        CHECK(*slot->simulation == simulation && *slot->step == first + i * plan.samples_stride && *slot->time == of);
    }
}

static void add(int simulation, int of, int step) {
    CHECK(mpidata_windows_want(&windows, simulation, step) == wanted(simulation, step));
    if (waits[simulation][of][step] >= 0 || !wanted(simulation, step)) return;
    int64_t number = mpidata_slots_take(&slots, -1);
    CHECK(number >= 0);
    *slots.slots[number]->simulation = simulation;
    *slots.slots[number]->step = step;
    *slots.slots[number]->time = of;
    waits[simulation][of][step] = number;
    CHECK(mpidata_windows_add(&windows, group_of(of), try_of(of), number) == MPIDATA_SUCCESS);
    int64_t seen = 0;
    for (int i = plan.samples_window - 1; i >= 0; i--) {
        int first = step - i * plan.samples_stride;
        if (first < 0 || !is_mine(simulation, first) || entered[simulation][first] || !is_whole(simulation, of, first))
            continue;
        CHECK(seen < windows.n_whole);
        check_window(windows.whole[seen], simulation, of, first);
        entered[simulation][first] = 1;
        CHECK(mpidata_ledger_has(&ledger, simulation, first));
        held[n_held++] = windows.whole[seen++];
        for (int j = 0; j < plan.samples_window; j++) /* steps that no window waits for are dropped */
            if (!wanted(simulation, first + j * plan.samples_stride))
                waits[simulation][of][first + j * plan.samples_stride] = -1;
    }
    CHECK(seen == windows.n_whole);
    check_slots();
}

static void give_one_back(void) {
    if (!n_held) return;
    int at = chance(n_held);
    mpidata_windows_give_back(&windows, held[at]);
    held[at] = held[--n_held];
}

static void drop(void) {
    int by_group = chance(2), simulation = chance(SIMULATIONS), of = chance(TRIES);
    if (by_group) mpidata_windows_drop_group(&windows, group_of(of));
    else mpidata_windows_drop_tries(&windows, simulation, try_of(of));
    for (int s = 0; s < SIMULATIONS; s++)
        for (int i = 0; i < TRIES; i++)
            if (by_group ? group_of(i) == group_of(of) : s == simulation && try_of(i) <= try_of(of)) forget(s, i);
    check_slots();
}

static void one_seed(int seed) {
    state = (uint64_t)seed * UINT64_C(2654435761) + 1;
    for (int i = 0; i < SIMULATIONS * TRIES; i++) forget(i / TRIES, i % TRIES);
    memset(entered, 0, sizeof entered);
    n_held = 0;
    plan.samples_window = 2 + chance(MOST - 1);
    plan.samples_stride = 1 + chance(3);
    plan.samples_run = (plan.samples_window - 1) * plan.samples_stride + chance(4);
    plan.trainers = 1 + chance(3);
    CHECK(mpidata_ledger_open(&ledger, &plan, chance(plan.trainers)) == MPIDATA_SUCCESS);
    CHECK(mpidata_slots_open(&slots, &plan) == MPIDATA_SUCCESS);
    mpidata_windows_open(&windows, &plan, &ledger, &slots);
    int at[SIMULATIONS][TRIES] = {{0}};
    for (int round = 0; round < ROUNDS; round++) {
        int simulation = chance(SIMULATIONS), of = chance(TRIES), step = at[simulation][of];
        int ahead = step + chance(3); /* with several ranks or routes, steps come slightly out of order */
        add(simulation, of, chance(4) || ahead >= STEPS ? step : ahead);
        at[simulation][of] = (step + 1) % STEPS;
        if (chance(3) == 0) give_one_back();
        if (chance(60) == 0) drop();
    }
    while (n_held) give_one_back();
    mpidata_windows_drop_all(&windows);
    CHECK(free_slots() == slots.n_slots); /* no step is held any more */
    mpidata_windows_close(&windows);
    mpidata_slots_close(&slots);
    mpidata_ledger_close(&ledger);
}

/* The buffer's account counts steps, not windows: a step in several windows counts once. */
static void account(void) {
    int64_t number[2], of[3];
    plan.samples_window = 2;
    plan.samples_stride = plan.samples_run = plan.trainers = 1;
    CHECK(mpidata_ledger_open(&ledger, &plan, 0) == MPIDATA_SUCCESS && mpidata_slots_open(&slots, &plan) == MPIDATA_SUCCESS);
    mpidata_windows_open(&windows, &plan, &ledger, &slots);
    for (int i = 0; i < 3; i++) CHECK((of[i] = mpidata_slots_take(&slots, -1)) >= 0);
    for (int i = 0; i < 2; i++) CHECK(mpidata_windows_make(&windows, of + i, &number[i]) == MPIDATA_SUCCESS);
    CHECK(mpidata_windows_new_steps(&windows, number[0]) == 2);
    mpidata_windows_enter(&windows, number[0]);
    CHECK(mpidata_windows_new_steps(&windows, number[1]) == 1 && windows.in_buffer == 2);
    mpidata_windows_enter(&windows, number[1]);
    CHECK(windows.in_buffer == 3 && windows.unseen == 3);
    mpidata_windows_see(&windows, number[0]);
    CHECK(windows.unseen == 2 && mpidata_windows_new_unseen(&windows, number[0]) == 1);
    mpidata_windows_leave(&windows, number[0]);
    CHECK(windows.in_buffer == 2);
    mpidata_windows_give_back(&windows, number[0]);
    CHECK(free_slots() == slots.n_slots - 2);
    mpidata_windows_see(&windows, number[1]);
    mpidata_windows_leave(&windows, number[1]);
    mpidata_windows_give_back(&windows, number[1]);
    CHECK(windows.in_buffer == 0 && windows.unseen == 0 && free_slots() == slots.n_slots);
    mpidata_windows_close(&windows);
    mpidata_slots_close(&slots);
    mpidata_ledger_close(&ledger);
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    for (int seed = 0; seed < 300; seed++) one_seed(seed);
    account();
    mpidata_plan_free(&plan);
    return 0;
}

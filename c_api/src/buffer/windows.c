#include "buffer/windows.h"

#include <stdlib.h>
#include <string.h>

#include "containers/array.h"

typedef struct {
    int64_t step, slot;
} waiting_step;

struct mpidata_try {
    int64_t simulation, by_try;
    int group;
    waiting_step *steps; /* in order */
    int64_t n, allocated;
    mpidata_try *next;
};

void mpidata_windows_open(mpidata_windows *windows, const mpidata_plan *plan, mpidata_ledger *ledger, mpidata_slots *slots) {
    memset(windows, 0, sizeof *windows);
    windows->ledger = ledger;
    windows->slots = slots;
    if (plan->samples_window > 1) windows->plan = plan;
}

void mpidata_windows_close(mpidata_windows *windows) {
    if (windows->plan) mpidata_windows_drop_all(windows);
    free(windows->steps);
    free(windows->draws);
    free(windows->free);
    free(windows->whole);
    memset(windows, 0, sizeof *windows);
}

void mpidata_windows_let_go(mpidata_windows *windows, int64_t slot) {
    if (--windows->slots->slots[slot]->holders == 0) mpidata_slots_give_back(windows->slots, slot);
}

/* -- windows -------------------------------------------------------------------------------------------------------- */

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for windows of steps."); }

static int reserve(mpidata_windows *windows) {
    if (windows->n_free || windows->n < windows->allocated) return MPIDATA_SUCCESS;
    int64_t n = mpidata_array_room(windows->allocated, windows->n + 1, 256);
    if (!mpidata_array_resize(&windows->steps, n * windows->plan->samples_window, sizeof *windows->steps) ||
        !mpidata_array_resize(&windows->draws, n, sizeof *windows->draws) ||
        !mpidata_array_resize(&windows->free, n, sizeof *windows->free))
        return no_memory();
    windows->allocated = n;
    return MPIDATA_SUCCESS;
}

int mpidata_windows_make(mpidata_windows *windows, const int64_t *slots, int64_t *number) {
    MPIDATA_TRY(reserve(windows));
    int length = windows->plan->samples_window;
    *number = windows->n_free ? windows->free[--windows->n_free] : windows->n++;
    memcpy(windows->steps + *number * length, slots, (size_t)length * sizeof *slots);
    windows->draws[*number] = -1;
    for (int i = 0; i < length; i++) windows->slots->slots[slots[i]]->holders++;
    return MPIDATA_SUCCESS;
}

const int64_t *mpidata_windows_steps(const mpidata_windows *windows, int64_t number) {
    return windows->steps + number * windows->plan->samples_window;
}

void mpidata_windows_give_back(mpidata_windows *windows, int64_t number) {
    const int64_t *steps = mpidata_windows_steps(windows, number);
    for (int i = 0; i < windows->plan->samples_window; i++) mpidata_windows_let_go(windows, steps[i]);
    windows->free[windows->n_free++] = number;
}

/* -- the buffer's account ------------------------------------------------------------------------------------------- */

static mpidata_slot *step_of(const mpidata_windows *windows, int64_t number, int i) {
    return windows->slots->slots[mpidata_windows_steps(windows, number)[i]];
}

static int64_t weight(const mpidata_windows *windows, const mpidata_slot *slot) {
    return windows->in_bytes ? mpidata_slot_size(windows->slots, slot) : 1;
}

void mpidata_windows_enter(mpidata_windows *windows, int64_t number) {
    for (int i = 0; i < windows->plan->samples_window; i++) {
        mpidata_slot *slot = step_of(windows, number, i);
        if (!slot->in_buffer++) windows->in_buffer += weight(windows, slot);
        if (!slot->unseen++) windows->unseen += weight(windows, slot);
    }
}

void mpidata_windows_see(mpidata_windows *windows, int64_t number) {
    for (int i = 0; i < windows->plan->samples_window; i++) {
        mpidata_slot *slot = step_of(windows, number, i);
        if (!--slot->unseen) windows->unseen -= weight(windows, slot);
    }
}

void mpidata_windows_leave(mpidata_windows *windows, int64_t number) {
    for (int i = 0; i < windows->plan->samples_window; i++) {
        mpidata_slot *slot = step_of(windows, number, i);
        if (!--slot->in_buffer) windows->in_buffer -= weight(windows, slot);
    }
}

int64_t mpidata_windows_new_steps(const mpidata_windows *windows, int64_t number) {
    int64_t n = 0;
    for (int i = 0; i < windows->plan->samples_window; i++) {
        const mpidata_slot *slot = step_of(windows, number, i);
        if (!slot->in_buffer) n += weight(windows, slot);
    }
    return n;
}

int64_t mpidata_windows_new_unseen(const mpidata_windows *windows, int64_t number) {
    int64_t n = 0;
    for (int i = 0; i < windows->plan->samples_window; i++) {
        const mpidata_slot *slot = step_of(windows, number, i);
        if (!slot->unseen) n += weight(windows, slot);
    }
    return n;
}

int64_t mpidata_windows_size(const mpidata_windows *windows, int64_t number) {
    int64_t bytes = 0;
    for (int i = 0; i < windows->plan->samples_window; i++)
        bytes += mpidata_slot_size(windows->slots, step_of(windows, number, i));
    return bytes;
}

/* -- tries ---------------------------------------------------------------------------------------------------------- */

static mpidata_try **chain_of(mpidata_windows *windows, int64_t simulation) {
    return &windows->tries[simulation % MPIDATA_TRY_CHAINS];
}

static mpidata_try *try_of(mpidata_windows *windows, int group, int64_t simulation, int64_t by_try) {
    mpidata_try **chain = chain_of(windows, simulation), *of = *chain;
    while (of && (of->simulation != simulation || of->by_try != by_try || of->group != group)) of = of->next;
    if (of || !(of = calloc(1, sizeof *of))) return of;
    *of = (mpidata_try){.simulation = simulation, .by_try = by_try, .group = group, .next = *chain};
    return *chain = of;
}

/* Place of the first step that is not before this one: searched from the end, because steps usually come in order. */
static int64_t place_of(const mpidata_try *of, int64_t step) {
    int64_t low = 0, high = of->n;
    if (!high || of->steps[high - 1].step < step) return high;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (of->steps[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t slot_of(const mpidata_try *of, int64_t step) {
    int64_t place = place_of(of, step);
    return place < of->n && of->steps[place].step == step ? of->steps[place].slot : -1;
}

static int insert(mpidata_try *of, int64_t step, int64_t slot) {
    if (!mpidata_array_reserve(&of->steps, &of->allocated, of->n + 1, 16, sizeof *of->steps)) return no_memory();
    int64_t place = place_of(of, step);
    memmove(of->steps + place + 1, of->steps + place, (size_t)(of->n - place) * sizeof *of->steps);
    of->steps[place] = (waiting_step){step, slot};
    of->n++;
    return MPIDATA_SUCCESS;
}

static void drop_step(mpidata_windows *windows, mpidata_try *of, int64_t step) {
    int64_t place = place_of(of, step);
    if (place == of->n || of->steps[place].step != step) return;
    int64_t slot = of->steps[place].slot;
    memmove(of->steps + place, of->steps + place + 1, (size_t)(--of->n - place) * sizeof *of->steps);
    mpidata_windows_let_go(windows, slot);
}

static void drop_try(mpidata_windows *windows, mpidata_try **link) {
    mpidata_try *of = *link;
    *link = of->next;
    for (int64_t i = 0; i < of->n; i++) mpidata_windows_let_go(windows, of->steps[i].slot);
    free(of->steps);
    free(of);
}

void mpidata_windows_drop_tries(mpidata_windows *windows, int64_t simulation, int64_t by_try) {
    for (mpidata_try **link = chain_of(windows, simulation); *link;) {
        if ((*link)->simulation == simulation && (*link)->by_try <= by_try)
            drop_try(windows, link);
        else
            link = &(*link)->next;
    }
}

void mpidata_windows_drop_group(mpidata_windows *windows, int group) {
    for (int chain = 0; chain < MPIDATA_TRY_CHAINS; chain++)
        for (mpidata_try **link = &windows->tries[chain]; *link;) {
            if ((*link)->group == group)
                drop_try(windows, link);
            else
                link = &(*link)->next;
        }
}

void mpidata_windows_drop_all(mpidata_windows *windows) {
    for (int chain = 0; chain < MPIDATA_TRY_CHAINS; chain++)
        while (windows->tries[chain]) drop_try(windows, &windows->tries[chain]);
}

/* -- steps ---------------------------------------------------------------------------------------------------------- */

static int is_open(const mpidata_windows *windows, int64_t simulation, int64_t first) {
    return mpidata_plan_trainer(windows->plan, simulation, first) == windows->ledger->trainer &&
           !mpidata_ledger_has(windows->ledger, simulation, first);
}

/* The latest window first: if steps come in order, it is the open one. */
int mpidata_windows_want(const mpidata_windows *windows, int64_t simulation, int64_t step) {
    int64_t stride = windows->plan->samples_stride, first = step;
    for (int i = 0; i < windows->plan->samples_window && first >= 0; i++, first -= stride)
        if (is_open(windows, simulation, first)) return 1;
    return 0;
}

/* Fill in the slots of a window, from the last one: if steps come in order, that is the missing one. */
static int is_whole(const mpidata_windows *windows, const mpidata_try *of, int64_t first, int64_t *slots) {
    for (int i = windows->plan->samples_window - 1; i >= 0; i--)
        if ((slots[i] = slot_of(of, first + i * windows->plan->samples_stride)) < 0) return 0;
    return 1;
}

static int enter_whole(mpidata_windows *windows, mpidata_try *of, int64_t first, int64_t *slots) {
    int64_t number;
    if (first < 0 || !is_open(windows, of->simulation, first) || !is_whole(windows, of, first, slots))
        return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_ledger_enter(windows->ledger, of->simulation, first));
    MPIDATA_TRY(mpidata_windows_make(windows, slots, &number));
    MPIDATA_TRY(mpidata_slots_append(&windows->whole, &windows->n_whole, &windows->whole_allocated, number));
    for (int i = 0; i < windows->plan->samples_window; i++) {
        int64_t step = first + i * windows->plan->samples_stride;
        if (!mpidata_windows_want(windows, of->simulation, step)) drop_step(windows, of, step);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_windows_add(mpidata_windows *windows, int group, int64_t by_try, int64_t number) {
    mpidata_slot *slot = windows->slots->slots[number];
    int64_t step = *slot->step, stride = windows->plan->samples_stride;
    int length = windows->plan->samples_window;
    mpidata_try *of = try_of(windows, group, *slot->simulation, by_try);
    int64_t *slots = of ? malloc((size_t)length * sizeof *slots) : NULL;
    if (!slots) return no_memory();
    windows->n_whole = 0;
    slot->holders = 1;
    int status = insert(of, step, number);
    for (int i = length - 1; i >= 0 && !status; i--) status = enter_whole(windows, of, step - i * stride, slots);
    free(slots);
    return status;
}

/* A trainer's events for the scheduler stay in order while the scheduler takes none. */
#include "check.h"
#include "stream/state.h"

static void post(mpidata_trainer *trainer, int kind) {
    const mpidata_event event = {.kind = kind};
    CHECK(mpidata_trainer_post_locked(trainer, &event) == MPIDATA_SUCCESS);
}

static void check_kinds(const mpidata_trainer *trainer, const int *kinds, int n) {
    int i = 0;
    for (const mpidata_outgoing *at = trainer->outbox; at; at = at->next, i++) CHECK(i < n && at->event.kind == kinds[i]);
    CHECK(i == n);
}

int main(void) {
    static mpidata_trainer trainer;
    CHECK(mpidata_trainer_open_state(&trainer) == MPIDATA_SUCCESS);
    mpidata_lock_take(&trainer.lock);
    post(&trainer, MPIDATA_EVENT_STATUS);
    post(&trainer, MPIDATA_EVENT_HELD);
    post(&trainer, MPIDATA_EVENT_STATUS); /* replaces the older one */
    check_kinds(&trainer, (int[]){MPIDATA_EVENT_HELD, MPIDATA_EVENT_STATUS}, 2);
    post(&trainer, MPIDATA_EVENT_GOODBYE);
    post(&trainer, MPIDATA_EVENT_STATUS); /* the goodbye holds only after the status before it */
    post(&trainer, MPIDATA_EVENT_STATUS);
    check_kinds(&trainer, (int[]){MPIDATA_EVENT_HELD, MPIDATA_EVENT_STATUS, MPIDATA_EVENT_GOODBYE, MPIDATA_EVENT_STATUS}, 4);
    while (trainer.outbox) {
        mpidata_outgoing *first = trainer.outbox;
        trainer.outbox = first->next;
        free(first);
    }
    mpidata_lock_give(&trainer.lock);
    mpidata_trainer_close_state(&trainer);
    return 0;
}

/* A trainer's receive thread: its messages outlive it, its events are bounded, and others can hold it. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "fake_mpi.h"
#include "receive/receive.h"
#include "stream/state.h"
#include "trainer/trainer.h"

static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 4\ntrainers 2\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\npolicy fifo\ncapacity 100\ntail drop\nfield u float32 1 4\n";

static mpidata_trainer *open_trainer(void) {
    mpidata_trainer *trainer = calloc(1, sizeof *trainer);
    const mpidata_plan *plan = &trainer->job.plan;
    fake_reset();
    fake_ranks = 4;
    CHECK(!mpidata_plan_parse(plan_text, &trainer->job.plan));
    CHECK(!mpidata_trainer_open_state(trainer) && !mpidata_slots_open(&trainer->slots, plan));
    CHECK(!mpidata_ledger_open(&trainer->ledger, plan, 0));
    CHECK(!mpidata_buffer_open(&trainer->buffer, plan->policy, plan->capacity, plan->watermark, plan->seed, 0));
    return trainer;
}

/* Returns whether the address is on this thread's stack. */
static int on_stack(const void *address) {
    pthread_attr_t attributes;
    void *from;
    size_t bytes;
    CHECK(!pthread_getattr_np(pthread_self(), &attributes) && !pthread_attr_getstack(&attributes, &from, &bytes));
    CHECK(!pthread_attr_destroy(&attributes));
    return (const char *)address >= (const char *)from && (const char *)address < (const char *)from + bytes;
}

/* The job ends, for example after an error, while the trainers' agreement waits for another trainer. */
static void an_agreement_outlives_the_thread(void) {
    mpidata_trainer *trainer = open_trainer();
    const mpidata_order all_gone = {.kind = MPIDATA_ORDER_ALL_GONE};
    (void)fake_send(0, MPIDATA_TAG_ORDER, &all_gone, sizeof all_gone);
    mpidata_lock_take(&trainer->lock);
    mpidata_phase_leave_locked(&trainer->phase);
    mpidata_lock_give(&trainer->lock);
    CHECK(!mpidata_receive_thread(trainer) && mpidata_receive_done(&trainer->phase));
    int found = 0;
    for (int i = 0; i < fake_n; i++) {
        if (!fake_messages[i].held) continue;
        found++;
        CHECK(!on_stack(fake_messages[i].bytes) && !on_stack(fake_messages[i].target));
        memset(fake_messages[i].target, 0xff, fake_messages[i].size); /* AddressSanitizer knows what was freed */
    }
    CHECK(found == 1);
    free(trainer);
}

static void post(mpidata_trainer *trainer, mpidata_event event) {
    mpidata_lock_take(&trainer->lock);
    CHECK(!mpidata_trainer_post_locked(trainer, &event));
    mpidata_lock_give(&trainer->lock);
}

static void report(mpidata_trainer *trainer, const char *name, double value) {
    mpidata_lock_take(&trainer->lock);
    CHECK(!mpidata_trainer_post_report_locked(trainer, name, value));
    mpidata_lock_give(&trainer->lock);
}

/* Returns the values of a name that wait to be sent, and the number of their events. */
static int reported(const mpidata_trainer *trainer, const char *name, double *values, int64_t *batches, int *events) {
    int n = 0;
    *events = 0;
    for (const mpidata_outgoing *at = trainer->outbox; at; at = at->next) {
        if (at->event.kind != MPIDATA_EVENT_REPORT) continue;
        mpidata_event event = at->event;
        CHECK(mpidata_event_fits(&trainer->job.plan, &event, (int)mpidata_event_bytes(&event), MPIDATA_ROLE_TRAINER));
        ++*events;
        for (const char *from = event.text; from < event.text + event.report.bytes; from += 17 + strlen(from + 16)) {
            if (strcmp(from + 16, name)) continue;
            memcpy(&batches[n], from, 8);
            memcpy(&values[n++], from + 8, 8);
        }
    }
    return n;
}

static double values[200000];
static int64_t batches[200000];

/* All values reach the scheduler, each with its batch, in few messages. */
static void reports_share_messages(void) {
    mpidata_trainer *trainer = open_trainer();
    int events;
    for (int i = 0; i < 1000; i++) {
        trainer->drawn = i;
        report(trainer, "loss", 0.5 * i);
        report(trainer, "accuracy", i);
        post(trainer, (mpidata_event){.kind = MPIDATA_EVENT_STATUS});
    }
    CHECK(reported(trainer, "loss", values, batches, &events) == 1000);
    for (int i = 0; i < 1000; i++) CHECK(values[i] == 0.5 * i && batches[i] == i);
    CHECK(reported(trainer, "accuracy", values, batches, &events) == 1000 && events < 1000 / 20);
    char name[400] = {0};
    memset(name, 'x', sizeof name - 1);
    report(trainer, name, 1.0); /* is truncated */
    name[127] = '\0';
    CHECK(reported(trainer, name, values, batches, &events) == 1);
}

/* Memory stays bounded if the scheduler takes nothing; the first values, the newest ones and all sums are kept. */
static void reports_that_wait_are_bounded(void) {
    mpidata_trainer *trainer = open_trainer();
    int events, n;
    for (int i = 0; i < 100000; i++) {
        report(trainer, "loss", i);
        if (i % 1000 == 0) report(trainer, "record.samples", i);
    }
    n = reported(trainer, "loss", values, batches, &events);
    CHECK(n > 40000 && n < 60000 && events < 520 && values[0] < 0.5 && values[n - 1] > 99998.5);
    CHECK(values[n - 1] - values[n / 2] < n && reported(trainer, "record.samples", values, batches, &events) == 100);
}

/* The events that wait for a scheduler that takes nothing stay bounded: only the newest of each kind is kept. */
static void what_waits_to_be_sent_is_bounded(void) {
    mpidata_trainer *trainer = open_trainer();
    for (int i = 0; i < 1000; i++) {
        post(trainer, (mpidata_event){.kind = MPIDATA_EVENT_STATUS, .status = {.statistics = {.drawn = i}}});
        post(trainer, (mpidata_event){.kind = MPIDATA_EVENT_CHECKPOINT_WANTED, .wanted = {i}});
    }
    for (int i = 0; i < 3; i++) post(trainer, (mpidata_event){.kind = MPIDATA_EVENT_HELD, .held = {i, 1}});
    post(trainer, (mpidata_event){.kind = MPIDATA_EVENT_GOODBYE});
    int n[MPIDATA_EVENT_RECORD_STOPPED + 1] = {0};
    const mpidata_outgoing *last = NULL;
    for (const mpidata_outgoing *at = trainer->outbox; at; last = at, at = at->next) {
        n[at->event.kind]++;
        if (at->event.kind == MPIDATA_EVENT_STATUS) CHECK(at->event.status.statistics.drawn == 999);
    }
    CHECK(n[MPIDATA_EVENT_STATUS] == 1 && n[MPIDATA_EVENT_CHECKPOINT_WANTED] == 1);
    CHECK(n[MPIDATA_EVENT_HELD] == 3);
    CHECK(last->event.kind == MPIDATA_EVENT_GOODBYE && trainer->outbox_end == &last->next);
}

static int losses_waiting(const mpidata_trainer *trainer) {
    int n = 0;
    for (const mpidata_outgoing *at = trainer->outbox; at; at = at->next) n += at->event.kind == MPIDATA_EVENT_LOSSES;
    return n;
}

/* The caller adds up losses while the scheduler takes nothing. */
static void losses_wait_where_they_can_be_added_up(void) {
    mpidata_trainer *trainer = open_trainer();
    mpidata_trainer_set(trainer);
    mpidata_losses losses[2 * MPIDATA_LOSSES_MAX + 1] = {{.count = 1}};
    losses[2 * MPIDATA_LOSSES_MAX].simulation = 7;
    CHECK(!mpidata_trainer_losses(losses, 2 * MPIDATA_LOSSES_MAX + 1, 0) && losses_waiting(trainer) == 3);
    const mpidata_event *last = &trainer->outbox->next->next->event;
    CHECK(last->losses.count == 1 && !memcmp(last->text, &losses[2 * MPIDATA_LOSSES_MAX], sizeof *losses));
    CHECK(mpidata_trainer_losses(losses, 1, 0) == MPIDATA_ERR_AGAIN && losses_waiting(trainer) == 3);
    CHECK(!mpidata_trainer_losses(losses, 1, 1) && losses_waiting(trainer) == 4);
    mpidata_trainer_set(NULL);
}

static atomic_int probes, may_go_on, held;

static void stay_in_probe(void) {
    probes++;
    while (!may_go_on) (void)sched_yield();
}

static void *hold(void *unused) {
    (void)unused;
    CHECK(!mpidata_trainer_hold(1));
    held = 1;
    return NULL;
}

static int wants_hold(mpidata_trainer *trainer) {
    mpidata_lock_take(&trainer->lock);
    const int wants = trainer->held;
    mpidata_lock_give(&trainer->lock);
    return wants;
}

/* A hold returns once the thread has left MPI, and the held thread makes no MPI call. */
static void a_held_thread_keeps_out_of_mpi(void) {
    mpidata_trainer *trainer = open_trainer();
    pthread_t thread, holder;
    trainer->job.plan.trainers_at_least = 1;
    trainer->living = MPI_COMM_NULL;
    mpidata_trainer_set(trainer);
    fake_probed = stay_in_probe;
    fake_clock = MPIDATA_FOR_EVER; /* so that it is held for as long */
    CHECK(!pthread_create(&thread, NULL, mpidata_receive_thread, trainer));
    while (!probes) (void)sched_yield();
    CHECK(!pthread_create(&holder, NULL, hold, NULL));
    while (!wants_hold(trainer)) (void)sched_yield();
    CHECK(!held);
    may_go_on = 1;
    CHECK(!pthread_join(holder, NULL) && held);
    const int before = probes;
    (void)usleep(50000); /* time in which it would make calls */
    CHECK(probes == before);
    const mpidata_order all_gone = {.kind = MPIDATA_ORDER_ALL_GONE};
    (void)fake_send(0, MPIDATA_TAG_ORDER, &all_gone, sizeof all_gone);
    CHECK(!mpidata_trainer_hold(0) && !pthread_join(thread, NULL) && probes > before);
    mpidata_trainer_set(NULL);
    fake_probed = NULL;
    fake_clock = 0.0;
    free(trainer);
}

static atomic_int orders; /* the number that the scheduler has sent */

/* Called by the thread itself, because its messages have no lock. */
static void order_next(void) {
    static const int kinds[] = {MPIDATA_ORDER_PREPARE, MPIDATA_ORDER_PREPARE, MPIDATA_ORDER_DISMISS, MPIDATA_ORDER_ALL_GONE};
    static int sent;
    probes++;
    if (sent == orders) return;
    const mpidata_order order = {.kind = kinds[sent++], .of_group = {.group = 7, .role = MPIDATA_ROLE_SOLVER}};
    (void)fake_send(0, MPIDATA_TAG_ORDER, &order, sizeof order);
}

static int joins(mpidata_trainer *trainer) {
    mpidata_lock_take(&trainer->lock);
    const int about_to = trainer->joins;
    mpidata_lock_give(&trainer->lock);
    return about_to;
}

/* A held thread does not join a group, and a thread about to join cannot be held until it is dismissed. */
static void a_thread_that_joins_is_not_held(void) {
    mpidata_trainer *trainer = open_trainer();
    pthread_t thread, holder;
    trainer->job.plan.trainers_at_least = 1;
    trainer->living = MPI_COMM_NULL;
    mpidata_trainer_set(trainer);
    fake_probed = order_next;
    held = 0;
    CHECK(!mpidata_trainer_hold(1));
    orders = 1;
    probes = 0;
    CHECK(!pthread_create(&thread, NULL, mpidata_receive_thread, trainer));
    while (probes < 50) (void)sched_yield(); /* it still makes rounds, and obeys */
    CHECK(!joins(trainer) && !mpidata_trainer_hold(0));
    orders = 2;
    while (!joins(trainer)) (void)sched_yield();
    CHECK(!pthread_create(&holder, NULL, hold, NULL));
    while (!wants_hold(trainer)) (void)sched_yield();
    (void)usleep(50000); /* time in which it would get it */
    CHECK(!held);
    orders = 3;
    CHECK(!pthread_join(holder, NULL) && held && !joins(trainer));
    CHECK(!mpidata_trainer_hold(0));
    orders = 4;
    CHECK(!pthread_join(thread, NULL));
    mpidata_trainer_set(NULL);
    fake_probed = NULL;
    free(trainer);
}

int main(void) {
    a_held_thread_keeps_out_of_mpi();
    a_thread_that_joins_is_not_held();
    an_agreement_outlives_the_thread();
    what_waits_to_be_sent_is_bounded();
    reports_share_messages();
    reports_that_wait_are_bounded();
    losses_wait_where_they_can_be_added_up();
    return 0;
}

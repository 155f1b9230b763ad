/* A rank's messages must stay unchanged until MPI has finished with them. */
#include "example_plan.h"
#include "fake_mpi.h"
#include "base/wait.h"
#include "solver/sender.h"

static mpidata_job job;

/* A rank that ends after a misuse closes its sender while trainers may still read from it. */
static void what_is_under_way_outlives_the_sender(void) {
    const mpidata_block block = {.field = 0, .ndim = 2, .shape = {4, 6}};
    float values[24];
    mpidata_sender sender;
    for (int i = 0; i < 24; i++) values[i] = (float)i;
    fake_hold_sends = 1;
    CHECK(!mpidata_sender_open(&sender, &job));
    CHECK(!mpidata_sender_stage(&sender, &block, &(mpidata_put_arguments){.values = values, .dtype = MPIDATA_FLOAT32}, 0));
    CHECK(!mpidata_sender_commit(&sender, 0, 0, 0.5, 0, (double[]){0.25, 0.75}));
    CHECK(fake_n == 1);
    char before[1024];
    size_t size = fake_messages[0].size;
    CHECK(size <= sizeof before);
    memcpy(before, fake_messages[0].bytes, size);
    mpidata_sender_close(&sender);
    CHECK(!memcmp(before, fake_messages[0].bytes, size));
    fake_reset();
}

/* MPI needs only the copy of an array that travels with others: the lent array is free, and MPI is not called. */
static void a_small_array_is_free_at_once(void) {
    const mpidata_block block = {.field = 0, .ndim = 2, .shape = {4, 6}};
    float values[24] = {0};
    mpidata_sender sender;
    fake_hold_sends = 1;
    CHECK(!mpidata_sender_open(&sender, &job));
    CHECK(!mpidata_sender_stage(&sender, &block, &(mpidata_put_arguments){.values = values, .dtype = MPIDATA_FLOAT32}, 1));
    CHECK(!mpidata_sender_commit(&sender, 0, 0, 0.5, 0, (double[]){0.25, 0.75}));
    CHECK(fake_n == 1);
    const int before = fake_n_tested;
    CHECK(!mpidata_sender_wait_for(&sender, values));
    CHECK(fake_n_tested == before);
    mpidata_sender_close(&sender);
    fake_reset();
}

/* The scheduler may take longer than the second for which a rank waits for it. */
static void an_event_outlives_its_call(void) {
    fake_hold_sends = 1;
    for (int i = 0; i < 2; i++) {
        mpidata_event event = {.kind = MPIDATA_EVENT_HELD, .held = {i, 1}};
        CHECK(!mpidata_job_send_event(&job, &event));
        memset(&event, 0xff, sizeof event);
    }
    CHECK(fake_n == 2);
    for (int i = 0; i < 2; i++) CHECK(((const mpidata_event *)fake_messages[i].bytes)->held.simulation == i);
    fake_reset();
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &job.plan) == MPIDATA_SUCCESS);
    fake_tick = 0.03;
    what_is_under_way_outlives_the_sender();
    a_small_array_is_free_at_once();
    an_event_outlives_its_call();
    mpidata_plan_free(&job.plan);
    return 0;
}

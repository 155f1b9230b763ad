/* Trainers reach the same agreement if one of them dies, although only some may have received the result. */
#include "fake_mpi.h"
#include "stream/agreement.h"
#include "stream/deaths/adoption.h"
#include "stream/state.h"

static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 5\ntrainers 3\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\ntrainers_at_least 1\npolicy fifo\ncapacity 100\ntail drop\nfield u float32 1 4\n";

enum { TRAINERS = 2, BATCH = 4 };

typedef struct {
    mpidata_trainer trainer;
    mpidata_agreement agreement;
} member;

static void open_member(member *one) {
    memset(one, 0, sizeof *one);
    CHECK(!mpidata_plan_parse(plan_text, &one->trainer.job.plan));
    CHECK(!mpidata_trainer_open_state(&one->trainer));
    CHECK(!mpidata_buffer_open(&one->trainer.buffer, one->trainer.job.plan.policy, 100, 0, 0, 0));
    CHECK(!mpidata_adoption_open(&one->trainer) && one->trainer.adoption.on);
    one->trainer.living = MPI_COMM_NULL;
    one->trainer.batch = BATCH;
}

static void close_member(member *one) {
    mpidata_adoption_close(&one->trainer);
    mpidata_buffer_close(&one->trainer.buffer);
    mpidata_trainer_close_state(&one->trainer);
    mpidata_plan_free(&one->trainer.job.plan);
}

/* All contribute; trainer `deaf` receives a failure instead of the result. */
static void agree(member *all, int deaf) {
    int64_t most[MPIDATA_AGREEMENT_ENTRIES];
    const int first = fake_n;
    int did = 0;
    for (int t = 0; t < TRAINERS; t++) CHECK(!mpidata_agree(&all[t].trainer, &all[t].agreement, &did));
    CHECK(fake_n == first + TRAINERS);
    for (int e = 0; e < MPIDATA_AGREEMENT_ENTRIES; e++)
        most[e] = all[0].agreement.mine[e] > all[1].agreement.mine[e] ? all[0].agreement.mine[e] : all[1].agreement.mine[e];
    for (int t = 0; t < TRAINERS; t++) {
        fake_messages[first + t].bytes = most;
        fake_messages[first + t].held = 0;
        fake_messages[first + t].dead = t == deaf;
        CHECK(!mpidata_agree(&all[t].trainer, &all[t].agreement, &did) && all[t].agreement.broken == (t == deaf));
    }
}

/* Like the survivors, in their own communicator. */
static void come_together(member *all) {
    for (int t = 0; t < TRAINERS; t++) {
        all[t].agreement = (mpidata_agreement){.first = 1};
        all[t].trainer.adoption.greets = 1;
        all[t].trainer.checkpoint.asking = 0;
    }
}

static void a_checkpoint_that_one_alone_knows_of(void) {
    static member all[TRAINERS];
    fake_reset();
    for (int t = 0; t < TRAINERS; t++) {
        open_member(&all[t]);
        all[t].trainer.drawn = all[t].trainer.granted = 6 + t;
        all[t].trainer.checkpoint.wanted = 1;
    }
    agree(all, 0);
    CHECK(all[0].trainer.checkpoint.agreed == 0 && all[1].trainer.checkpoint.agreed == 1 && all[1].trainer.checkpoint.at == 7);
    come_together(all);
    agree(all, -1);
    CHECK(all[0].trainer.checkpoint.agreed == 1 && all[0].trainer.checkpoint.at == 7 && all[0].trainer.checkpoint.due);
    CHECK(!all[0].trainer.checkpoint.asking && all[1].trainer.checkpoint.at == 7);
    for (int t = 0; t < TRAINERS; t++) close_member(&all[t]);
}

int main(void) {
    if (!FAKE_DEATH) return 0;
    a_checkpoint_that_one_alone_knows_of();
    return 0;
}

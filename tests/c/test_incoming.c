/* The receive thread assembles samples from messages, also if these are slow or their senders die. */
#include "fake_mpi.h"
#include "receive/incoming.h"

/* Ranks 2 and 3 are group 0, ranks 4 and 5 group 1. Each half of the field is a separate message. */
static const char plan_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nseed 7\nworld 6\ntrainers 1\ngroups 2\nranks_per_group 2\nin_flight 4\n"
    "simulations 10\nvalidation 0\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nfield u float32 2 2 10000\n"
    "program solver\nargument ./solver\n";

enum { HALF = 10000 };

static mpidata_trainer trainer;
static mpidata_incoming in;
static float values[HALF];

static void open_with(const char *text) {
    const mpidata_plan *plan = &trainer.job.plan;
    fake_reset();
    memset(&trainer, 0, sizeof trainer);
    CHECK(!mpidata_plan_parse(text, &trainer.job.plan));
    CHECK(!mpidata_trainer_open_state(&trainer) && !mpidata_slots_open(&trainer.slots, plan));
    CHECK(!mpidata_ledger_open(&trainer.ledger, plan, 0));
    CHECK(!mpidata_buffer_open(&trainer.buffer, plan->policy, plan->capacity, plan->watermark, plan->seed, 0));
    CHECK(!mpidata_incoming_open(&in, &trainer));
}

static void open_all(void) {
    fake_ranks = 6;
    open_with(plan_text);
}

static void close_all(void) {
    mpidata_incoming_close(&in);
    mpidata_buffer_close(&trainer.buffer);
    mpidata_ledger_close(&trainer.ledger);
    mpidata_slots_close(&trainer.slots);
    mpidata_trainer_close_state(&trainer);
    free(trainer.arrived);
    mpidata_plan_free(&trainer.job.plan);
}

static int64_t slots_in_use(void) {
    int64_t n = 0;
    for (int64_t i = 0; i < trainer.slots.n_slots; i++) n += trainer.slots.slots[i]->page->in_use;
    return n;
}

typedef struct {
    mpidata_piece piece;
    mpidata_block block;
    char padding[256];
} header;

/* A rank sends its half of a step: a header and a block; returns the block's message. */
static fake_message *send_half(header *memory, int rank, int64_t step) {
    int half = (rank - 2) % 2;
    *memory = (header){.piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = 1, .simulation = (rank - 2) / 2, .step = step, .by_try = 1},
                       .block = {.ndim = 2, .start = {half, 0}, .shape = {1, HALF}}};
    (void)fake_send(rank, MPIDATA_TAG_SAMPLE, memory, mpidata_piece_header_bytes(0, 1, 0));
    return fake_send(rank, MPIDATA_TAG_SAMPLE, values, sizeof values);
}

static void take(void) {
    for (int did = 1; did;) {
        did = 0;
        CHECK(!mpidata_incoming_take(&in, &did));
    }
}

/* Both blocks of a sample are under way when its group is lost, and are received, or fail, together. */
static void a_lost_sample_ends_at_once(int death) {
    header headers[2];
    open_all();
    fake_message *one = send_half(&headers[0], 2, 0), *other = send_half(&headers[1], 3, 0);
    one->held = other->held = 1;
    take();
    CHECK(in.assemblies.count == 1 && in.receives.n == 2 && slots_in_use() == 1);
    CHECK(!mpidata_incoming_lose(&in, MPIDATA_ROLE_SOLVER, 0));
    CHECK(in.assemblies.count == 1 && slots_in_use() == 1); /* still being written to */
    one->held = other->held = 0;
    one->dead = other->dead = death;
    take();
    CHECK(in.receives.n == 0 && in.assemblies.count == 0 && in.assemblies.lost == 0 && slots_in_use() == 0);
    send_half(&headers[0], 4, 0);
    send_half(&headers[1], 5, 0);
    take();
    CHECK(trainer.statistics.received == 1 && trainer.n_arrived == 1 && slots_in_use() == 1);
    close_all();
}

/* A box of constants, half from each rank; steps of `u` as above. */
static const char constants_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nseed 7\nworld 6\ntrainers 1\ngroups 2\nranks_per_group 2\nin_flight 4\n"
    "simulations 10\nvalidation 0\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nfield u float32 2 2 10000\n"
    "field xy float32 2 2 10000\nconstant xy\nprogram solver\nargument ./solver\n";

/* A rank sends its half of the constants of a try of simulation 0; returns the message. */
static fake_message *send_constants(header *memory, int rank, int64_t by_try) {
    *memory = (header){.piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = 1, .step = MPIDATA_STEP_OF_CONSTANTS, .by_try = by_try},
                       .block = {.field = 1, .ndim = 2, .start = {rank - 2, 0}, .shape = {1, HALF}}};
    (void)fake_send(rank, MPIDATA_TAG_SAMPLE, memory, mpidata_piece_header_bytes(0, 1, 0));
    return fake_send(rank, MPIDATA_TAG_SAMPLE, values, sizeof values);
}

/* Steps wait for the last part of their constants, enter the buffer in order, and keep the constants alive. */
static void steps_wait_for_their_constants(void) {
    static header constants[3], steps[4];
    fake_ranks = 6;
    open_with(constants_text);
    fake_message *last = send_constants(&constants[0], 3, 1);
    (void)send_constants(&constants[1], 2, 1);
    last->held = 1;
    for (int i = 0; i < 4; i++) send_half(&steps[i], 2 + i % 2, 1 - i / 2);
    take();
    CHECK(trainer.n_arrived == 0 && in.assemblies.count == 3 && in.assemblies.validation == 1);
    last->held = 0;
    take();
    CHECK(trainer.n_arrived == 2 && in.assemblies.count == 0 && trainer.slots.constants.n == 1);
    const mpidata_slot *first = trainer.slots.slots[trainer.arrived[0]], *second = trainer.slots.slots[trainer.arrived[1]];
    CHECK(*first->step == 0 && *second->step == 1 && first->constants == second->constants && first->constants->whole);
    CHECK(first->constants->references == 4); /* of two ranks and two steps */
    trainer.n_arrived = 0; /* as if the buffer had them */
    (void)send_constants(&constants[2], 2, 2); /* of the next try: this rank releases the previous ones */
    take();
    CHECK(first->constants->references == 3 && trainer.slots.constants.n == 2);
    CHECK(!mpidata_incoming_lose(&in, MPIDATA_ROLE_SOLVER, 0));
    CHECK(trainer.slots.constants.n == 1 && first->constants->references == 2 && in.assemblies.count == 0);
    for (int i = 0; i < 2; i++) mpidata_slots_give_back(&trainer.slots, trainer.arrived[i]);
    CHECK(trainer.slots.constants.n == 0);
    close_all();
}

/* A step before the constants of its try, constants sent twice, or another field among them are refused. */
static void constants_are_checked(int mistake) {
    static header memory[4];
    fake_ranks = 6;
    open_with(constants_text);
    if (mistake) (void)send_constants(&memory[0], 2, mistake == 1 ? 2 : 1);
    if (mistake == 2) (void)send_constants(&memory[1], 2, 1);
    for (int i = 1; mistake == 3 && i < 3; i++) (void)send_constants(&memory[i], 3, 1);
    if (mistake < 2) (void)send_half(&memory[1], 2, 0);
    if (mistake == 4) {
        (void)send_constants(&memory[1], 3, 1);
        memory[1].block.field = 0;
    }
    int status = MPIDATA_SUCCESS;
    for (int did = 1; did && !status;) {
        did = 0;
        status = mpidata_incoming_take(&in, &did);
    }
    CHECK(status == MPIDATA_ERR_WIRE);
    close_all();
}

enum { HANGING = 40 };

/* Ranks 2, 3, ... are groups of one. Their blocks are separate messages, or travel with the header. */
static void open_many(int large) {
    char text[512];
    fake_ranks = 2 + HANGING + 1;
    (void)snprintf(text, sizeof text,
                   "mpidata-plan 1\nrun /run\nfolder /folder\nworld %d\ntrainers 1\ngroups %d\nranks_per_group 1\nin_flight 4\n"
                   "simulations 100\nvalidation 0\npolicy fifo\ncapacity 100\ntail drop\nfield u float32 2 1 %d\n",
                   fake_ranks, HANGING + 1, large ? HALF : 16);
    open_with(text);
}

/* Sends the first step of a group of one; returns its last message. */
static fake_message *send_whole(header *memory, int rank, int large) {
    *memory = (header){.piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = 1, .simulation = rank, .by_try = 1,
                                 .payload_bytes = large ? 0 : 64},
                       .block = {.ndim = 2, .shape = {1, large ? HALF : 16}}};
    fake_message *sent = fake_send(rank, MPIDATA_TAG_SAMPLE, memory, mpidata_piece_bytes(0, 1, 0, memory->piece.payload_bytes));
    return large ? fake_send(rank, MPIDATA_TAG_SAMPLE, values, sizeof values) : sent;
}

/* More senders hang in the middle of a message than the trainer receives from at once. */
static void who_hangs_holds_up_nobody(int large) {
    header headers[HANGING + 1];
    fake_message *hanging[HANGING];
    open_many(large);
    for (int i = 0; i < HANGING; i++) {
        hanging[i] = send_whole(&headers[i], 2 + i, large);
        hanging[i]->held = 1;
    }
    take();
    CHECK(in.receives.n + in.n_pending == 32); /* the limit until they count as hanging */
    (void)send_whole(&headers[HANGING], 2 + HANGING, large);
    take();
    CHECK(trainer.statistics.received == 0);
    fake_clock += 1.5;
    take();
    CHECK(trainer.statistics.received == 1 && in.receives.n + in.n_pending == HANGING);
    for (int i = 0; i < HANGING; i++) hanging[i]->held = 0;
    take();
    CHECK(trainer.statistics.received == HANGING + 1 && !mpidata_incoming_busy(&in));
    close_all();
}

/* Incomplete samples of a cancelled simulation are released, also those being received; later parts are dropped. */
static void a_cancelled_simulation_comes_no_more(void) {
    header headers[6];
    open_all();
    fake_message *half = send_half(&headers[0], 2, 0);
    half->held = 1;
    (void)send_half(&headers[1], 3, 1);
    take();
    CHECK(in.assemblies.count == 2 && slots_in_use() == 2);
    CHECK(!mpidata_incoming_cancel(&in, 0, 0, 0));
    CHECK(in.assemblies.count == 1 && in.assemblies.lost == 1 && slots_in_use() == 1); /* still being received */
    half->held = 0;
    for (int i = 0; i < 4; i++) (void)send_half(&headers[2 + i], 2 + i, 0); /* 4 and 5: another group */
    take();
    CHECK(in.assemblies.count == 0 && in.assemblies.lost == 0 && slots_in_use() == 1);
    CHECK(trainer.statistics.received == 1 && trainer.statistics.duplicates == 0 && trainer.n_arrived == 1);
    close_all();
}

/* Else its group would wait for room for ever, and never learn that it is cancelled. */
static void a_full_buffer_does_not_hold_it_up(int closed) {
    header headers[4];
    open_all();
    trainer.n_arrived = 1; /* no room */
    for (int i = 0; i < 4; i++) (void)send_half(&headers[i], 2 + i, 0);
    take();
    for (int i = 0; i < fake_n; i++) CHECK(!fake_messages[i].matched);
    CHECK(!mpidata_incoming_cancel(&in, 0, 0, 0));
    if (closed) CHECK(!mpidata_incoming_cancel(&in, 0, 0, 1));
    take();
    for (int i = 0; i < fake_n; i++) CHECK(fake_messages[i].matched == (!closed && fake_messages[i].source < 4));
    CHECK(in.assemblies.count == 0 && slots_in_use() == 0 && in.drains == !closed);
    CHECK(!mpidata_incoming_lose(&in, MPIDATA_ROLE_SOLVER, 0));
    trainer.n_arrived = 0;
    close_all();
}

/* Ranks and steps release the constants of a cancelled simulation, and later constants are dropped. */
static void constants_of_a_cancelled_simulation_are_given_back(void) {
    static header constants[4], step;
    fake_ranks = 6;
    open_with(constants_text);
    fake_message *last = send_constants(&constants[0], 3, 1);
    last->held = 1;
    (void)send_constants(&constants[1], 2, 1);
    (void)send_half(&step, 2, 0);
    take();
    CHECK(in.assemblies.count == 2 && trainer.slots.constants.n == 1);
    CHECK(!mpidata_incoming_cancel(&in, 0, 0, 0));
    last->held = 0;
    take();
    CHECK(in.assemblies.count == 0 && trainer.slots.constants.n == 0 && slots_in_use() == 0);
    (void)send_constants(&constants[2], 2, 1);
    (void)send_constants(&constants[3], 3, 1);
    take();
    CHECK(in.assemblies.count == 0 && trainer.slots.constants.n == 0);
    close_all();
}

/* A job that spawns for days must not keep a communicator's memory for each lost group. */
static void what_a_lost_group_had_is_given_back(void) {
    header headers[2];
    open_all();
    for (int number = 7; number < 10; number++) {
        CHECK(!mpidata_incoming_add(&in, MPI_COMM_SELF, MPIDATA_ROLE_SOLVER, number));
        CHECK(in.n_inlets == 2);
        fake_message *half = send_half(&headers[0], 2, number);
        half->held = 1;
        take();
        CHECK(!mpidata_incoming_lose(&in, MPIDATA_ROLE_SOLVER, number));
        take();
        CHECK(in.n_inlets == 2); /* MPI may still write to it */
        half->held = 0;
        take();
        CHECK(in.n_inlets == 1);
    }
    close_all();
}

int main(void) {
    who_hangs_holds_up_nobody(1);
    who_hangs_holds_up_nobody(0);
    what_a_lost_group_had_is_given_back();
    a_lost_sample_ends_at_once(0);
    steps_wait_for_their_constants();
    a_cancelled_simulation_comes_no_more();
    a_full_buffer_does_not_hold_it_up(0);
    a_full_buffer_does_not_hold_it_up(1);
    constants_of_a_cancelled_simulation_are_given_back();
    for (int mistake = 0; mistake < 5; mistake++) constants_are_checked(mistake);
    if (FAKE_DEATH) a_lost_sample_ends_at_once(1);
    return 0;
}

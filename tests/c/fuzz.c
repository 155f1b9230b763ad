/* Fuzzes what a rank reads from others: plans, pieces of samples, parcels, orders, tasks, published arrays. Built with
 * the sanitizers. A seeded mutator derives the inputs from valid ones:
 *     fuzz FILE COUNT [SEED]    tries COUNT inputs of each kind; the current one is in FILE
 *     fuzz FILE                 tries the input in FILE again
 * LLVMFuzzerTestOneInput is libFuzzer's entry: clang -fsanitize=fuzzer with -DNO_MAIN replaces the mutator. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_mpi.h"
#include "parcel/inbox.h"
#include "parcel/sending.h"
#include "contents/contents.h"
#include "receive/incoming.h"
#include "receive/completion.h"
#include "solver/kept_constants.h"
#include "solver/map_sending.h"
#include "solver/sender.h"
#include "stream/progress.h"

enum { PLAN = 0, PIECES, PARTS, MAPS, CONSTANTS, ORDER, TASK, PUBLISHED, ASK, PARCELS, KINDS };
enum { LONGEST = 1 << 19, MOST = LONGEST - 1 };

/* Ranks 1 and 2 are trainers, 3 and 4 group 0, 5 and 6 group 1. A block of `large` is a separate message. */
static const char job_text[] =
    "mpidata-plan 1\nrun /run\nfolder /a folder\nseed 7\nworld 7\ntrainers 2\ngroups 2\nspares 0\nranks_per_group 2\n"
    "in_flight 4\nsimulations 10\nvalidation 3\npolicy firo\ncapacity 100\nwatermark 20\ntail repeat\ntimeout_s 300.0\n"
    "start_timeout_s 600.0\nstart split\nparameter alpha\nfield cells uint8 3 2 3 4\nfield large float32 2 100 90\n"
    "field scalar float64 0\nprogram solver\n";
/* The same with fields that vary. */
static const char varying_text[] =
    "mpidata-plan 1\nrun /run\nfolder /a folder\nseed 7\nworld 7\ntrainers 2\ngroups 2\nspares 0\nranks_per_group 2\n"
    "in_flight 4\nsimulations 10\nvalidation 3\npolicy firo\ncapacity 100\nwatermark 20\ntail repeat\ntimeout_s 300.0\n"
    "start_timeout_s 600.0\nstart split\nparameter alpha\nstatistics -1 1 -1\nlength nodes 0\nlength edges 90\n"
    "field cells uint8 3 2 3 4\nfield xy float32 2 nodes 2\nfield ends int64 2 2 edges\nindex ends nodes 1\nprogram solver\n";
/* The same with constants: a box, a mesh, and a field per step with the length of the mesh. */
static const char constants_text[] =
    "mpidata-plan 1\nrun /run\nfolder /a folder\nseed 7\nworld 7\ntrainers 2\ngroups 2\nspares 0\nranks_per_group 2\n"
    "in_flight 4\nsimulations 10\nvalidation 3\npolicy firo\ncapacity 100\nwatermark 20\ntail repeat\ntimeout_s 300.0\n"
    "start_timeout_s 600.0\nstart split\nparameter alpha\nstatistics -1 1 -1 -1\nlength nodes 0\nlength edges 90\n"
    "field cells uint8 3 2 3 4\nfield xy float32 2 nodes 2\nfield ends int64 2 2 edges\nfield u float32 1 nodes\n"
    "index ends nodes 1\nconstant cells\nconstant xy\nconstant ends\nprogram solver\n";
static const char small_text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 1\ntrainers 2\ngroups 1\nstart spawn\nranks_per_group 1\nin_flight 1\n"
    "simulations 1\nvalidation 0\npolicy fifo\ncapacity 9\nwatermark 0\ntail drop\nfield u float64 1 5\n";

static const char *const plans[] = {job_text, small_text, varying_text, constants_text};

/* -- in place of the arena and the heap: separate allocations, whose bounds AddressSanitizer checks ---------------- */

struct mpidata_arena_chunk {
    struct mpidata_arena_chunk *next;
    double memory[];
};

void *mpidata_arena_take(mpidata_arena *arena, size_t bytes) {
    mpidata_arena_chunk *chunk = malloc(offsetof(mpidata_arena_chunk, memory) + bytes);
    CHECK(chunk);
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk->memory;
}

void mpidata_arena_close(mpidata_arena *arena) {
    for (mpidata_arena_chunk *next; arena->chunks; arena->chunks = next) {
        next = arena->chunks->next;
        free(arena->chunks);
    }
}

void *mpidata_heap_take(mpidata_heap *heap, size_t bytes) {
    (void)heap;
    return malloc(bytes ? bytes : 1);
}

void mpidata_heap_give_back(mpidata_heap *heap, void *memory) {
    (void)heap;
    free(memory);
}

void mpidata_heap_close(mpidata_heap *heap) { (void)heap; }

/* -- what is tried -------------------------------------------------------------------------------------------------- */

static void try_plan(const uint8_t *input, size_t size) {
    mpidata_plan plan;
    char names[64], *text = malloc(size + 1);
    int index, rank_in_group;
    CHECK(text);
    memcpy(text, input, size);
    text[size] = '\0';
    if (!mpidata_plan_parse(text, &plan)) {
        for (int rank = 0; rank < plan.world && rank < 9; rank++)
            CHECK(mpidata_plan_role(&plan, rank, &index, &rank_in_group) <= MPIDATA_ROLE_SOLVER && index >= 0);
        CHECK(mpidata_plan_role(&plan, plan.world - 1, &index, &rank_in_group) <= MPIDATA_ROLE_SOLVER && index >= 0);
        CHECK(mpidata_plan_trainer(&plan, plan.simulations + plan.validation, MPIDATA_STEPS_MAX) < plan.trainers);
        mpidata_plan_field_names(&plan, names, sizeof names);
        mpidata_plan_parameter_names(&plan, names, sizeof names);
        mpidata_plan_free(&plan);
    }
    free(text);
}

static mpidata_trainer trainer;
static mpidata_incoming in;

static void open_trainer(const char *text) {
    const mpidata_plan *plan = &trainer.job.plan;
    fake_reset();
    memset(&trainer, 0, sizeof trainer);
    CHECK(!mpidata_plan_parse(text, &trainer.job.plan));
    CHECK(!mpidata_trainer_open_state(&trainer) && !mpidata_slots_open(&trainer.slots, plan));
    CHECK(!mpidata_ledger_open(&trainer.ledger, plan, 0));
    CHECK(!mpidata_buffer_open(&trainer.buffer, plan->policy, plan->capacity, plan->watermark, plan->seed, 0));
    CHECK(!mpidata_scales_open(&trainer.scales, plan));
    CHECK(!mpidata_incoming_open(&in, &trainer));
}

static void close_trainer(void) {
    for (mpidata_outgoing *next; trainer.outbox; trainer.outbox = next) {
        next = trainer.outbox->next;
        free(trainer.outbox);
    }
    mpidata_incoming_close(&in);
    mpidata_buffer_close(&trainer.buffer);
    mpidata_ledger_close(&trainer.ledger);
    mpidata_scales_close(&trainer.scales);
    mpidata_slots_close(&trainer.slots);
    mpidata_trainer_close_state(&trainer);
    free(trainer.arrived);
    free(trainer.validation);
    mpidata_plan_free(&trainer.job.plan);
}

/* A message of the input: the sender, the tag, its length, its bytes. */
typedef struct {
    uint8_t rank, validation;
    uint16_t unused;
    uint32_t size;
} envelope;

/* Take the next message off the input, into its own memory. */
static char *next_message(const uint8_t **input, size_t *size, envelope *head, size_t *bytes) {
    if (*size < sizeof *head) return NULL;
    memcpy(head, *input, sizeof *head);
    *input += sizeof *head;
    *size -= sizeof *head;
    *bytes = head->size < *size ? head->size : *size;
    char *message = malloc(*bytes + 1);
    CHECK(message);
    memcpy(message, *input, *bytes);
    *input += *bytes;
    *size -= *bytes;
    return message;
}

/* Let a trainer receive the input's messages; return the number of complete samples, or -1 after an error. */
static int64_t try_pieces(const char *text, const uint8_t *input, size_t size) {
    char *messages[FAKE_MOST];
    int n = 0, did = 1, status = MPIDATA_SUCCESS;
    size_t bytes;
    open_trainer(text);
    for (envelope head; n < FAKE_MOST && (messages[n] = next_message(&input, &size, &head, &bytes)); n++)
        (void)fake_send(head.rank % 7, MPIDATA_TAG_SAMPLE + head.validation % 2, messages[n], bytes);
    while (did && !status) {
        did = 0;
        status = mpidata_incoming_validation(&in, &did);
        if (!status) status = mpidata_incoming_take(&in, &did);
    }
    CHECK(!status || *mpidata_last_error());
    int64_t whole = status ? -1 : trainer.statistics.received + trainer.statistics.validation;
    close_trainer();
    for (int i = 0; i < n; i++) free(messages[i]);
    return whole;
}

/* The library refuses more memory than the machine has, but AddressSanitizer would end the program. */
static int asks_for_much(const char *message, size_t bytes) {
    mpidata_parcel_head head;
    int64_t size;
    if (bytes < sizeof head) return 0;
    memcpy(&head, message, sizeof head);
    for (size_t at = sizeof head; head.n_parts > 0 && at + sizeof size <= bytes; head.n_parts--, at += sizeof size) {
        memcpy(&size, message + at, sizeof size);
        if (size > LONGEST) return 1;
    }
    return 0;
}

/* Let an inbox receive parcels; return the number of complete ones, or -1 after an error. */
static int try_parcels(const uint8_t *input, size_t size) {
    static const int peers[] = {-1, -1, -1, 0, 1, 2, 3};
    char *messages[FAKE_MOST];
    int n = 0, did = 1, from, status = MPIDATA_SUCCESS, count = 0;
    size_t bytes;
    mpidata_transfers transfers = {0};
    mpidata_parcel_list whole = {0};
    fake_reset();
    mpidata_inbox *inbox = mpidata_inbox_open(MPI_COMM_SELF, MPIDATA_TAG_PARCEL, peers, 7);
    CHECK(inbox);
    for (envelope head; n < FAKE_MOST && (messages[n] = next_message(&input, &size, &head, &bytes)); n++)
        if (!asks_for_much(messages[n], bytes)) (void)fake_send(head.rank % 7, MPIDATA_TAG_PARCEL, messages[n], bytes);
    while (did && !status) {
        did = 0;
        CHECK(!mpidata_transfers_test(&transfers, &did));
        status = mpidata_inbox_take(inbox, &transfers, &from, &did);
        mpidata_inbox_whole(inbox, &whole);
        CHECK(!status || (*mpidata_last_error() && from >= 0 && from < 7));
    }
    for (mpidata_parcel *parcel; (parcel = mpidata_parcels_pop(&whole)); count++) {
        for (int64_t i = 0; i < parcel->head.n_parts; i++)
            CHECK((size_t)(parcel->offsets[i] + parcel->sizes[i]) <= parcel->bytes);
        mpidata_parcel_free(parcel);
    }
    mpidata_inbox_close(inbox);
    mpidata_transfers_close(&transfers);
    for (int i = 0; i < n; i++) free(messages[i]);
    return status ? -1 : count;
}

static void try_order(const uint8_t *input, size_t size) {
    mpidata_order order = {0};
    memcpy(&order, input, size < sizeof order ? size : sizeof order);
    open_trainer(job_text);
    if (!mpidata_order_check(&trainer.job.plan, &order, (int)size)) {
        switch (order.kind) {
        case MPIDATA_ORDER_EXPECT:
            mpidata_ledger_expect(&trainer.ledger, order.expect.simulation, order.expect.steps);
            mpidata_lock_take(&trainer.lock);
            CHECK(!mpidata_held_locked(in.trainer, order.expect.simulation));
            mpidata_lock_give(&trainer.lock);
            break;
        case MPIDATA_ORDER_RELIEVE: CHECK(trainer.buffer.capacity + order.relieve.samples > 0); break;
        case MPIDATA_ORDER_JOIN:
            CHECK(!mpidata_incoming_add(&in, MPI_COMM_NULL, order.of_group.role, order.of_group.group));
            break;
        case MPIDATA_ORDER_LOST: CHECK(!mpidata_incoming_lose(&in, order.of_group.role, order.of_group.group)); break;
        case MPIDATA_ORDER_CANCEL:
            CHECK(!mpidata_incoming_cancel(&in, order.cancel.simulation, order.cancel.group, order.cancel.closed));
            break;
        case MPIDATA_ORDER_GONE: mpidata_incoming_gone(&in, order.of_group.role, order.of_group.group); break;
        default: break;
        }
    }
    close_trainer();
}

static void try_task(const uint8_t *input, size_t size) {
    mpidata_plan plan;
    mpidata_task task = {0};
    memcpy(&task, input, size < sizeof task ? size : sizeof task);
    CHECK(!mpidata_plan_parse(job_text, &plan));
    if (!mpidata_task_check(&plan, &task) && task.kind == MPIDATA_TASK_RUN) {
        int number = mpidata_plan_trainer(&plan, task.simulation, 0);
        CHECK(number >= 0 && number < plan.trainers);
    }
    mpidata_plan_free(&plan);
}

/* All arrays described lie within the contents. */
static void try_published(const uint8_t *input, size_t size) {
    uint8_t *memory = aligned_alloc(64, (size + 63) / 64 * 64), sum = 0;
    char text[300];
    CHECK(memory || !size);
    if (size) memcpy(memory, input, size);
    if (!mpidata_contents_check(memory, size)) {
        const mpidata_contents *contents = (const mpidata_contents *)memory;
        mpidata_contents_names(contents, text, sizeof text);
        for (int64_t i = 0; i < contents->n; i++) {
            const mpidata_published_array *array = &mpidata_contents_arrays(contents)[i];
            CHECK(mpidata_contents_find(contents, array->name));
            const size_t bytes = contents->described ? 0 : mpidata_published_bytes(array);
            CHECK(bytes <= size);
            for (size_t at = 0; at < bytes; at++) sum ^= memory[(size_t)array->at + at];
        }
        CHECK(!mpidata_contents_alike(contents, contents));
    }
    free(memory);
    volatile uint8_t read = sum;
    (void)read;
}

static void try_ask(const uint8_t *input, size_t size) {
    mpidata_ask ask = {0};
    memcpy(&ask, input, size < sizeof ask ? size : sizeof ask);
    if (mpidata_ask_fits(&ask, (int)size)) CHECK(ask.version >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    if (!size) return 0;
    switch (input[0] % KINDS) {
    case PLAN: try_plan(input + 1, size - 1); break;
    case PIECES: (void)try_pieces(job_text, input + 1, size - 1); break;
    case PARTS:
    case MAPS: (void)try_pieces(varying_text, input + 1, size - 1); break;
    case CONSTANTS: (void)try_pieces(constants_text, input + 1, size - 1); break;
    case ORDER: try_order(input + 1, size - 1); break;
    case TASK: try_task(input + 1, size - 1); break;
    case PUBLISHED: try_published(input + 1, size - 1); break;
    case ASK: try_ask(input + 1, size - 1); break;
    default: (void)try_parcels(input + 1, size - 1); break;
    }
    return 0;
}

#ifndef NO_MAIN

/* -- good inputs ---------------------------------------------------------------------------------------------------- */

enum { GOOD = 6 };

static struct {
    uint8_t bytes[LONGEST];
    size_t size;
} good[KINDS][GOOD];

static int n_good[KINDS];

static void add_good(int kind, const void *bytes, size_t size) {
    int i = n_good[kind]++;
    CHECK(i < GOOD && size < LONGEST);
    good[kind][i].bytes[0] = (uint8_t)kind;
    memcpy(good[kind][i].bytes + 1, bytes, size);
    good[kind][i].size = size + 1;
}

/* Append what a rank has sent; return the new size. */
static size_t add_messages(uint8_t *bytes, size_t size, int rank, int validation) {
    for (int i = 0; i < fake_n; i++) {
        envelope head = {.rank = (uint8_t)rank, .validation = (uint8_t)validation, .size = (uint32_t)fake_messages[i].size};
        CHECK(size + sizeof head + head.size < LONGEST);
        memcpy(bytes + size, &head, sizeof head);
        memcpy(bytes + size + sizeof head, fake_messages[i].bytes, head.size);
        size += sizeof head + head.size;
    }
    return size;
}

static void put(mpidata_sender *sender, int field, int64_t first, int64_t count) {
    static double values[9000];
    for (int i = 0; i < 90; i++) ((int64_t *)(void *)values)[i] = 1; /* an index from 1 */
    const mpidata_field *declared = &sender->job->plan.fields[field];
    mpidata_block block = {.field = field, .ndim = declared->ndim};
    for (int d = 0; d < declared->ndim; d++) block.shape[d] = declared->shape[d];
    if (declared->varying >= 0) {
        block.shape[declared->varying] = count;
    } else if (declared->ndim) {
        block.start[declared->ndim - 1] = first; /* rows that are not contiguous */
        block.shape[declared->ndim - 1] = count;
    }
    CHECK(!mpidata_sender_stage(sender, &block, &(mpidata_put_arguments){.values = values, .dtype = (mpidata_dtype)declared->dtype}, 0));
}

static void put_ends(mpidata_sender *sender, void *values) {
    for (int i = 0; i < 40; i++) ((int64_t *)values)[i] = 1; /* an index from 1 */
    const mpidata_block block = {.field = 2, .ndim = 2, .shape = {2, 20}};
    CHECK(!mpidata_sender_stage(sender, &block, &(mpidata_put_arguments){.values = values, .dtype = MPIDATA_INT64}, 0));
}

/* One rank sends all fields that vary, the other headers only. */
static void add_parts(int64_t simulation, int64_t nodes) {
    static uint8_t bytes[LONGEST];
    size_t size = 0;
    mpidata_job job = {0};
    CHECK(!mpidata_plan_parse(varying_text, &job.plan));
    for (int rank = 0; rank < 2; rank++) {
        mpidata_sender sender;
        fake_reset();
        fake_hold_sends = 1;
        CHECK(!mpidata_sender_open(&sender, &job));
        sender.by_try = 1;
        for (int64_t step = simulation % 2; step < 6; step += 2) {
            if (rank) put(&sender, 0, 0, 4);
            for (int i = 0; rank && i < 2; i++) put(&sender, 1, 0, nodes);
            for (int i = 0; rank && i < 2; i++) put(&sender, 2, 0, 20);
            CHECK(!mpidata_sender_commit(&sender, simulation, step, 0.5, 0, (double[]){0.25}));
        }
        CHECK(!mpidata_sender_flush(&sender));
        fake_hold_sends = 0;
        size = add_messages(bytes, size, 3 + rank, 0);
        mpidata_sender_close(&sender);
    }
    mpidata_plan_free(&job.plan);
    CHECK(try_pieces(varying_text, bytes, size) == 3);
    add_good(PARTS, bytes, size);
}

/* One rank sends all constants and steps, the other headers only. */
static void add_constants(int64_t simulation, int64_t nodes) {
    static uint8_t bytes[LONGEST];
    size_t size = 0;
    mpidata_job job = {0};
    CHECK(!mpidata_plan_parse(constants_text, &job.plan));
    for (int rank = 0; rank < 2; rank++) {
        mpidata_sender sender;
        fake_reset();
        fake_hold_sends = 1;
        CHECK(!mpidata_sender_open(&sender, &job));
        sender.by_try = 1;
        CHECK(!mpidata_kept_constants_begin(&sender));
        for (int field = 0; rank && field < 3; field++) put(&sender, field, 0, field == 0 ? 4 : field == 1 ? nodes : 20);
        for (int64_t step = simulation % 2; step < 6; step += 2) {
            if (rank) put(&sender, 3, 0, nodes);
            CHECK(!mpidata_kept_constants_send(&sender, simulation, step, 0, (double[]){0.25}));
            CHECK(!mpidata_sender_commit(&sender, simulation, step, 0.5, 0, (double[]){0.25}));
        }
        CHECK(!mpidata_sender_flush(&sender));
        fake_hold_sends = 0;
        size = add_messages(bytes, size, 3 + rank, 0);
        mpidata_sender_close(&sender);
    }
    mpidata_plan_free(&job.plan);
    CHECK(try_pieces(constants_text, bytes, size) == 3);
    add_good(CONSTANTS, bytes, size);
}

/* Each field by maps, with a new map for the cells in each step, which replaces the previous one; local numbers. */
static void add_maps(int64_t simulation, int64_t nodes) {
    static uint8_t bytes[LONGEST];
    static double values[9000];
    static int64_t indices[4500];
    size_t size = 0;
    const char *advice;
    mpidata_job job = {0};
    CHECK(!mpidata_plan_parse(varying_text, &job.plan));
    for (int rank = 0; rank < 2; rank++) {
        mpidata_sender sender;
        mpidata_map *cells, *of_nodes;
        fake_reset();
        fake_hold_sends = 1;
        CHECK(!mpidata_sender_open(&sender, &job));
        sender.by_try = 1;
        for (int64_t i = 0; i < nodes; i++) indices[i] = 2 * i + rank;
        CHECK(!mpidata_map_make(nodes, indices, &of_nodes, &advice));
        for (int64_t step = simulation % 2; step < 6; step += 2) {
            CHECK(!mpidata_map_make(1, &(int64_t){1 - rank}, &cells, &advice));
            mpidata_block block = {.ndim = 3, .shape = {1, 3, 4}};
            mpidata_put_arguments put = {.values = values, .dtype = MPIDATA_UINT8, .by_map = 1, .map = cells};
            CHECK(!mpidata_stage_mapped(&sender, &block, &put, 0, step));
            block = (mpidata_block){.field = 1, .ndim = 2, .shape = {nodes, 2}};
            put = (mpidata_put_arguments){.values = values, .dtype = MPIDATA_FLOAT32, .by_map = 1, .map = of_nodes};
            CHECK(!mpidata_stage_mapped(&sender, &block, &put, 0, step));
            put_ends(&sender, values);
            CHECK(!mpidata_send_maps(&sender, simulation, step, 0));
            CHECK(!mpidata_sender_commit(&sender, simulation, step, 0.5, 0, (double[]){0.25}));
            if (cells->sent) mpidata_forget_map(&sender, cells);
            mpidata_map_let_go(cells);
        }
        CHECK(!mpidata_sender_flush(&sender));
        fake_hold_sends = 0;
        size = add_messages(bytes, size, 3 + rank, 0);
        mpidata_sender_close(&sender);
    }
    mpidata_plan_free(&job.plan);
    CHECK(try_pieces(varying_text, bytes, size) >= 2); /* later samples wait for room */
    add_good(MAPS, bytes, size);
}

/* The messages of two ranks of a group to trainer 0 in some steps. */
static void add_pieces(int group, int64_t simulation, int steps, int with_large) {
    static uint8_t bytes[LONGEST];
    size_t size = 0;
    mpidata_job job = {0};
    int validation = simulation >= 10;
    CHECK(!mpidata_plan_parse(job_text, &job.plan));
    for (int rank = 0; rank < 2; rank++) {
        mpidata_sender sender;
        fake_reset();
        fake_hold_sends = 1; /* their memory stays as it is */
        CHECK(!mpidata_sender_open(&sender, &job));
        sender.by_try = 1;
        for (int64_t step = simulation % 2; step < 2 * steps; step += 2) {
            put(&sender, 0, 2 * rank, 2);
            if (with_large && rank) put(&sender, 1, 0, 50);
            if (with_large && rank) put(&sender, 1, 50, 40);
            if (rank) put(&sender, 2, 0, 1);
            CHECK(!mpidata_sender_commit(&sender, simulation, step, 0.5, validation, (double[]){0.25}));
        }
        CHECK(!mpidata_sender_flush(&sender));
        fake_hold_sends = 0;
        size = add_messages(bytes, size, 3 + 2 * group + rank, validation);
        mpidata_sender_close(&sender);
    }
    mpidata_plan_free(&job.plan);
    CHECK(try_pieces(job_text, bytes, size) == (with_large ? steps : 0)); /* these are received */
    add_good(PIECES, bytes, size);
}

/* The messages of two loaders: parcels of small and of large parts. */
static void add_parcels(int64_t large) {
    static uint8_t bytes[LONGEST], part[LONGEST];
    size_t size = 0;
    mpidata_transfers transfers = {0};
    for (int loader = 0; loader < 2; loader++) {
        const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .dataset = 1, .kind = 2, .number = 5, .n_parts = 4};
        mpidata_sending *sending;
        CHECK(!mpidata_sending_new(&head, (const int64_t[]){9, large, 0, large / 3}, (const void *const[]){part, part, part, part},
                                   0, &sending));
        fake_reset();
        CHECK(!mpidata_sending_begin(sending, &transfers, 3 + loader, MPIDATA_TAG_PARCEL, MPI_COMM_SELF));
        for (int i = 0; i < fake_n; i++) {
            envelope of = {.rank = (uint8_t)(3 + loader), .size = (uint32_t)fake_messages[i].size};
            memcpy(bytes + size, &of, sizeof of);
            memcpy(bytes + size + sizeof of, fake_messages[i].bytes, of.size);
            size += sizeof of + of.size;
        }
        mpidata_sending_free(sending);
        mpidata_transfers_close(&transfers);
    }
    CHECK(try_parcels(bytes, size) == 2);
    add_good(PARCELS, bytes, size);
}

/* Some arrays, some without elements, or only their description. */
static void add_published(int described) {
    static const char *const names[] = {"weight", "bias", "none", "scalar"};
    static const int32_t dtypes[] = {MPIDATA_FLOAT32, MPIDATA_BOOL, MPIDATA_COMPLEX128, MPIDATA_INT64}, ndims[] = {2, 1, 3, 0};
    static const int64_t shapes[] = {30, 40, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    mpidata_contents *contents;
    CHECK(!mpidata_contents_describe(4, names, dtypes, ndims, shapes, &contents));
    const size_t head = mpidata_description_bytes(4), all = described ? head : (size_t)contents->bytes;
    contents->version = 3;
    contents->described = (uint32_t)described;
    uint8_t *bytes = calloc(1, all);
    CHECK(bytes);
    memcpy(bytes, contents, head);
    CHECK(!mpidata_contents_check(bytes, all));
    add_good(PUBLISHED, bytes, all);
    free(bytes);
    free(contents);
}

static void make_good(void) {
    const mpidata_order orders[] = {{.kind = MPIDATA_ORDER_EXPECT, .expect = {3, 100, 1}},
                                    {.kind = MPIDATA_ORDER_RELIEVE, .relieve = {25}},
                                    {.kind = MPIDATA_ORDER_JOIN, .of_group = {.group = 2}}, {.kind = MPIDATA_ORDER_LOST},
                                    {.kind = MPIDATA_ORDER_CANCEL, .cancel = {3, 0, 0}}};
    const mpidata_task task = {.kind = MPIDATA_TASK_RUN, .validation = 1, .simulation = 12, .by_try = 1};
    for (int i = 0; i < 2; i++) add_good(PLAN, plans[i], strlen(plans[i]));
    for (int i = 0; i < 5; i++) add_good(ORDER, &orders[i], sizeof orders[i]);
    add_good(TASK, &task, sizeof task);
    add_published(0);
    add_published(1);
    add_good(ASK, &(mpidata_ask){.version = 4}, sizeof(mpidata_ask));
    add_pieces(0, 0, 3, 0);
    add_pieces(0, 1, 2, 1);
    add_pieces(1, 11, 1, 1);
    add_parts(0, 7);
    add_parts(1, 4400);
    add_constants(0, 7);
    add_constants(1, 4400);
    add_maps(0, 7);
    add_maps(1, 2200);
    add_parcels(100);
    add_parcels(60000);
}

/* -- the mutator ---------------------------------------------------------------------------------------------------- */

static mpidata_random chance;

static size_t below(size_t n) { return (size_t)mpidata_random_below(&chance, (int64_t)n); }

static int64_t odd_number(void) {
    static const int64_t numbers[] = {0, 1, -1, 2, 3, 7, 10, 13, 64, 100, 4096, 4097, 32768, 131072, 262144, INT32_MAX,
                                      INT32_MIN, (int64_t)1 << 32, (int64_t)1 << 36, (int64_t)1 << 61, INT64_MAX, INT64_MIN};
    int64_t number = numbers[below(sizeof numbers / sizeof numbers[0])];
    return number == INT64_MAX || number == INT64_MIN ? number : number + (int64_t)below(3) - 1;
}

/* Mostly in the headers: payload bytes have no structure. */
static size_t place(size_t size) {
    size_t near = size < 512 ? size : 512;
    return below(4) ? below(near) : below(size);
}

static void change_number_in_text(uint8_t *bytes, size_t *size) {
    size_t from = place(*size), to;
    while (from < *size && (bytes[from] < '0' || bytes[from] > '9')) from++;
    for (to = from; to < *size && bytes[to] >= '0' && bytes[to] <= '9';) to++;
    char text[32];
    size_t length = (size_t)snprintf(text, sizeof text, "%lld", (long long)odd_number());
    if (from == *size || *size - (to - from) + length > MOST) return;
    memmove(bytes + from + length, bytes + to, *size - to);
    memcpy(bytes + from, text, length);
    *size += length - (to - from);
}

static void mutate(uint8_t *bytes, size_t *size) {
    int64_t number = odd_number();
    size_t at = place(*size), width = (size_t)1 << below(4), other = below(*size), length;
    switch (below(7)) {
    case 0: bytes[at] ^= (uint8_t)(1 << below(8)); break;
    case 1: /* a header field, at a multiple of 4 after the first byte and the envelope */
    case 2:
        at = at / 4 * 4 + 1;
        if (at + width <= *size) memcpy(bytes + at, &number, width);
        break;
    case 3: change_number_in_text(bytes, size); break;
    case 4: *size = 1 + below(*size); break;
    case 5: /* repeat a part */
        length = below(*size - other);
        if (length > 300) length = 300;
        if (*size + length > MOST) break;
        memmove(bytes + at + length, bytes + at, *size - at);
        memmove(bytes + at, bytes + (other < at ? other : other + length), length);
        *size += length;
        break;
    default: /* remove a part */
        length = below(*size - at);
        if (length > 300) length = 300;
        memmove(bytes + at, bytes + at + length, *size - at - length);
        *size -= length;
    }
    if (!*size) *size = 1;
}

/* -- main ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    size_t size;
    uint8_t bytes[LONGEST];
} kept_input;

static kept_input *keep_in(const char *path, int again) {
    int file = open(path, again ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && !ftruncate(file, sizeof(kept_input)));
    kept_input *kept = mmap(NULL, sizeof *kept, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(kept != MAP_FAILED && !close(file));
    return kept;
}

static void try(const kept_input *kept) {
    uint8_t *input = malloc(kept->size); /* of exactly this size, so that reading one more byte is detected */
    CHECK(input);
    memcpy(input, kept->bytes, kept->size);
    (void)LLVMFuzzerTestOneInput(input, kept->size);
    free(input);
}

int main(int argc, char **argv) {
    CHECK(argc > 1);
    kept_input *kept = keep_in(argv[1], argc == 2);
    fake_tick = 0.01;
    fake_ranks = 7;
    if (argc == 2) {
        CHECK(kept->size && kept->size <= LONGEST);
        try(kept);
        return 0;
    }
    make_good();
    mpidata_random_seed(&chance, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, 0);
    for (long i = 0, count = atol(argv[2]); i < count; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            int which = (int)below((size_t)n_good[kind]);
            kept->size = good[kind][which].size;
            memcpy(kept->bytes, good[kind][which].bytes, kept->size);
            size_t size = kept->size - 1;
            for (size_t n = below(4); n < 4; n++) mutate(kept->bytes + 1, &size);
            kept->size = size + 1;
            try(kept);
        }
    return 0;
}

#endif

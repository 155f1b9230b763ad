#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "example_plan.h"
#include "wire/messages.h"
#include "wire/wire.h"

static double memory[20000]; /* aligned like a message */
static mpidata_plan plan;

static const char large_plan[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nseed 7\nworld 3\ntrainers 1\ngroups 1\nranks_per_group 1\nin_flight 4\n"
    "simulations 10\nvalidation 0\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nfield small float32 1 4096\n"
    "field large float32 1 4097\nprogram solver\nargument ./solver\n";

static mpidata_piece *piece_of(void) { return (mpidata_piece *)(void *)memory; }
static mpidata_block *block_of(void) {
    return (mpidata_block *)(void *)((char *)memory + sizeof(mpidata_piece) + (size_t)plan.n_parameters * sizeof(double));
}

/* One whole 'temperature' inline. */
static size_t valid(void) {
    mpidata_piece piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = 1, .simulation = 3, .step = 4, .time = 0.5,
                           .payload_bytes = 128, .by_try = 1};
    mpidata_block block = {.field = 0, .ndim = 2, .shape = {4, 6}};
    size_t header = mpidata_piece_header_bytes(plan.n_parameters, 1, 0);
    memset(memory, 0, sizeof memory);
    memcpy(memory, &piece, sizeof piece);
    memcpy(block_of(), &block, sizeof block);
    return header + 128; /* 24 float32, padded */
}

static int check(size_t bytes) {
    const mpidata_piece *piece;
    const double *parameters;
    const mpidata_block *blocks;
    const char *payload;
    return mpidata_piece_check(&plan, memory, bytes, &piece, &parameters, &blocks, &payload);
}

/* A piece of whole fields, with the payload that travels with it; returns its size in bytes. */
static size_t fields(int n, const int *numbers, int64_t payload_bytes) {
    mpidata_piece piece = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = n, .payload_bytes = payload_bytes, .by_try = 1};
    memset(memory, 0, sizeof memory);
    memcpy(memory, &piece, sizeof piece);
    for (int i = 0; i < n; i++) {
        mpidata_block block = {.field = numbers[i], .ndim = 1, .shape = {plan.fields[numbers[i]].shape[0]}};
        memcpy(block_of() + i, &block, sizeof block);
    }
    return mpidata_piece_bytes(plan.n_parameters, n, 0, payload_bytes);
}

/* The first small blocks of a large piece travel with it, up to the limit. */
static void large_pieces(void) {
    CHECK(mpidata_plan_parse(large_plan, &plan) == MPIDATA_SUCCESS);
    const int small[] = {0, 0, 0, 0, 0, 0, 0, 0, 0}, one_large[] = {0, 1, 0};
    CHECK(check(fields(3, small, 3 * 16384)) == MPIDATA_SUCCESS);
    CHECK(check(fields(3, small, 3 * 16384) + 64) == MPIDATA_SUCCESS); /* followed by another piece */
    CHECK(check(fields(3, small, 2 * 16384)) == MPIDATA_ERR_WIRE);
    CHECK(check(fields(9, small, 8 * 16384)) == MPIDATA_SUCCESS);
    CHECK(check(fields(9, small, 8 * 16384) + 64) == MPIDATA_ERR_WIRE); /* the ninth comes before another piece */
    CHECK(check(fields(9, small, 9 * 16384)) == MPIDATA_ERR_WIRE);
    CHECK(check(fields(3, one_large, 2 * 16384)) == MPIDATA_SUCCESS);
    CHECK(check(fields(3, one_large, 3 * 16384 + 64)) == MPIDATA_ERR_WIRE);
    CHECK(check(fields(1, one_large + 1, 16384 + 64)) == MPIDATA_SUCCESS); /* a small piece */
    mpidata_plan_free(&plan);
}

/* Small blocks are packed, larger ones are aligned; a large block of a large piece is skipped, and takes no room. */
static void walks(void) {
    const struct { size_t in_all, bytes, place, end; int along; } steps[] = {
        {1100, 76, 0, 76, 1}, {0, 24, 76, 100, 1}, {0, 1000, 100, 1100, 1},
        {3024, 1000, 0, 1000, 1}, {0, 1024, 1024, 2048, 1}, {0, 1000, 2048, 3048, 1},
        {40000, 16384, 0, 16384, 1}, {0, 23608, 0, 16384, 0}, {0, 8, 16384, 16392, 1},
    };
    mpidata_walk walk = {0};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].in_all) walk = (mpidata_walk){.in_all = steps[i].in_all};
        CHECK(mpidata_walk_on(&walk, steps[i].bytes) == steps[i].along);
        CHECK(walk.place == steps[i].place && walk.end == steps[i].end);
    }
}

/* For blocks with sizes around each limit: all blocks of a small piece travel with it, of a large one the small blocks
 * while there is room; blocks do not overlap, and the piece stays within its largest size. */
static void walks_at_the_limits(void) {
    static const int64_t limits[] = {0, MPIDATA_BLOCK_ANYWHERE, MPIDATA_BLOCK_SMALL, MPIDATA_PIECE_SMALL, MPIDATA_PIECE_SMALL / 2};
    enum { LIMITS = sizeof limits / sizeof limits[0], MOST = 12 };
    uint64_t state = 5;
    for (int round = 0; round < 20000; round++) {
        size_t sizes[MOST], in_all = 0, end = 0;
        const int n = 1 + round % MOST;
        for (int i = 0; i < n; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const int64_t size = limits[(state >> 33) % LIMITS] + (int64_t)((state >> 40) % 3) - 1;
            in_all += sizes[i] = (size_t)(size > 0 ? size : 0);
        }
        mpidata_walk walk = {.in_all = in_all};
        for (int i = 0; i < n; i++) {
            const size_t before = walk.end;
            const int along = mpidata_walk_on(&walk, sizes[i]), large = in_all > MPIDATA_PIECE_SMALL;
            const size_t place = sizes[i] < MPIDATA_BLOCK_ANYWHERE ? end : mpidata_padded(end);
            CHECK(along == !(large && (sizes[i] > MPIDATA_BLOCK_SMALL || place + sizes[i] > MPIDATA_ALONG_MAX)));
            if (along) end = place + sizes[i];
            CHECK(walk.end == (along ? walk.place + sizes[i] : before) && (!along || walk.place >= before));
            CHECK(!along || sizes[i] < MPIDATA_BLOCK_ANYWHERE || walk.place % MPIDATA_BOUNDARY == 0);
        }
        CHECK(mpidata_padded(walk.end) <= MPIDATA_ALONG_MAX + MPIDATA_BOUNDARY);
    }
}

/* Invalid numbers whose sums would overflow. */
static void hostile_pieces(void) {
    size_t bytes = valid();
    block_of()->start[0] = block_of()->shape[0] = INT64_MAX;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    block_of()->start[0] = block_of()->shape[0] = INT64_MIN;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    piece_of()->step = INT64_MAX; /* step + simulation chooses the trainer */
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    piece_of()->step = MPIDATA_STEPS_MAX - 1;
    CHECK(check(bytes) == MPIDATA_SUCCESS);
    (void)valid();
    block_of()->shape[0] = 0; /* a sample could have any number of these */
    piece_of()->payload_bytes = 0;
    CHECK(check(mpidata_piece_header_bytes(plan.n_parameters, 1, 0)) == MPIDATA_ERR_WIRE);
}

/* A block of a field without statistics carries no moments; bool and complex fields cannot have statistics. */
static void without_statistics(void) {
    char text[1024];
    (void)snprintf(text, sizeof text, "%sstatistics -2 -1 0\n", example_plan);
    CHECK(mpidata_plan_parse(text, &plan) == MPIDATA_SUCCESS && plan.n_moments == 1 + 2);
    CHECK(plan.fields[1].moments == 0 && plan.fields[2].moments == 1);
    (void)valid();
    const size_t header = mpidata_piece_header_bytes(plan.n_parameters, 1, 0);
    CHECK(check(header + 128) == MPIDATA_SUCCESS && check(header + 127) == MPIDATA_ERR_WIRE);
    static const char *const dtypes[] = {"bool", "complex64", "complex128", "bfloat16"};
    for (int i = 0; i < 4; i++) {
        mpidata_plan other;
        (void)snprintf(text, sizeof text, "%sfield more %s 0\nstatistics -2 -1 0 -1\n", example_plan, dtypes[i]);
        const int status = mpidata_plan_parse(text, &other);
        CHECK((status == MPIDATA_SUCCESS) == (i == 3));
        if (!status) mpidata_plan_free(&other);
    }
}

/* Moments follow the blocks: here one for each of the 6 columns of 'temperature'. */
static void statistics(void) {
    char text[1024];
    (void)snprintf(text, sizeof text, "%sstatistics 1 -1 0\n", example_plan);
    mpidata_plan_free(&plan);
    CHECK(mpidata_plan_parse(text, &plan) == MPIDATA_SUCCESS && plan.n_moments == 6 + 1 + 2);
    CHECK(plan.fields[0].moments == 0 && plan.fields[1].moments == 6 && plan.fields[2].moments == 7);
    (void)valid();
    size_t header = mpidata_piece_header_bytes(plan.n_parameters, 1, 6);
    mpidata_moments *moments = (mpidata_moments *)(void *)(block_of() + 1);
    for (int i = 0; i < 6; i++) moments[i] = (mpidata_moments){.count = 3, .mean = i, .least = i, .greatest = i, .not_finite = 1};
    CHECK(check(header + 128) == MPIDATA_SUCCESS && check(header + 127) == MPIDATA_ERR_WIRE);
    CHECK(check(mpidata_piece_header_bytes(plan.n_parameters, 1, 0) + 128) == MPIDATA_ERR_WIRE);
    moments[5].count = 4;
    CHECK(check(header + 128) == MPIDATA_ERR_WIRE);
    static const char *const bad[] = {"1 -1", "1 -1 0 0", "2 -1 0", "1 0 0", "-3 -1 0", "a -1 0", ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mpidata_plan wrong;
        (void)snprintf(text, sizeof text, "%sstatistics %s\n", example_plan, bad[i]);
        CHECK(mpidata_plan_parse(text, &wrong) != MPIDATA_SUCCESS);
    }
    mpidata_plan_free(&plan);
    without_statistics();
    mpidata_plan_free(&plan);
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
}

static int order(mpidata_order order) { return mpidata_order_check(&plan, &order, (int)sizeof order); }

static int expect(int64_t simulation, int64_t steps) {
    return order((mpidata_order){.kind = MPIDATA_ORDER_EXPECT, .expect = {simulation, steps, 1}});
}

static int of(int role, int kind, int32_t group) {
    return order((mpidata_order){.kind = kind, .of_group = {.group = group, .role = role}});
}

static int of_group(int kind, int32_t group) { return of(MPIDATA_ROLE_SOLVER, kind, group); }

static void orders_of_loaders(void) {
    const int loader = MPIDATA_ROLE_LOADER;
    CHECK(of(loader, MPIDATA_ORDER_SERVES, 0) == MPIDATA_SUCCESS && of(loader, MPIDATA_ORDER_LOST, 1) == MPIDATA_SUCCESS);
    CHECK(of(loader, MPIDATA_ORDER_SERVES, -1) == MPIDATA_ERR_WIRE && of_group(MPIDATA_ORDER_SERVES, 0) == MPIDATA_ERR_WIRE);
    CHECK(of(loader, MPIDATA_ORDER_RETIRES, 0) == MPIDATA_SUCCESS && of_group(MPIDATA_ORDER_RETIRES, 0) == MPIDATA_ERR_WIRE);
    CHECK(of(MPIDATA_ROLE_TRAINER, MPIDATA_ORDER_GONE, 0) == MPIDATA_ERR_WIRE);
    CHECK(of(MPIDATA_ROLES, MPIDATA_ORDER_GONE, 0) == MPIDATA_ERR_WIRE);
    mpidata_order endless = {.kind = MPIDATA_ORDER_LOST, .of_group = {.role = loader}};
    memset(endless.of_group.at, 'x', sizeof endless.of_group.at);
    CHECK(order(endless) == MPIDATA_ERR_WIRE);
    endless.of_group.at[sizeof endless.of_group.at - 1] = '\0';
    CHECK(order(endless) == MPIDATA_SUCCESS);
}

static int trainers(int64_t number, int64_t count) {
    return order((mpidata_order){.kind = MPIDATA_ORDER_TRAINERS, .trainers = {number, count}});
}

static int hands_over(int trainer) {
    return order((mpidata_order){.kind = MPIDATA_ORDER_HANDS_OVER, .of_trainer = {trainer}});
}

static void orders_of_trainers(void) {
    CHECK(hands_over(plan.trainers - 1) == MPIDATA_SUCCESS);
    CHECK(hands_over(plan.trainers) == MPIDATA_ERR_WIRE && hands_over(-1) == MPIDATA_ERR_WIRE);
    CHECK(trainers(1, 0) == MPIDATA_SUCCESS && trainers(7, plan.trainers) == MPIDATA_SUCCESS);
    CHECK(trainers(0, 1) == MPIDATA_ERR_WIRE);
    CHECK(trainers(1, -1) == MPIDATA_ERR_WIRE && trainers(1, plan.trainers + 1) == MPIDATA_ERR_WIRE);
}

static int cancels(int64_t simulation, int group, int closed) {
    return order((mpidata_order){.kind = MPIDATA_ORDER_CANCEL, .cancel = {simulation, group, closed}});
}

static void orders_to_cancel(void) {
    const int64_t last = plan.simulations - 1;
    CHECK(cancels(0, -1, 0) == MPIDATA_SUCCESS && cancels(last, 7, 0) == MPIDATA_SUCCESS && cancels(last, 7, 1) == MPIDATA_SUCCESS);
    CHECK(cancels(-1, 0, 0) == MPIDATA_ERR_WIRE && cancels(last + 1, 0, 0) == MPIDATA_ERR_WIRE);
    CHECK(cancels(0, -2, 0) == MPIDATA_ERR_WIRE && cancels(0, INT32_MAX, 0) == MPIDATA_ERR_WIRE && cancels(0, 0, 2) == MPIDATA_ERR_WIRE);
}

static void orders(void) {
    const mpidata_order stop = {.kind = MPIDATA_ORDER_STOP};
    CHECK(mpidata_order_check(&plan, &stop, (int)sizeof stop) == MPIDATA_SUCCESS);
    CHECK(mpidata_order_check(&plan, &stop, (int)sizeof stop - 1) == MPIDATA_ERR_WIRE);
    CHECK(mpidata_order_check(&plan, &stop, (int)sizeof stop + 1) == MPIDATA_ERR_WIRE);
    CHECK(of_group(0, 0) == MPIDATA_ERR_WIRE && of_group(MPIDATA_ORDER_CANCEL + 1, 0) == MPIDATA_ERR_WIRE);
    CHECK(expect(12, 100) == MPIDATA_SUCCESS);
    CHECK(expect(13, 100) == MPIDATA_ERR_WIRE && expect(-1, 1) == MPIDATA_ERR_WIRE);
    CHECK(expect(0, -1) == MPIDATA_ERR_WIRE);
    CHECK(expect(0, INT64_MAX) == MPIDATA_ERR_WIRE);
    CHECK(order((mpidata_order){.kind = MPIDATA_ORDER_RELIEVE, .relieve = {INT64_MAX}}) == MPIDATA_ERR_WIRE);
    CHECK(of_group(MPIDATA_ORDER_JOIN, INT32_MAX) == MPIDATA_ERR_WIRE);
    CHECK(of_group(MPIDATA_ORDER_LOST, -1) == MPIDATA_ERR_WIRE && of_group(MPIDATA_ORDER_LOST, 1) == MPIDATA_SUCCESS);
    statistics();
    orders_of_loaders();
    orders_of_trainers();
    orders_to_cancel();
}

static int event(int role, mpidata_event event) {
    return mpidata_event_fits(&plan, &event, (int)mpidata_event_bytes(&event), role);
}

static int closes(int64_t simulation, int64_t steps) {
    return event(MPIDATA_ROLE_SOLVER, (mpidata_event){.kind = MPIDATA_EVENT_NEXT, .closed = {.simulation = simulation, .steps = steps}});
}

/* Each kind is accepted only from the role that sends it, and with valid numbers. */
static void events(void) {
    for (int kind = MPIDATA_EVENT_NEXT - 1; kind <= MPIDATA_EVENT_CANCEL + 1; kind++) {
        int inside = kind >= MPIDATA_EVENT_NEXT && kind < MPIDATA_EVENT_LOSSES && kind != MPIDATA_EVENT_REPORT; /* without contents */
        inside |= kind == MPIDATA_EVENT_LACKS || kind == MPIDATA_EVENT_ADOPTED || kind == MPIDATA_EVENT_CANCEL;
        int of_solver = kind == MPIDATA_EVENT_NEXT || kind == MPIDATA_EVENT_FINALIZED;
        mpidata_event sent = {.kind = kind, .written = {.number = 1}};
        CHECK(!event(MPIDATA_ROLE_SCHEDULER, sent));
        CHECK(event(MPIDATA_ROLE_SOLVER, sent) == (of_solver || kind == MPIDATA_EVENT_ERROR));
        CHECK(event(MPIDATA_ROLE_LOADER, sent) == (of_solver || kind == MPIDATA_EVENT_ERROR));
        CHECK(event(MPIDATA_ROLE_TRAINER, sent) == (inside && !of_solver && kind != MPIDATA_EVENT_DIED));
    }
    CHECK(closes(-1, 0) && closes(12, MPIDATA_STEPS_MAX));
    CHECK(!closes(-2, 0) && !closes(13, 0) && !closes(0, -1) && !closes(0, MPIDATA_STEPS_MAX + 1));
    CHECK(!event(MPIDATA_ROLE_TRAINER, (mpidata_event){.kind = MPIDATA_EVENT_HELD, .held = {13, 1}}));
    CHECK(!event(MPIDATA_ROLE_TRAINER, (mpidata_event){.kind = MPIDATA_EVENT_CHECKPOINT_WRITTEN}));
    CHECK(!event(MPIDATA_ROLE_TRAINER, (mpidata_event){.kind = MPIDATA_EVENT_LACKS, .lacks = {13}}));
    CHECK(!event(MPIDATA_ROLE_TRAINER, (mpidata_event){.kind = MPIDATA_EVENT_ADOPTED, .adopted = {0}}));
    CHECK(!event(MPIDATA_ROLE_TRAINER, (mpidata_event){.kind = MPIDATA_EVENT_ADOPTED, .adopted = {5}}));
    mpidata_event unended = {.kind = MPIDATA_EVENT_GOODBYE};
    memset(unended.text, 'x', sizeof unended.text);
    CHECK(!mpidata_event_fits(&plan, &unended, (int)offsetof(mpidata_event, text), MPIDATA_ROLE_TRAINER));
    CHECK(mpidata_event_fits(&plan, &unended, (int)sizeof unended, MPIDATA_ROLE_TRAINER));
    CHECK(strlen(unended.text) == sizeof unended.text - 1);
}

static int asks_to_cancel(int count, int64_t last, int fewer) {
    mpidata_event sent = {.kind = MPIDATA_EVENT_CANCEL, .cancel = {count}};
    if (count > 0 && count <= MPIDATA_CANCEL_MAX) memcpy(sent.text + (size_t)(count - 1) * sizeof last, &last, sizeof last);
    return mpidata_event_fits(&plan, &sent, (int)(offsetof(mpidata_event, text) + (size_t)(count - fewer) * sizeof last), MPIDATA_ROLE_TRAINER);
}

static void events_to_cancel(void) {
    CHECK(asks_to_cancel(1, 12, 0) && asks_to_cancel(MPIDATA_CANCEL_MAX, 0, 0));
    CHECK(!asks_to_cancel(1, 13, 0) && !asks_to_cancel(2, -1, 0) && !asks_to_cancel(2, 0, 1));
    CHECK(!asks_to_cancel(MPIDATA_CANCEL_MAX + 1, 0, 0));
}

static int losses(int count, mpidata_losses last) {
    mpidata_event sent = {.kind = MPIDATA_EVENT_LOSSES, .losses = {count}};
    const mpidata_losses one = {.count = 1};
    for (int i = 0; i < MPIDATA_LOSSES_MAX; i++)
        memcpy(sent.text + (size_t)i * sizeof one, i == count - 1 ? &last : &one, sizeof one);
    int bytes = (int)mpidata_event_bytes(&sent);
    CHECK(!mpidata_event_fits(&plan, &sent, bytes - 1, MPIDATA_ROLE_TRAINER));
    CHECK(!mpidata_event_fits(&plan, &sent, bytes, MPIDATA_ROLE_SOLVER));
    return mpidata_event_fits(&plan, &sent, bytes, MPIDATA_ROLE_TRAINER);
}

/* Whole reports are accepted; truncated or longer ones are refused. */
static void reports(void) {
    mpidata_event sent = {.kind = MPIDATA_EVENT_REPORT};
    CHECK(mpidata_reports_add(&sent, "loss", 3, 0.5) && mpidata_reports_add(&sent, "", 0, NAN));
    CHECK(sent.report.bytes == 16 + 5 + 16 + 1 && event(MPIDATA_ROLE_TRAINER, sent));
    for (int bytes = -1; bytes <= (int)sizeof sent.text; bytes++) {
        mpidata_event cut = sent;
        cut.report.bytes = bytes;
        memset(cut.text + sent.report.bytes, 'x', sizeof cut.text - (size_t)sent.report.bytes);
        int whole = bytes == 16 + 5 || bytes == sent.report.bytes;
        CHECK(mpidata_event_fits(&plan, &cut, (int)offsetof(mpidata_event, text) + bytes, MPIDATA_ROLE_TRAINER) == whole);
    }
    int size = (int)mpidata_event_bytes(&sent);
    CHECK(!mpidata_event_fits(&plan, &sent, size - 1, MPIDATA_ROLE_TRAINER));
    mpidata_event before = {.kind = MPIDATA_EVENT_REPORT};
    CHECK(mpidata_reports_add(&before, "loss", -1, 0.5) && !event(MPIDATA_ROLE_TRAINER, before));
    int n = 0;
    while (mpidata_reports_add(&sent, "some_name", n, 1.0)) n++;
    CHECK(n > 70 && event(MPIDATA_ROLE_TRAINER, sent) && sent.report.bytes < (int)sizeof sent.text);
}

static void losses_by_simulation(void) {
    const mpidata_losses good = {.simulation = 12, .count = 2, .sum = -3.0, .max = 1.0, .last = -4.0, .excess = 0.5, .difficulty = -2.0};
    CHECK(losses(1, good) && losses(MPIDATA_LOSSES_MAX, good) && losses(1, (mpidata_losses){.not_finite = 1}));
    CHECK(!losses(0, good) && !losses(-1, good) && !losses(MPIDATA_LOSSES_MAX + 1, good));
    for (int what = 0; what < 9; what++) {
        mpidata_losses bad = good;
        int64_t *numbers[] = {&bad.simulation, &bad.count, &bad.not_finite};
        double *values[] = {&bad.sum, &bad.max, &bad.last, &bad.difficulty, &bad.excess};
        if (what < 3) *numbers[what] = -1;
        else if (what < 8) *values[what - 3] = NAN;
        else bad.excess = -0.5;
        CHECK(!losses(1, bad) && !losses(MPIDATA_LOSSES_MAX, bad));
    }
    CHECK(!losses(1, (mpidata_losses){.simulation = 13, .count = 1}) && !losses(1, (mpidata_losses){.simulation = 1}));
}

static int task(int kind, int validation, int64_t simulation) {
    const mpidata_task task = {.kind = kind, .validation = validation, .simulation = simulation, .by_try = 1};
    return mpidata_task_check(&plan, &task);
}

static void tasks(void) {
    CHECK(task(MPIDATA_TASK_RUN, 0, 9) == MPIDATA_SUCCESS && task(MPIDATA_TASK_RUN, 1, 12) == MPIDATA_SUCCESS);
    CHECK(task(MPIDATA_TASK_NO_MORE, 0, -1) == MPIDATA_SUCCESS && task(0, 0, 0) == MPIDATA_ERR_WIRE);
    CHECK(task(MPIDATA_TASK_RUN, 0, -1) == MPIDATA_ERR_WIRE && task(MPIDATA_TASK_RUN, 0, 13) == MPIDATA_ERR_WIRE);
    CHECK(task(MPIDATA_TASK_RUN, 1, 9) == MPIDATA_ERR_WIRE);
    const int head = (int)sizeof(mpidata_task), whole = head + plan.n_parameters * (int)sizeof(double);
    const mpidata_task run = {.kind = MPIDATA_TASK_RUN}, no_more = {.kind = MPIDATA_TASK_NO_MORE};
    CHECK(!mpidata_task_fits(&plan, &run, whole) && !mpidata_task_fits(&plan, &no_more, head));
    for (int bytes = 0; bytes < whole; bytes++) {
        CHECK(mpidata_task_fits(&plan, &run, bytes) == MPIDATA_ERR_WIRE);
        CHECK((bytes < head) == (mpidata_task_fits(&plan, &no_more, bytes) == MPIDATA_ERR_WIRE));
    }
}

/* In an elastic job a task lists the trainers that have died: those known before, and others. */
static void lost_trainers(void) {
    mpidata_plan elastic;
    CHECK(mpidata_plan_parse(example_plan, &elastic) == MPIDATA_SUCCESS);
    elastic.trainers = 4; /* of the example, which has another world */
    elastic.trainers_at_least = 1;
    mpidata_task *run = calloc(1, mpidata_task_bytes(&elastic));
    int32_t *lost = mpidata_task_changes(&elastic, run);
    CHECK(mpidata_task_bytes(&elastic) == sizeof *run + (size_t)elastic.n_parameters * sizeof(double) + 9 * sizeof(int32_t));
    CHECK(!mpidata_task_fits(&elastic, run, (int)mpidata_task_bytes(&elastic)));
    CHECK(mpidata_task_fits(&elastic, run, (int)mpidata_task_bytes(&elastic) - 1) == MPIDATA_ERR_WIRE);
    run->kind = MPIDATA_TASK_RUN;
    run->by_try = 1;
    memcpy(lost, ((int32_t[]){2, 3, 0}), 3 * sizeof *lost);
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_SUCCESS);
    CHECK(!mpidata_plan_change(&elastic, 3, 0) && !mpidata_plan_change(&elastic, 0, 0));
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_SUCCESS);
    lost[0] = 1; /* fewer than those known */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    lost[0] = 4; /* all */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    memcpy(lost, ((int32_t[]){2, 3, 4}), 3 * sizeof *lost); /* there is no trainer 4 */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    memcpy(lost, ((int32_t[]){2, 0, 3}), 3 * sizeof *lost); /* not in the order of the known ones */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    memcpy(lost, ((int32_t[]){3, 3, 0, 3}), 4 * sizeof *lost); /* one dies twice */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    lost[3] = 1;
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_SUCCESS);
    memcpy(lost, ((int32_t[]){3, 3, 0, mpidata_change_code(2, 1)}), 4 * sizeof *lost); /* 2 is not a spare */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    elastic.trainer_spares = 2;
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_SUCCESS);
    lost[3] = mpidata_change_code(3, 1); /* this trainer has died */
    CHECK(mpidata_task_check(&elastic, run) == MPIDATA_ERR_WIRE);
    free(run);
    mpidata_plan_free(&elastic);
}

static void questions(void) {
    const mpidata_ask good = {.version = 3, .waits = 1}, negative = {.version = -1}, odd = {.waits = 2};
    CHECK(mpidata_ask_fits(&good, sizeof good) && !mpidata_ask_fits(&good, 4));
    CHECK(!mpidata_ask_fits(&negative, sizeof negative) && !mpidata_ask_fits(&odd, sizeof odd));
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    CHECK(check(valid()) == MPIDATA_SUCCESS);
    CHECK(check(valid() - 1) == MPIDATA_ERR_WIRE);
    CHECK(check(valid() + 64) == MPIDATA_SUCCESS); /* followed by another piece */
    CHECK(check(8) == MPIDATA_ERR_WIRE);
    size_t bytes = valid();
    piece_of()->magic = 1;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->payload_bytes = 0;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    CHECK(check(mpidata_piece_header_bytes(plan.n_parameters, 1, 0)) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->n_blocks = 1 << 30;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->n_blocks = 0;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->by_try = 0;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->simulation = 13;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->step = -1;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    piece_of()->time = NAN;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    block_of()->field = 3;
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    (void)valid();
    block_of()->ndim = 1;
    CHECK(check(bytes) == MPIDATA_ERR_SHAPE);
    (void)valid();
    block_of()->start[1] = 1;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    block_of()->shape[0] = INT64_MAX;
    CHECK(check(bytes) == MPIDATA_ERR_BLOCK);
    (void)valid();
    block_of()->shape[0] = 2; /* fewer elements than the message has */
    CHECK(check(bytes) == MPIDATA_ERR_WIRE);
    walks();
    walks_at_the_limits();
    questions();
    hostile_pieces();
    orders();
    events();
    events_to_cancel();
    reports();
    losses_by_simulation();
    tasks();
    lost_trainers();
    mpidata_plan_free(&plan);
    large_pieces();
    return 0;
}

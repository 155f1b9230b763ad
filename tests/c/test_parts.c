/* Parts of fields that vary: memory is returned in any order, and parts are joined to one array. */
#include "buffer/parts.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "check.h"

static const char text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 3\ntrainers 1\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nlength nodes 9\nlength edges 0\nfield xy int32 2 nodes 2\n"
    "field ends int64 2 2 edges\nfield box float64 1 3\nfield u int64 1 nodes\nindex ends nodes 0\n";

static mpidata_plan plan;
static mpidata_heap heap;

enum { XY = 0, ENDS, BOX, U, NODES = 0, EDGES };

/* Each block taken is filled with its number, and unchanged when it is returned. */
static void heap_of_any_sizes(void) {
    enum { MOST = 300, ROUNDS = 40000 };
    static struct { unsigned char *memory; size_t bytes; } held[MOST];
    mpidata_random random;
    mpidata_heap own = {0};
    size_t most = 0;
    mpidata_random_seed(&random, 7, 0);
    for (int round = 0; round < ROUNDS; round++) {
        const int i = (int)mpidata_random_below(&random, MOST);
        for (size_t at = 0; held[i].memory && at < held[i].bytes; at++) CHECK(held[i].memory[at] == (unsigned char)i);
        mpidata_heap_give_back(&own, held[i].memory);
        held[i].bytes = (size_t)mpidata_random_below(&random, round % 9 ? 3000 : 60000);
        held[i].memory = mpidata_heap_take(&own, held[i].bytes);
        CHECK(held[i].memory && (uintptr_t)held[i].memory % 64 == 0);
        memset(held[i].memory, i, held[i].bytes);
        if (own.taken > most) most = own.taken;
    }
    for (int i = 0; i < MOST; i++) mpidata_heap_give_back(&own, held[i].memory);
    CHECK(own.taken == 0);
    /* All blocks are merged again: a whole chunk fits into the existing memory. */
    const size_t room = own.room;
    void *whole = mpidata_heap_take(&own, ((size_t)4 << 20) - 64);
    CHECK(whole && own.room == room && most < room);
    mpidata_heap_give_back(&own, whole);
    CHECK(mpidata_heap_take(&own, SIZE_MAX / 2) == NULL);
    mpidata_heap_close(&own);
}

/* Samples of 20 bytes to 120 KB, which grow over time, come and go at random: the heap is little larger than the memory
 * in use. */
static void heap_stays_small(void) {
    enum { SAMPLES = 1000, ROUNDS = 1000000 };
    static void *held[SAMPLES];
    mpidata_random random;
    mpidata_heap own = {0};
    size_t most = 0;
    mpidata_random_seed(&random, 8, 0);
    for (int64_t round = 0; round < ROUNDS; round++) {
        const int64_t i = mpidata_random_below(&random, SAMPLES), rows = 1 + mpidata_random_below(&random, 600 + 5400 * round / ROUNDS);
        mpidata_heap_give_back(&own, held[i]);
        held[i] = mpidata_heap_take(&own, (size_t)rows * 20);
        CHECK(held[i]);
        if (own.taken > most) most = own.taken;
    }
    CHECK(own.room < most + most / 8 + ((size_t)8 << 20));
    mpidata_heap_close(&own);
}

static void add(mpidata_parts *parts, int field, int rank, int64_t extent, int64_t first) {
    const mpidata_field *declared = &plan.fields[field];
    mpidata_block block = {.field = field, .ndim = declared->ndim};
    memcpy(block.shape, declared->shape, sizeof block.shape);
    block.shape[declared->varying] = extent;
    block.start[MPIDATA_LEAST] = first;
    block.start[MPIDATA_GREATEST] = first + extent - 1;
    const int part = mpidata_parts_add(parts, &heap, &plan, &block, rank);
    CHECK(part >= 0);
    for (int64_t i = 0; i < mpidata_block_elements(&block); i++) {
        if (declared->element_size == 4)
            ((int32_t *)(void *)parts->list[part].values)[i] = (int32_t)(first + i);
        else
            ((int64_t *)(void *)parts->list[part].values)[i] = first + i;
    }
}

static mpidata_parts two_ranks(int64_t nodes_of_u) {
    mpidata_parts parts = {.numbers = calloc(2, sizeof(int64_t))};
    CHECK(parts.numbers);
    add(&parts, U, 1, nodes_of_u - 3, 30); /* the second rank's part came first */
    add(&parts, ENDS, 1, 2, 3);
    add(&parts, XY, 1, 2, 10);
    add(&parts, XY, 0, 1, 0);
    add(&parts, XY, 0, 2, 2);
    add(&parts, U, 0, 3, 0);
    add(&parts, ENDS, 0, 1, 0);
    return parts;
}

static void clear(mpidata_parts *parts) {
    mpidata_parts_clear(parts, &heap);
    CHECK(parts->n == 0 && heap.taken == 0);
    free(parts->list);
    free(parts->numbers);
}

static void they_are_joined_in_order(void) {
    mpidata_parts parts = two_ranks(5);
    int32_t xy[7][2] = {{0}};
    int64_t ends[2][5] = {{0}}, u[7] = {0};
    void *fields[] = {xy, ends, NULL, u};
    CHECK(!mpidata_parts_join(&parts, &plan));
    CHECK(parts.numbers[NODES] == 5 && parts.numbers[EDGES] == 3);
    const mpidata_packing packing = {.at = (int64_t[]){2, 1}, .all = (int64_t[]){7, 5}, .shifted = 1};
    mpidata_parts_copy(&parts, &plan, &packing, fields, memcpy);
    static const int32_t rows[][2] = {{0, 0}, {0, 0}, {0, 1}, {2, 3}, {4, 5}, {10, 11}, {12, 13}};
    static const int64_t shifted[2][5] = {{0, 0 + 2, 3 + 2, 4 + 2, 0}, {0, 1 + 2, 5 + 2, 6 + 2, 0}}, wanted[] = {0, 0, 0, 1, 2, 30, 31};
    CHECK(!memcmp(xy, rows, sizeof xy) && !memcmp(ends, shifted, sizeof ends) && !memcmp(u, wanted, sizeof u));
    int64_t alone[2][3];
    mpidata_parts_join_field(&parts, &plan, ENDS, (char *)alone);
    CHECK(!memcmp(alone, (int64_t[2][3]){{0, 3, 4}, {1, 5, 6}}, sizeof alone));
    clear(&parts);
}

/* Of three places, only the second is written. */
static void they_are_padded(void) {
    enum { NODES_LONGEST = 1500, EDGES_LONGEST = 4, PLACES = 3 };
    mpidata_parts parts = two_ranks(5);
    static int32_t xy[PLACES][NODES_LONGEST][2];
    static int64_t ends[PLACES][2][EDGES_LONGEST], u[PLACES][NODES_LONGEST];
    const int32_t seven = 7;
    const int64_t none = -1, eight = 1 << 20;
    void *fields[] = {xy, ends, NULL, u};
    memset(xy, 'x', sizeof xy);
    memset(ends, 'x', sizeof ends);
    memset(u, 'x', sizeof u);
    CHECK(!mpidata_parts_join(&parts, &plan));
    const mpidata_packing packing = {.all = (int64_t[]){NODES_LONGEST, EDGES_LONGEST}, .shifted = 1, .place = 1,
                                     .fill = (const void *[]){&seven, &none, NULL, &eight}};
    mpidata_parts_copy(&parts, &plan, &packing, fields, memcpy);
    for (size_t i = 0; i < sizeof xy[0]; i++) CHECK(((char *)xy[0])[i] == 'x' && ((char *)xy[2])[i] == 'x');
    for (size_t i = 0; i < sizeof u[0]; i++) CHECK(((char *)u[0])[i] == 'x' && ((char *)u[2])[i] == 'x');
    for (size_t i = 0; i < sizeof ends[0]; i++) CHECK(((char *)ends[0])[i] == 'x' && ((char *)ends[2])[i] == 'x');
    static const int32_t rows[5][2] = {{0, 1}, {2, 3}, {4, 5}, {10, 11}, {12, 13}};
    static const int64_t own[2][EDGES_LONGEST] = {{0, 3, 4, -1}, {1, 5, 6, -1}}, values[5] = {0, 1, 2, 30, 31};
    CHECK(!memcmp(xy[1], rows, sizeof rows) && !memcmp(ends[1], own, sizeof own) && !memcmp(u[1], values, sizeof values));
    for (int i = 5; i < NODES_LONGEST; i++) CHECK(xy[1][i][0] == seven && xy[1][i][1] == seven && u[1][i] == eight);
    clear(&parts);
}

/* A sample as long as the longest has no padding, and an empty one is only padding. */
static void no_padding_and_nothing_but_padding(void) {
    mpidata_parts parts = two_ranks(5), empty = {.numbers = calloc(2, sizeof(int64_t))};
    int64_t ends[2][2][3], u[2][5];
    int32_t xy[2][5][2];
    const int32_t zero = 0;
    const int64_t none = -1, nothing = 0;
    CHECK(empty.numbers && !mpidata_parts_join(&parts, &plan));
    for (int f = 0; f < plan.n_fields; f++)
        if (f != BOX) CHECK(!mpidata_parts_fill(&empty, &heap, &plan, f, 0, NULL));
    CHECK(!mpidata_parts_join(&empty, &plan));
    mpidata_packing packing = {.all = parts.numbers, .fill = (const void *[]){&zero, &none, NULL, &nothing}};
    mpidata_parts_copy(&parts, &plan, &packing, (void *[]){xy, ends, NULL, u}, memcpy);
    packing.place = 1;
    mpidata_parts_copy(&empty, &plan, &packing, (void *[]){xy, ends, NULL, u}, memcpy);
    CHECK(!memcmp(ends, (int64_t[2][2][3]){{{0, 3, 4}, {1, 5, 6}}, {{-1, -1, -1}, {-1, -1, -1}}}, sizeof ends));
    CHECK(!memcmp(u, (int64_t[2][5]){{0, 1, 2, 30, 31}}, sizeof u) && !memcmp(xy[1], (int32_t[5][2]){{0}}, sizeof xy[1]));
    packing.all = empty.numbers; /* all are empty */
    mpidata_parts_copy(&empty, &plan, &packing, (void *[]){NULL, NULL, NULL, NULL}, memcpy);
    mpidata_parts_clear(&empty, &heap);
    clear(&parts);
    free(empty.list);
    free(empty.numbers);
}

static void what_does_not_fit_is_refused(void) {
    mpidata_parts parts = two_ranks(6);
    CHECK(mpidata_parts_join(&parts, &plan) == MPIDATA_ERR_SHAPE && strstr(mpidata_last_error(), "Fields 'xy' and 'u' have 5 and 6 'nodes'"));
    clear(&parts);
    parts = two_ranks(5);
    add(&parts, ENDS, 1, 1, 5);
    CHECK(mpidata_parts_join(&parts, &plan) == MPIDATA_ERR_ARGUMENT && strstr(mpidata_last_error(), "the index 5, but there are 5"));
    clear(&parts);
    parts = two_ranks(5);
    add(&parts, XY, 1, 5, 0);
    add(&parts, U, 1, 5, 0);
    CHECK(mpidata_parts_join(&parts, &plan) == MPIDATA_ERR_SHAPE && strstr(mpidata_last_error(), "at most 9"));
    clear(&parts);
    parts = two_ranks(5);
    for (int i = 0; i < parts.n; i++)
        if (parts.list[i].block.field == ENDS) parts.list[i].block.shape[1] = INT_MAX / 3; /* 2 x 2 of them */
    CHECK(mpidata_parts_join(&parts, &plan) == MPIDATA_ERR_SHAPE && strstr(mpidata_last_error(), "more than 2147483647 elements"));
    clear(&parts);
}

static void a_sample_of_nothing(void) {
    mpidata_parts parts = {.numbers = calloc(2, sizeof(int64_t))};
    CHECK(parts.numbers && mpidata_parts_join(&parts, &plan) == MPIDATA_ERR_FIELD && strstr(mpidata_last_error(), "'xy' was not put"));
    for (int f = 0; f < plan.n_fields; f++)
        if (f != BOX) CHECK(!mpidata_parts_fill(&parts, &heap, &plan, f, 0, NULL));
    CHECK(!mpidata_parts_join(&parts, &plan) && parts.n == 3 && parts.numbers[NODES] == 0 && parts.numbers[EDGES] == 0);
    CHECK(mpidata_parts_fill(&parts, &heap, &plan, XY, INT64_MAX, "") == MPIDATA_ERR_SHAPE);
    clear(&parts);
}

int main(void) {
    CHECK(!mpidata_plan_parse(text, &plan) && plan.n_lengths == 2 && plan.fields[ENDS].index_of == NODES);
    CHECK(plan.fields[XY].varying == 0 && plan.fields[ENDS].varying == 1 && plan.fields[BOX].varying == -1);
    CHECK(plan.slot_bytes == 64 && plan.fields[XY].row == 2 && plan.fields[XY].elements == 0);
    heap_of_any_sizes();
    heap_stays_small();
    they_are_joined_in_order();
    they_are_padded();
    no_padding_and_nothing_but_padding();
    what_does_not_fit_is_refused();
    a_sample_of_nothing();
    mpidata_heap_close(&heap);
    mpidata_plan_free(&plan);
    return 0;
}

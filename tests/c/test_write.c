/* Slots are written completely, however few bytes the file takes at a time. */
#include "buffer/write.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "check.h"
#include "example_plan.h"

enum { SAMPLES = 300, FIELD = 2, BYTES = 24 }; /* more samples than one write takes */

static unsigned char file[SAMPLES * BYTES + 100];
static int64_t room; /* of the file */
static int calls, most_at_once;

/* The library calls this write: it is sometimes interrupted, and takes only a few bytes. */
ssize_t pwritev(int descriptor, const struct iovec *pieces, int n, off_t offset) {
    CHECK(descriptor == 7 && n > 0 && offset >= 0);
    if (++calls % 5 == 0) {
        errno = EINTR;
        return -1;
    }
    ssize_t done = 0;
    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < pieces[i].iov_len && done < most_at_once && offset + done < room; j++)
            file[offset + done++] = ((unsigned char *)pieces[i].iov_base)[j];
    if (!done) errno = EFBIG;
    return done ? done : -1;
}

static const char text_with_lengths[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 3\ntrainers 1\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\npolicy fifo\ncapacity 100\nwatermark 0\ntail drop\nlength nodes 0\nfield u int32 1 nodes\nfield xy int32 2 2 nodes\n"
    "field p int32 1 nodes\noptional p\n";

/* Part [from, from + extent) of a sample's nodes; the value of node n of row r is 1000 * sample + 100 * r + n. */
static void add_part(mpidata_slots *slots, mpidata_slot *slot, int field, int rank, int sample, int from, int extent) {
    const mpidata_field *declared = &slots->plan->fields[field];
    mpidata_block block = {.field = field, .ndim = declared->ndim};
    memcpy(block.shape, declared->shape, sizeof block.shape);
    block.shape[declared->varying] = extent;
    const int part = mpidata_parts_add(&slot->parts, &slots->heap, slots->plan, &block, rank);
    CHECK(part >= 0);
    int32_t *values = (int32_t *)(void *)slot->parts.list[part].values;
    for (int row = 0; row < declared->row; row++)
        for (int n = 0; n < extent; n++) *values++ = 1000 * sample + 100 * row + from + n;
}

/* One part, two parts with the second rank's first, no nodes, and an optional field that was not put. */
static void parts_are_joined(void) {
    enum { U, XY, P, N = 4 };
    static const int lengths[N] = {3, 5, 0, 2};
    mpidata_plan plan;
    mpidata_slots slots;
    mpidata_slot *list[N];
    CHECK(!mpidata_plan_parse(text_with_lengths, &plan) && !mpidata_slots_open(&slots, &plan));
    for (int i = 0; i < N; i++) {
        const int64_t number = mpidata_slots_take(&slots, -1);
        list[i] = slots.slots[number];
        for (int field = U; field <= (i % 2 ? P : XY); field++) {
            const int first = i == 1 ? 2 : lengths[i];
            if (i == 1) add_part(&slots, list[i], field, 1, i, first, lengths[i] - first);
            add_part(&slots, list[i], field, 0, i, 0, first);
        }
        CHECK(!mpidata_parts_join(&list[i]->parts, &plan));
    }
    room = sizeof file;
    for (most_at_once = 1; most_at_once < 1000; most_at_once *= 7)
        for (int field = U; field <= P; field++) {
            memset(file, 0xff, sizeof file);
            CHECK(mpidata_write_field(&slots, 7, field, list, N, 8) == 0);
            const int32_t *written = (const int32_t *)(const void *)(file + 8);
            CHECK(written[-1] == -1);
            for (int i = 0; i < N; i++)
                for (int row = 0; row < (field == XY ? 2 : 1); row++)
                    for (int n = 0; n < lengths[i]; n++)
                        CHECK(*written++ == (field < P || i % 2 ? 1000 * i + 100 * row + n : 0));
            CHECK(*written == -1);
        }
    room = 8 + 4 * (lengths[0] + 1);
    for (int field = U; field <= P; field++) CHECK(mpidata_write_field(&slots, 7, field, list, N, 8) == EFBIG);
    mpidata_slots_close(&slots);
    mpidata_plan_free(&plan);
}

int main(void) {
    mpidata_plan plan;
    mpidata_slots slots;
    mpidata_slot *list[SAMPLES];
    CHECK(!mpidata_plan_parse(example_plan, &plan) && !mpidata_slots_open(&slots, &plan));
    CHECK((size_t)plan.fields[FIELD].elements * plan.fields[FIELD].element_size == BYTES);
    for (int i = 0; i < SAMPLES; i++) {
        int64_t number = mpidata_slots_take(&slots, -1);
        list[i] = slots.slots[number];
        for (int j = 0; j < BYTES; j++) mpidata_slot_field(&slots, list[i], FIELD)[j] = (char)(7 * i + j);
    }
    for (most_at_once = 1; most_at_once < 100000; most_at_once *= 23) {
        memset(file, 0, sizeof file);
        room = sizeof file;
        CHECK(mpidata_write_field(&slots, 7, FIELD, list, SAMPLES, 50) == 0);
        for (int i = 0; i < SAMPLES * BYTES; i++) CHECK(file[50 + i] == (unsigned char)(7 * (i / BYTES) + i % BYTES));
        for (int i = 0; i < 50; i++) CHECK(!file[i] && !file[50 + SAMPLES * BYTES + i]);
        room = 50 + 10 * BYTES + 1;
        CHECK(mpidata_write_field(&slots, 7, FIELD, list, SAMPLES, 50) == EFBIG);
    }
    CHECK(mpidata_write_field(&slots, 7, FIELD, list, 0, 0) == 0);
    mpidata_slots_close(&slots);
    mpidata_plan_free(&plan);
    parts_are_joined();
    return 0;
}

/* What is written of slots is whole, whatever the file takes at a time. */
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

/* The library calls this one: it is interrupted now and then, and takes no more than a few bytes. */
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
    return 0;
}

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "carried/infer_by_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "question/in_memory.h"

/* A place for questions, and the one that is open in it. */
typedef struct {
    char *memory; /* made by the carrier; NULL: none yet */
    uint64_t bytes;
    int64_t question; /* its number; 0: none is open */
    int64_t *version;
    int n_out;
    void *out[MPIDATA_ARRAYS_MAX];
    size_t out_bytes[MPIDATA_ARRAYS_MAX];
    uint64_t at[2 * MPIDATA_ARRAYS_MAX]; /* of the arrays in the memory; of the outputs: */
    const uint64_t *out_at;
} question_place;

static struct {
    question_place places[MPIDATA_CARRIED_QUESTIONS];
    int64_t asked, settled; /* numbers of the last question, and of the last one that was settled */
} asking;

/* The place of an open question; for 0, a free place. */
static int find_place(int64_t question) {
    for (int i = 0; i < MPIDATA_CARRIED_QUESTIONS; i++)
        if (asking.places[i].question == question) return i;
    return -1;
}

static void unmap_place(question_place *at) {
    if (at->memory) (void)munmap(at->memory, (size_t)at->bytes);
    at->memory = NULL;
    at->bytes = 0;
}

static int map_place(question_place *at, int memory) {
    struct stat status;
    if (fstat(memory, &status)) return mpidata_error(MPIDATA_ERR_JOB, "mpidata_infer: cannot take the carrier's memory: %s.", strerror(errno));
    void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED)
        return mpidata_error(MPIDATA_ERR_MEMORY, "mpidata_infer: cannot map %llu bytes of the carrier's memory: %s.",
                             (unsigned long long)status.st_size, strerror(errno));
#ifdef MADV_HUGEPAGE
    (void)madvise(mapped, (size_t)status.st_size, MADV_HUGEPAGE); /* only a hint, as in the carrier */
#endif
    at->memory = mapped;
    at->bytes = (uint64_t)status.st_size;
    return MPIDATA_SUCCESS;
}

/* The memory of a place grows with its questions. */
static int room_for_question(mpidata_channel *channel, int number, uint64_t bytes) {
    int memory;
    question_place *at = &asking.places[number];
    if (bytes <= at->bytes) return MPIDATA_SUCCESS;
    unmap_place(at);
    MPIDATA_TRY(mpidata_channel_room(channel, number, bytes, &memory));
    const int status = map_place(at, memory);
    (void)close(memory);
    if (status || at->bytes >= bytes) return status;
    return mpidata_error(MPIDATA_ERR_JOB, "mpidata_infer: the carrier's memory does not have the announced size.");
}

int mpidata_carried_infer_begin(mpidata_channel *channel, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                        int64_t *version, int64_t *question) {
    const int number = find_place(0);
    if (number < 0) return mpidata_error(MPIDATA_ERR_ARGUMENT, "%d questions are already open", MPIDATA_CARRIED_QUESTIONS);
    question_place *at = &asking.places[number];
    MPIDATA_TRY(room_for_question(channel, number, mpidata_question_lay_out(in, n_in, out, n_out, at->at)));
    MPIDATA_TRY(mpidata_question_write(at->memory, in, n_in, out, n_out, at->at));
    at->version = version;
    at->n_out = n_out;
    at->out_at = at->at + n_in;
    for (int i = 0; i < n_out; i++) {
        at->out[i] = out[i].values;
        at->out_bytes[i] = mpidata_array_bytes(&out[i]);
    }
    *question = at->question = ++asking.asked;
    mpidata_channel_question(channel, number);
    return MPIDATA_SUCCESS;
}

static int copy_answer(const mpidata_channel *channel, int number) {
    question_place *at = &asking.places[number];
    const mpidata_carried_answer *answer = &channel->shared->answers[number];
    at->question = 0;
    if (answer->status) return MPIDATA_END;
    for (int i = 0; i < at->n_out; i++)
        if (at->out_bytes[i]) memcpy(at->out[i], at->memory + at->out_at[i], at->out_bytes[i]);
    if (at->version) *at->version = answer->version;
    return MPIDATA_SUCCESS;
}

int mpidata_carried_infer_wait(mpidata_channel *channel, int64_t question) {
    if (question > 0 && question <= asking.settled) return MPIDATA_SUCCESS;
    const int number = question > 0 ? find_place(question) : -1;
    if (number < 0) return MPIDATA_ERR_ARGUMENT;
    MPIDATA_TRY(mpidata_channel_answer(channel, number));
    return copy_answer(channel, number);
}

int mpidata_carried_infer_settle(mpidata_channel *channel) {
    for (int i = 0; i < MPIDATA_CARRIED_QUESTIONS; i++) {
        if (!asking.places[i].question) continue;
        const int status = mpidata_carried_infer_wait(channel, asking.places[i].question);
        if (status && status != MPIDATA_END) return status;
    }
    asking.settled = asking.asked;
    return MPIDATA_SUCCESS;
}

void mpidata_carried_infer_close(void) {
    for (int i = 0; i < MPIDATA_CARRIED_QUESTIONS; i++) unmap_place(&asking.places[i]);
    memset(&asking, 0, sizeof asking);
}

/* The learner as seen by the scheduler: its requests, which of its answers count, and what it may send. */
#include "scheduler/teaching.h"

#include "fake_mpi.h"
#include "parcel/parcel.h"
#include "parcel/parcel_view.h"
#include "wire/messages.h"

enum { RANKS = 6, LEARNER = 4, NEXT = 5, LARGE = 50000 };

static mpidata_link link;
static char dead[RANKS], large[LARGE];
static int n_forgotten;

/* Called for messages under way to or from a dead learner. */
int MPI_Request_free(MPI_Request *request) {
    n_forgotten++;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static void begin(int learner, int rank) {
    link = (mpidata_link){.comm = MPI_COMM_SELF, .n_ranks = RANKS, .dead = dead};
    CHECK(!mpidata_teaching_begin(&link, learner, rank));
}

static void teach(uint64_t number) {
    static const void *const parts[] = {"abc", large};
    static const int64_t sizes[] = {3, LARGE};
    CHECK(!mpidata_scheduler_teach(number, 2, parts, sizes));
}

/* An answer with the bytes of `large` from this rank. */
static const fake_message *send_answer(int rank, uint64_t number) {
    static char first[4][1 << 10];
    static int turn;
    char *message = first[turn++ % 4];
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .number = number, .n_parts = 1};
    const int64_t bytes = LARGE;
    const void *part = large;
    mpidata_parcel_write_first(&head, &bytes, &part, message);
    (void)fake_send(rank, MPIDATA_TAG_PARCEL, message, mpidata_parcel_first_bytes(&bytes, 1));
    return fake_send(rank, MPIDATA_TAG_PARCEL, large, LARGE);
}

static int go_round(void) {
    int did = 0;
    for (int i = 0; i < 4; i++) CHECK(!mpidata_teaching_round(&did));
    return did;
}

static int learns(uint64_t number, int learner) {
    mpidata_taken answer;
    if (mpidata_scheduler_learnt(&answer)) return 0;
    CHECK(answer.number == number && answer.peer == learner && answer.n_parts == 1 &&
          !memcmp(answer.memory, large, LARGE));
    mpidata_parcel_release(answer.parcel);
    return 1;
}

static void nobody_is_asked_before_there_is_a_learner(void) {
    fake_reset();
    teach(1);
    CHECK(!fake_n && !go_round() && !learns(1, 0));
    mpidata_teaching_end(0);
    mpidata_teaching_close();
}

static void each_request_has_its_answer(void) {
    fake_reset();
    begin(0, LEARNER);
    teach(7);
    const mpidata_parcel_head *head = fake_messages[0].bytes;
    CHECK(fake_n == 2 && fake_messages[0].source == LEARNER && fake_messages[0].tag == MPIDATA_TAG_REQUEST);
    CHECK(head->magic == MPIDATA_PARCEL_MAGIC && head->number == 7 && head->n_parts == 2 &&
          fake_messages[1].bytes == large);
    CHECK(!go_round() && !learns(7, 0));
    fake_message *rest = &fake_messages[send_answer(LEARNER, 7) - fake_messages];
    rest->held = 1;
    CHECK(!go_round() && !learns(7, 0)); /* incomplete */
    rest->held = 0;
    (void)send_answer(LEARNER, 8);
    CHECK(go_round() && !go_round() && learns(7, 0) && learns(8, 0) && !learns(9, 0));
    (void)send_answer(NEXT, 9); /* a spare learner must not send */
    CHECK(!go_round() && !learns(9, 1));
    mpidata_teaching_close();
}

static void the_next_one_is_asked_when_one_is_lost(void) {
    fake_reset();
    n_forgotten = 0;
    begin(0, LEARNER);
    fake_hold_sends = 1;
    teach(3);
    fake_hold_sends = 0;
    fake_messages[send_answer(LEARNER, 2) - fake_messages].held = 1; /* half of the answer has come */
    CHECK(!go_round());
    mpidata_teaching_end(1); /* another learner is lost */
    CHECK(!n_forgotten);
    mpidata_teaching_end(0);
    CHECK(n_forgotten == 2 && !learns(2, 0)); /* the large part of the request; small parts travel with the header */
    fake_n = 0;
    teach(3);
    CHECK(!fake_n && !go_round());
    begin(1, NEXT);
    teach(3);
    (void)send_answer(LEARNER, 3); /* too late */
    (void)send_answer(NEXT, 3);
    CHECK(go_round() && learns(3, 1) && !learns(3, 0));
    dead[NEXT] = 1;
    const int before = fake_n;
    teach(4);
    CHECK(fake_n == before);
    dead[NEXT] = 0;
    mpidata_teaching_close();
}

static void a_death_is_told_by_others(void) {
    if (!FAKE_DEATH) return;
    fake_reset();
    begin(0, LEARNER);
    fake_messages[send_answer(LEARNER, 5) - fake_messages].dead = 1;
    CHECK(!go_round() && !learns(5, 0));
    mpidata_teaching_end(0);
}

/* Random bytes from the learner give an error or a whole parcel. */
static void what_comes_is_checked(void) {
    static _Alignas(8) char message[1 << 10];
    const int64_t sizes[] = {5, 300};
    const void *const parts[] = {"abcd", large};
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .number = 1, .n_parts = 2};
    const size_t bytes = mpidata_parcel_first_bytes(sizes, 2);
    uint64_t state = 1;
    int n_wrong = 0, n_taken = 0;
    for (int i = 0; i < 20000; i++) {
        int did = 0, status = MPIDATA_SUCCESS;
        size_t size = bytes;
        fake_reset();
        begin(0, LEARNER);
        mpidata_parcel_write_first(&head, sizes, parts, message);
        for (int k = i % 4; k > 0; k--) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            if ((state >> 62) == 0)
                size = (size_t)((state >> 33) % bytes);
            else
                message[(state >> 33) % 64] = (char)(state >> 40);
        }
        (void)fake_send(LEARNER, MPIDATA_TAG_PARCEL, message, size);
        for (int k = 0; k < 3 && !status; k++) status = mpidata_teaching_round(&did);
        CHECK(!status || status == MPIDATA_ERR_WIRE || status == MPIDATA_ERR_MEMORY);
        n_wrong += status != 0;
        mpidata_taken answer;
        if (!status && !mpidata_scheduler_learnt(&answer)) {
            n_taken++;
            for (int64_t part = 0; part < answer.n_parts; part++)
                CHECK(answer.sizes[part] >= 0 && answer.offsets[part] + answer.sizes[part] <= answer.bytes);
            mpidata_parcel_release(answer.parcel);
        }
        mpidata_teaching_close();
    }
    CHECK(n_wrong > 1000 && n_taken >= 5000);
}

int main(void) {
    for (int i = 0; i < LARGE; i++) large[i] = (char)(i % 101);
    nobody_is_asked_before_there_is_a_learner();
    each_request_has_its_answer();
    the_next_one_is_asked_when_one_is_lost();
    a_death_is_told_by_others();
    what_comes_is_checked();
    return 0;
}

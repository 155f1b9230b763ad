/* The scheduler's sampler reads what trainers publish: one question at a time, whose answer is kept until it is
 * taken. */
#include "scheduler/reading.h"

#include "example_plan.h"
#include "fake_mpi.h"
#include "parcel/parcel_view.h"

static mpidata_job job;

static mpidata_contents *contents_of(int64_t version) {
    static const char *const names[] = {"weight"};
    static const int32_t dtypes[] = {MPIDATA_FLOAT64}, ndims[] = {1};
    static const int64_t shapes[] = {100, 0, 0, 0, 0, 0};
    mpidata_contents *described;
    CHECK(!mpidata_contents_describe(1, names, dtypes, ndims, shapes, &described));
    mpidata_contents *made = calloc(1, (size_t)described->bytes);
    CHECK(made);
    memcpy(made, described, mpidata_description_bytes(1));
    made->version = version;
    made->described = 0;
    free(described);
    return made;
}

/* Trainer 0's answer, whose memory the next answer uses again. */
static void send_answer(const mpidata_contents *contents, uint64_t number) {
    static char first[1 << 12];
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .n_parts = 1, .kind = contents != NULL,
                                      .number = number};
    const int64_t bytes = contents ? contents->bytes : 0;
    const void *part = contents;
    mpidata_parcel_write_first(&head, &bytes, &part, first);
    (void)fake_send(1, MPIDATA_TAG_PUBLISHED, first, mpidata_parcel_first_bytes(&bytes, 1));
}

static int go_round(int *did) {
    int status = MPIDATA_SUCCESS;
    *did = 0;
    for (int i = 0; i < 4 && !status; i++) status = mpidata_reading_round(did);
    return status;
}

static void open_reading(void) {
    fake_reset();
    memset(&job, 0, sizeof job);
    job.data = MPI_COMM_SELF;
    job.kind = MPIDATA_ROLE_SCHEDULER;
    CHECK(!mpidata_plan_parse(example_plan, &job.plan));
    fake_ranks = job.plan.world;
    mpidata_reading_open(&job);
}

static void close_reading(void) {
    mpidata_reading_close();
    mpidata_plan_free(&job.plan);
}

static void nobody_reads_outside_a_job(void) {
    mpidata_taken answer;
    int did;
    CHECK(mpidata_scheduler_ask_published(0) == MPIDATA_ERR_ORDER &&
          mpidata_scheduler_published(&answer) == MPIDATA_ERR_AGAIN);
    CHECK(!go_round(&did) && !did);
    mpidata_reading_close();
}

static void an_answer_is_kept_until_it_is_taken(void) {
    mpidata_contents *eighth = contents_of(8), *ninth = contents_of(9);
    mpidata_taken answer;
    int did;
    open_reading();
    CHECK(!go_round(&did) && !did && !fake_n); /* no question, no message */
    CHECK(!mpidata_scheduler_ask_published(5) && !mpidata_scheduler_ask_published(5) && fake_n == 1);
    const mpidata_ask *asked = fake_messages[0].bytes;
    CHECK(fake_messages[0].tag == MPIDATA_TAG_ASK && fake_messages[0].source == 1 && asked->version == 5 &&
          !asked->waits);
    CHECK(!go_round(&did) && !did && mpidata_scheduler_published(&answer) == MPIDATA_ERR_AGAIN);
    CHECK(!mpidata_scheduler_ask_published(5) && fake_n == 1); /* the question is still open */
    send_answer(eighth, 8);
    CHECK(!go_round(&did) && did && !go_round(&did) && !did);
    CHECK(!mpidata_scheduler_published(&answer) && answer.number == 8 && answer.kind == MPIDATA_PUBLISHED_NEWER);
    CHECK(answer.sizes[0] == eighth->bytes && !memcmp(answer.memory, eighth, (size_t)eighth->bytes));
    CHECK(mpidata_scheduler_published(&answer) == MPIDATA_ERR_AGAIN);
    mpidata_parcel_release(answer.parcel);
    CHECK(!mpidata_scheduler_ask_published(8));
    send_answer(ninth, 9);
    CHECK(!go_round(&did) && did);
    /* not taken, dropped */
    CHECK(!mpidata_scheduler_ask_published(9) && mpidata_scheduler_published(&answer) == MPIDATA_ERR_AGAIN);
    send_answer(NULL, 9);
    CHECK(!go_round(&did) && did && !mpidata_scheduler_published(&answer) && answer.kind == MPIDATA_PUBLISHED_SAME);
    mpidata_parcel_release(answer.parcel);
    CHECK(!mpidata_scheduler_ask_published(9));
    send_answer(NULL, 9);
    CHECK(!go_round(&did) && did);
    close_reading(); /* frees it */
    free(eighth);
    free(ninth);
}

/* Random bytes give an error that names the trainer, or complete and newer contents. */
static void what_comes_is_checked(void) {
    mpidata_contents *good = contents_of(8), *sent = contents_of(8);
    const size_t bytes = (size_t)good->bytes;
    uint64_t state = 1;
    int n_wrong = 0, n_taken = 0, did;
    for (int i = 0; i < 20000; i++) {
        open_reading();
        CHECK(!mpidata_scheduler_ask_published(5));
        memcpy(sent, good, bytes);
        for (int k = i % 3; k > 0; k--) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            ((char *)sent)[(state >> 33) % (mpidata_description_bytes(1))] = (char)(state >> 40);
        }
        const int64_t size = sent->bytes;
        sent->bytes = (int64_t)bytes; /* of the parcel */
        if (size != (int64_t)bytes && i % 2) sent->bytes = size & 0x3ff;
        send_answer(sent, 8);
        const int status = go_round(&did);
        CHECK(!status || (status == MPIDATA_ERR_WIRE && strstr(mpidata_last_error(), "Trainer 0 sent it")));
        n_wrong += status != 0;
        mpidata_taken answer;
        if (!mpidata_scheduler_published(&answer)) {
            n_taken++;
            const mpidata_contents *got = (const mpidata_contents *)(const void *)answer.memory;
            CHECK(!status && !mpidata_contents_check(got, (size_t)answer.sizes[0]) && got->version == 8);
            mpidata_parcel_release(answer.parcel);
        }
        close_reading();
    }
    CHECK(n_wrong > 1000 && n_taken > 6000);
    free(good);
    free(sent);
}

int main(void) {
    nobody_reads_outside_a_job();
    an_answer_is_kept_until_it_is_taken();
    what_comes_is_checked();
    return 0;
}

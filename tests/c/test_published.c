/* Published arrays: their layout in memory, its reuse between versions, and questions and answers. */
#include "example_plan.h"
#include "fake_mpi.h"
#include "published/asking.h"
#include "receive/answering/publishing.h"
#include "stream/state.h"
#include "trainer/published/publish.h"

enum { ELEMENTS = 5000, ASKER = 3, ONE = 1 };

static const char *const names[] = {"weight", "step", "none"};
static const int32_t dtypes[] = {MPIDATA_FLOAT64, MPIDATA_INT64, MPIDATA_INT16}, ndims[] = {2, 0, 2};
static const int64_t shapes[] = {ELEMENTS / 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0};
static double weight[ELEMENTS];
static int64_t step;
static const void *const values[] = {weight, &step, NULL};

static mpidata_contents *describe(void) {
    mpidata_contents *made;
    CHECK(!mpidata_contents_describe(3, names, dtypes, ndims, shapes, &made));
    return made;
}

static int differs(int64_t n, const char *const *others, const int32_t *kinds, const int64_t *extents,
                   const char *sentence) {
    mpidata_contents *first = describe(), *other;
    CHECK(!mpidata_contents_describe(n, others, kinds, ndims, extents, &other));
    const int status = mpidata_contents_alike(first, other);
    free(first);
    free(other);
    CHECK(strstr(mpidata_last_error(), sentence));
    return status;
}

static void what_differs_is_refused(void) {
    const char *const fewer[] = {"weight", "step"}, *const another[] = {"weight", "bias", "none"},
        *const turned[] = {"step", "weight", "none"};
    const int32_t kinds[] = {MPIDATA_FLOAT32, MPIDATA_INT64, MPIDATA_INT16};
    int64_t extents[18];
    memcpy(extents, shapes, sizeof shapes);
    extents[1] = 4;
    CHECK(differs(3, names, dtypes, extents,
                  "'weight' is float64 [1000, 4], but was float64 [1000, 5]") == MPIDATA_ERR_ARGUMENT);
    CHECK(differs(3, names, kinds, shapes, "'weight' is float32 [1000, 5], but was float64") == MPIDATA_ERR_ARGUMENT);
    CHECK(differs(2, fewer, dtypes, shapes, "'none' was in the first call, and is missing") == MPIDATA_ERR_ARGUMENT);
    CHECK(differs(3, another, dtypes, shapes, "'bias' was not in the first call") == MPIDATA_ERR_ARGUMENT);
    CHECK(differs(3, turned, dtypes, shapes, "in another place") == MPIDATA_ERR_ARGUMENT);
}

static void what_cannot_be_is_refused(void) {
    mpidata_contents *made = NULL;
    char longest[200];
    const char *const empty[] = {""}, *const too_long[] = {longest};
    const int64_t negative[] = {-1, 0, 0, 0, 0, 0}, huge[] = {INT64_MAX / 2, INT64_MAX / 2, 0, 0, 0, 0};
    const int32_t seven[] = {7}, unknown[] = {99};
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CHECK(mpidata_contents_describe(0, names, dtypes, ndims, shapes, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(mpidata_contents_describe(1, empty, dtypes, ndims, shapes, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(strstr(mpidata_last_error(), "the name of an array is empty. Give it one."));
    CHECK(mpidata_contents_describe(1, too_long, dtypes, ndims, shapes, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(strstr(mpidata_last_error(), "is longer than 127 bytes. Give it a shorter one."));
    CHECK(mpidata_contents_describe(1, names, dtypes, ndims, negative, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(mpidata_contents_describe(1, names, dtypes, ndims, huge, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(mpidata_contents_describe(1, names, dtypes, seven, shapes, &made) == MPIDATA_ERR_ARGUMENT);
    CHECK(mpidata_contents_describe(1, names, unknown, ndims, shapes, &made) == MPIDATA_ERR_ARGUMENT && !made);
}

static void what_comes_is_checked(void) {
    mpidata_contents *made = describe();
    const int64_t all = made->bytes;
    mpidata_contents *whole = calloc(1, (size_t)all);
    CHECK(whole && all % 64 == 0);
    memcpy(whole, made, mpidata_description_bytes(3));
    mpidata_published_array *arrays = (mpidata_published_array *)(whole + 1);
    CHECK(mpidata_contents_check(whole, (size_t)all) == MPIDATA_ERR_WIRE); /* version 0 */
    whole->version = 1;
    CHECK(!mpidata_contents_check(whole, (size_t)all));
    CHECK(mpidata_contents_check(whole, (size_t)all - 1) == MPIDATA_ERR_WIRE &&
          mpidata_contents_check(whole, 8) == MPIDATA_ERR_WIRE);
    const mpidata_contents good = *whole;
    const mpidata_published_array first = arrays[0];
    for (int wrong = 0; wrong < 9; wrong++) {
        if (wrong == 0) whole->magic++;
        if (wrong == 1) whole->n = INT64_MAX;
        if (wrong == 2) whole->bytes--;
        if (wrong == 3) memset(arrays[0].name, 'a', sizeof arrays[0].name);
        if (wrong == 4) arrays[0].dtype = 0;
        if (wrong == 5) arrays[0].ndim = 7;
        if (wrong == 6) arrays[0].shape[1] = INT64_MAX;
        if (wrong == 7) arrays[0].at += 64;
        if (wrong == 8) whole->described = 1;
        CHECK(mpidata_contents_check(whole, (size_t)all) == MPIDATA_ERR_WIRE);
        *whole = good;
        arrays[0] = first;
    }
    char text[256];
    mpidata_contents_names(whole, text, sizeof text);
    CHECK(strcmp(text, "'weight', 'step' and 'none'") == 0);
    mpidata_contents_names(whole, text, 170);
    CHECK(strcmp(text, "'weight', 'step' and 1 more") == 0);
    CHECK(mpidata_contents_find(whole, "step") == &arrays[1] && !mpidata_contents_find(whole, "steps"));
    free(whole);
    free(made);
}

/* -- a trainer ----------------------------------------------------------------------------------------------------- */

static mpidata_trainer trainer;
static mpidata_incoming in;
static mpidata_publishing publishing;

static void open_trainer(void) {
    fake_reset();
    memset(&trainer, 0, sizeof trainer);
    CHECK(!mpidata_plan_parse(example_plan, &trainer.job.plan));
    trainer.job.data = MPI_COMM_SELF;
    fake_ranks = trainer.job.plan.world;
    CHECK(!mpidata_trainer_open_state(&trainer));
    mpidata_trainer_set(&trainer);
    CHECK(!mpidata_incoming_open(&in, &trainer));
    publishing = (mpidata_publishing){.trainer = &trainer, .in = &in};
}

static void close_trainer(void) {
    CHECK(!mpidata_publishing_close(&publishing));
    mpidata_incoming_close(&in);
    mpidata_trainer_close_state(&trainer);
    mpidata_plan_free(&trainer.job.plan);
    mpidata_trainer_set(NULL);
}

static int64_t publish(int copies) {
    int64_t version = 0;
    step++;
    for (int i = 0; i < ELEMENTS; i++) weight[i] = (double)(step + i);
    CHECK(!mpidata_trainer_publish(3, names, dtypes, ndims, shapes, values, copies, &version));
    return version;
}

static void go_round(void) {
    int did = 0;
    fake_clock += 1;
    CHECK(!mpidata_publishing_round(&publishing, &did));
}

/* The message with this number is the first one of an answer; all values of a whole version follow in the next one. */
static const mpidata_parcel_head *answer(int number) {
    CHECK(number < fake_n && fake_messages[number].tag == MPIDATA_TAG_PUBLISHED &&
          fake_messages[number].source == ASKER);
    return fake_messages[number].bytes;
}

static void versions_use_memory_again(void) {
    const mpidata_ask ask = {0};
    open_trainer();
    step = 0;
    CHECK(publish(ONE) == 1 && publish(ONE) == 2 && publish(ONE) == 3 && trainer.versions.n == 2);
    fake_hold_sends = 1;
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &ask, sizeof ask);
    go_round();
    const mpidata_parcel_head *head = answer(1);
    const mpidata_contents *sent = fake_messages[2].bytes;
    CHECK(fake_n == 3 && head->kind == MPIDATA_PUBLISHED_NEWER && head->number == 3 && sent->version == 3);
    for (int i = 0; i < 4; i++) (void)publish(ONE); /* memory being sent stays unchanged */
    CHECK(trainer.versions.n == 3 && sent->version == 3 && !mpidata_contents_check(sent, (size_t)sent->bytes));
    const double *read = (const double *)(const void *)((const char *)sent + mpidata_contents_find(sent, "weight")->at);
    CHECK(read[0] == 3.0 && read[ELEMENTS - 1] == (double)(ELEMENTS + 2) && in.answers_under_way == 2);
    fake_hold_sends = fake_messages[1].held = fake_messages[2].held = 0;
    go_round();
    for (int i = 0; i < 4; i++) CHECK(!trainer.versions.editions[i % 3].readers && publish(ONE) == 8 + i);
    CHECK(trainer.versions.n == 3 && !in.answers_under_way);
    close_trainer();
}

static void who_has_the_newest_is_told_so_or_waits(void) {
    mpidata_ask ask = {.version = 1};
    open_trainer();
    step = 0;
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &ask, sizeof ask);
    go_round();
    /* nothing is published by this trainer */
    CHECK(fake_n == 2 && answer(1)->kind == MPIDATA_PUBLISHED_SAME && answer(1)->number == 1);
    CHECK(publish(ONE) == 1);
    ask.waits = 1;
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &ask, sizeof ask);
    go_round();
    CHECK(fake_n == 3 && publishing.n_waiting == 1);
    CHECK(publish(ONE) == 2);
    go_round();
    CHECK(fake_n == 5 && answer(3)->number == 2 && !publishing.n_waiting);
    go_round();
    ask.version = 2;
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &ask, sizeof ask);
    go_round();
    mpidata_publishing_forget(&publishing, MPIDATA_ROLE_SOLVER, 1);
    CHECK(publishing.n_waiting == 1);
    mpidata_publishing_forget(&publishing, MPIDATA_ROLE_SOLVER, 0); /* the asker is lost */
    CHECK(!publishing.n_waiting && publish(ONE) == 3);
    go_round();
    CHECK(fake_n == 6);
    close_trainer();
}

static void the_next_question_takes_the_place_of_one_that_waits(void) {
    const mpidata_ask first = {.waits = 1}, last = {.version = INT64_MAX};
    open_trainer();
    step = 0;
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &first, sizeof first);
    go_round();
    CHECK(fake_n == 1 && publishing.n_waiting == 1);
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &last, sizeof last);
    go_round();
    CHECK(fake_n == 3 && answer(2)->kind == MPIDATA_PUBLISHED_SAME && !publishing.n_waiting);
    CHECK(publish(ONE) == 1);
    go_round();
    CHECK(fake_n == 3); /* the asker has left since */
    close_trainer();
}

static void no_other_question_is_taken(void) {
    const mpidata_ask ask = {.version = -1}, good = {0};
    int did = 0;
    open_trainer();
    (void)fake_send(ASKER, MPIDATA_TAG_ASK, &ask, sizeof ask);
    CHECK(mpidata_publishing_round(&publishing, &did) == MPIDATA_ERR_WIRE &&
          strstr(mpidata_last_error(), "Solver rank 3"));
    (void)fake_send(2, MPIDATA_TAG_ASK, &good, sizeof good); /* a trainer */
    CHECK(mpidata_publishing_round(&publishing, &did) == MPIDATA_ERR_WIRE);
    close_trainer();
}

static void another_one_goes_on_with_the_version(void) {
    const void *saved;
    int64_t bytes, edition;
    open_trainer();
    step = 0;
    CHECK(!mpidata_trainer_published(&saved, &bytes, &edition) && !bytes);
    CHECK(publish(ONE) == 1 && publish(ONE) == 2);
    CHECK(!mpidata_trainer_published(&saved, &bytes, &edition) && edition >= 0);
    char *whole = malloc((size_t)bytes);
    CHECK(whole && bytes > (int64_t)sizeof weight);
    memcpy(whole, saved, (size_t)bytes);
    CHECK(!mpidata_trainer_published_release(edition));
    close_trainer();
    open_trainer();
    CHECK(!mpidata_trainer_restore_published(whole, bytes) && trainer.versions.newest == 0);
    CHECK(publish(0) == 3 && publish(0) == 4 && trainer.versions.n == 1); /* a trainer that only counts */
    CHECK(!mpidata_trainer_published(&saved, &bytes, &edition) && edition < 0);
    CHECK(bytes == (int64_t)mpidata_description_bytes(3) && !mpidata_contents_check(saved, (size_t)bytes));
    memcpy(whole, saved, (size_t)bytes);
    close_trainer();
    open_trainer();
    CHECK(!mpidata_trainer_restore_published(whole, bytes) && trainer.versions.newest < 0 && publish(ONE) == 5);
    CHECK(trainer.versions.editions[0].contents->version == 5 && !trainer.versions.editions[0].contents->described);
    const char *const other[] = {"weights", "step", "none"};
    int64_t version = 0;
    CHECK(mpidata_trainer_publish(3, other, dtypes, ndims, shapes, values, 1, &version) == MPIDATA_ERR_ARGUMENT &&
          !version);
    CHECK(publish(ONE) == 6);
    free(whole);
    close_trainer();
}

/* -- who asks ------------------------------------------------------------------------------------------------------ */

static void open_asking(mpidata_asking *asking, mpidata_job *job) {
    fake_reset();
    *job = (mpidata_job){.data = MPI_COMM_SELF, .kind = MPIDATA_ROLE_SOLVER};
    CHECK(!mpidata_plan_parse(example_plan, &job->plan));
    fake_ranks = job->plan.world;
    mpidata_asking_open(asking, job);
}

static void close_asking(mpidata_asking *asking, mpidata_job *job) {
    mpidata_asking_close(asking);
    mpidata_plan_free(&job->plan);
}

/* A trainer's answer, whose memory the next answer uses again. */
static void send_answer(int rank, const mpidata_contents *contents, uint64_t number) {
    static char first[1 << 16];
    const mpidata_parcel_head head = {.magic = MPIDATA_PARCEL_MAGIC, .n_parts = 1, .kind = contents != NULL,
                                      .number = number};
    const int64_t bytes = contents ? contents->bytes : 0;
    const void *part = contents;
    mpidata_parcel_write_first(&head, &bytes, &part, first);
    (void)fake_send(rank, MPIDATA_TAG_PUBLISHED, first, mpidata_parcel_first_bytes(&bytes, 1));
    if (bytes > 1 << 15) (void)fake_send(rank, MPIDATA_TAG_PUBLISHED, contents, (size_t)bytes);
}

static mpidata_contents *make_version(int64_t version) {
    mpidata_contents *described = describe();
    mpidata_contents *contents = calloc(1, (size_t)described->bytes);
    CHECK(contents);
    memcpy(contents, described, mpidata_description_bytes(3));
    contents->version = version;
    free(described);
    return contents;
}

static int take(mpidata_asking *asking, mpidata_parcel **got) {
    int status = MPIDATA_SUCCESS;
    *got = NULL;
    for (int i = 0; i < 5 && !status && !*got; i++) status = mpidata_asking_round(asking, got);
    return status;
}

static void an_answer_is_taken_whole(void) {
    mpidata_asking asking;
    mpidata_job job;
    mpidata_parcel *got;
    mpidata_contents *contents = make_version(8);
    open_asking(&asking, &job);
    CHECK(!mpidata_ask_for(&asking, 5, 0) && fake_n == 1 && fake_messages[0].source == 1); /* trainer 0 */
    const mpidata_ask *asked = fake_messages[0].bytes;
    CHECK(fake_messages[0].tag == MPIDATA_TAG_ASK && mpidata_ask_fits(asked, sizeof *asked) && asked->version == 5);
    CHECK(!take(&asking, &got) && !got);
    send_answer(1, contents, 8);
    CHECK(!take(&asking, &got) && got && got->sizes[0] == contents->bytes &&
          !memcmp(got->memory, contents, (size_t)contents->bytes));
    mpidata_parcel_free(got);
    CHECK(!mpidata_ask_for(&asking, 8, 0));
    send_answer(1, NULL, 8);
    CHECK(!take(&asking, &got) && got && got->head.kind == MPIDATA_PUBLISHED_SAME);
    mpidata_parcel_free(got);
    CHECK(!mpidata_ask_for(&asking, 8, 0));
    send_answer(1, contents, 8); /* not newer */
    CHECK(take(&asking, &got) == MPIDATA_ERR_WIRE && !got && strstr(mpidata_last_error(), "Trainer 0 sent it"));
    close_asking(&asking, &job);
    free(contents);
}

static void the_next_trainer_is_asked_when_one_has_died(void) {
    mpidata_asking asking;
    mpidata_job job;
    mpidata_parcel *got;
    open_asking(&asking, &job);
    CHECK((job.dead_trainers = calloc(2, 1)));
    CHECK(!mpidata_ask_for(&asking, 0, 0) && fake_messages[0].source == 1);
    CHECK(!take(&asking, &got) && !got && fake_n == 1);
    job.dead_trainers[0] = 1;
    CHECK(!take(&asking, &got) && !got && fake_n == 2 && fake_messages[1].source == 2);
    send_answer(2, NULL, 0);
    CHECK(!take(&asking, &got) && got && got->peer == 1);
    mpidata_parcel_free(got);
    close_asking(&asking, &job);
    free(job.dead_trainers);
}

/* An asker that leaves withdraws its question: a version that is under way still comes, and nothing after it. */
static void a_question_is_taken_back(int answered, int dies) {
    mpidata_asking asking;
    mpidata_job job;
    mpidata_parcel *got;
    mpidata_contents *contents = make_version(8);
    open_asking(&asking, &job);
    CHECK((job.dead_trainers = calloc(2, 1)));
    CHECK(!mpidata_ask_for(&asking, 5, 1) && !take(&asking, &got) && !got && fake_n == 1);
    if (answered) send_answer(1, contents, 8);
    if (answered) fake_messages[fake_n - 1].held = 1; /* a large one */
    mpidata_asking_end(&asking);
    CHECK(!take(&asking, &got) && !got && !mpidata_asking_is_over(&asking));
    const mpidata_ask *last = fake_messages[fake_n - 1].bytes;
    CHECK(fake_messages[fake_n - 1].tag == MPIDATA_TAG_ASK && last->version == INT64_MAX && !last->waits);
    if (answered) fake_messages[2].held = 0;
    CHECK(!take(&asking, &got) && !got && !mpidata_asking_is_over(&asking));
    if (dies) job.dead_trainers[0] = 1;
    if (dies) CHECK(!take(&asking, &got) && fake_messages[fake_n - 1].source == 2); /* the next one is asked */
    if (dies) CHECK(((const mpidata_ask *)fake_messages[fake_n - 1].bytes)->version == INT64_MAX);
    send_answer(dies ? 2 : 1, NULL, INT64_MAX);
    CHECK(!take(&asking, &got) && got && got->head.kind == MPIDATA_PUBLISHED_SAME && mpidata_asking_is_over(&asking));
    mpidata_parcel_free(got);
    const int before = fake_n;
    CHECK(!mpidata_ask_for(&asking, 8, 1) && !take(&asking, &got) && fake_n == before);
    close_asking(&asking, &job);
    free(job.dead_trainers);
    free(contents);
}

static void who_asks_nothing_has_nothing_to_take_back(void) {
    mpidata_asking asking;
    mpidata_job job;
    mpidata_parcel *got;
    open_asking(&asking, &job);
    CHECK((job.dead_trainers = calloc(2, 1)));
    mpidata_asking_end(&asking);
    CHECK(!take(&asking, &got) && !got && !fake_n && mpidata_asking_is_over(&asking));
    close_asking(&asking, &job);
    free(job.dead_trainers);
    open_asking(&asking, &job);
    CHECK((job.dead_trainers = calloc(2, 1)));
    CHECK(!mpidata_ask_for(&asking, 0, 1));
    mpidata_asking_end(&asking);
    CHECK(!take(&asking, &got) && !mpidata_asking_is_over(&asking));
    memset(job.dead_trainers, 1, 2); /* nobody is left to answer */
    CHECK(!take(&asking, &got) && mpidata_asking_is_over(&asking));
    close_asking(&asking, &job);
    free(job.dead_trainers);
}

int main(void) {
    what_differs_is_refused();
    what_cannot_be_is_refused();
    what_comes_is_checked();
    versions_use_memory_again();
    who_has_the_newest_is_told_so_or_waits();
    the_next_question_takes_the_place_of_one_that_waits();
    no_other_question_is_taken();
    another_one_goes_on_with_the_version();
    an_answer_is_taken_whole();
    the_next_trainer_is_asked_when_one_has_died();
    for (int i = 0; i < 4; i++) a_question_is_taken_back(i % 2, i / 2);
    who_asks_nothing_has_nothing_to_take_back();
    return 0;
}

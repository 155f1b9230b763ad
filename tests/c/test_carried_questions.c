/* Questions between a rank of a carried program and its carrier, which trusts nothing that the rank has written. */
#define _GNU_SOURCE
#include "../../c_api/src/carried/infer_by_memory.c"
#undef _GNU_SOURCE
#define cannot cannot_attach
#include "../../c_api/src/carried/channel.c"
#undef cannot
#include "../../launch/carrier/questions.c"

#include <sys/wait.h>

#include "check.h"

/* -- in place of the inference ranks and the rest of the carrier --------------------------------------------------- */

enum { MOST = 12 };
static struct {
    int64_t number;
    const void *in;
    void *out;
    size_t bytes;
    int64_t *version;
} inference[MOST];
static int64_t numbers, answered_up_to;
static int leaves, has_answerer, refused;
static double waited;
static const int MADE = 1;
static mpidata_plan plan = {.inference = 1};

mpidata_questions *mpidata_solver_questions(int most) { (void)most; return (mpidata_questions *)(uintptr_t)&MADE; }
void mpidata_solver_meanwhile(int (*call)(void *), void *context) { (void)call, (void)context; }
void mpidata_solver_has_waited(double seconds) { waited += seconds; }
void mpidata_questions_close(mpidata_questions *questions) { (void)questions; }
int mpidata_questions_has_answerer(const mpidata_questions *questions) { (void)questions; return has_answerer; }

int64_t mpidata_questions_any(const mpidata_questions *questions) {
    (void)questions;
    for (int i = 0; i < MOST; i++)
        if (inference[i].number) return inference[i].number;
    return 0;
}

static int find_number(int64_t number) {
    for (int i = 0; i < MOST; i++)
        if (inference[i].number == number) return i;
    return -1;
}

int mpidata_questions_full(const mpidata_questions *questions) { (void)questions; return find_number(0) < 0; }

int mpidata_questions_begin(mpidata_questions *questions, const mpidata_array *in, int n_in, const mpidata_array *out, int n_out,
                            int64_t *version, int64_t *question) {
    (void)questions;
    const int i = find_number(0);
    CHECK(n_in == 1 && n_out == 1 && !strcmp(in->name, "x") && mpidata_array_bytes(in) == mpidata_array_bytes(out));
    *question = ++numbers;
    inference[i].number = numbers;
    inference[i].in = in->values;
    inference[i].out = out->values;
    inference[i].bytes = mpidata_array_bytes(in);
    inference[i].version = version;
    return MPIDATA_SUCCESS;
}

int mpidata_questions_round(mpidata_questions *questions, int *did) { (void)questions, (void)did; return MPIDATA_SUCCESS; }

int mpidata_questions_ended(mpidata_questions *questions, int64_t question) {
    (void)questions;
    const int i = find_number(question);
    CHECK(i >= 0);
    if (question > answered_up_to) return 0;
    memmove(inference[i].out, inference[i].in, inference[i].bytes);
    *inference[i].version = question;
    inference[i].number = 0;
    return 1;
}

int mpidata_questions_give_up(mpidata_questions *questions, int64_t question) {
    (void)questions;
    if (!leaves) return 0;
    inference[find_number(question)].number = 0;
    return 1;
}

int end_job(int status) { refused++; return status; }

int refuse(const carrier_t *of, int status, const char *what, const char *advice) {
    (void)of, (void)what, (void)advice;
    return end_job(status);
}

int ranks_send(const rank_t *rank, const void *data, size_t bytes, int memory) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof memory);
    memcpy(CMSG_DATA(head), &memory, sizeof memory);
    return sendmsg(rank->socket, &message, MSG_NOSIGNAL) == (ssize_t)bytes;
}

int ranks_make_memory(const char *name, uint64_t bytes, void **mapped) {
    const int memory = memfd_create(name, MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, (off_t)bytes)) return -1;
    *mapped = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    return memory;
}

void ranks_wake(rank_t *rank) { (void)send(rank->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

/* -- a rank and its carrier ------------------------------------------------------------------------------------------ */

static carrier_t carrier;
static mpidata_channel channel;

static void begin(void) {
    static mpidata_carried *shared;
    static rank_t rank;
    int pair[2];
    CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    rank = (rank_t){.socket = pair[0], .process = -1, .shared = shared};
    carrier = (carrier_t){.ranks = {.n = 1, .room = 1, .all = &rank, .plan = &plan}};
    channel = (mpidata_channel){.socket = pair[1], .came = {-1, -1}, .shared = shared};
    memset(inference, 0, sizeof inference);
    numbers = refused = 0;
    answered_up_to = INT64_MAX;
    leaves = has_answerer = 1;
}

static void end(void) {
    leaves = 1;
    if (carrier.ranks.n) questions_leave(&carrier.ranks, carrier.ranks.all);
    close(carrier.ranks.all->socket);
    close(channel.socket);
    munmap(channel.shared, sizeof *channel.shared);
    mpidata_carried_infer_close();
}

static int ask_for(float *x, float *y, int64_t rows, int64_t *version, int64_t *question) {
    const mpidata_array in = {"x", x, MPIDATA_FLOAT32, 1, &rows}, out = {"y", y, MPIDATA_FLOAT32, 1, &rows};
    return mpidata_carried_infer_begin(&channel, &in, 1, &out, 1, version, question);
}

enum { LARGEST = 1 << 18, TURNS = 10 };

/* The rank, in a child process, repeatedly asks 8 questions at once, with 0 to 250,000 rows. */
static int ask_and_check(void) {
    static float x[MPIDATA_CARRIED_QUESTIONS][LARGEST], y[LARGEST];
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t questions[MPIDATA_CARRIED_QUESTIONS + 1], version[MPIDATA_CARRIED_QUESTIONS], rows[MPIDATA_CARRIED_QUESTIONS];
        for (int i = 0; i < MPIDATA_CARRIED_QUESTIONS; i++) {
            rows[i] = (int64_t[]){0, 1, 5000, 40, LARGEST}[(turn * 3 + i) % 5];
            for (int64_t row = 0; row < rows[i]; row++) x[i][row] = (float)((row + turn + i) % 1000);
            if (ask_for(x[i], y, rows[i], &version[i], &questions[i])) return 1;
        }
        if (ask_for(x[0], y, 1, NULL, &questions[MPIDATA_CARRIED_QUESTIONS]) != MPIDATA_ERR_ARGUMENT) return 2;
        for (int i = MPIDATA_CARRIED_QUESTIONS - 1; i >= 0; i--) {
            memset(y, 0, sizeof y);
            if (mpidata_carried_infer_wait(&channel, questions[i])) return 3;
            if (memcmp(x[i], y, (size_t)rows[i] * sizeof *y) || version[i] < 1) return 4;
            if (mpidata_carried_infer_wait(&channel, questions[i]) != MPIDATA_ERR_ARGUMENT) return 5;
        }
    }
    int64_t open, version = 0;
    if (ask_for(x[0], y, 3, &version, &open) || mpidata_carried_infer_settle(&channel) || memcmp(x[0], y, 12) || !version) return 6;
    return mpidata_carried_infer_wait(&channel, open) ? 7 : 0;
}

static void answers_are_those_of_the_questions(void) {
    int status;
    begin();
    const pid_t child = fork();
    if (!child) _exit(ask_and_check());
    while (waitpid(child, &status, WNOHANG) != child) CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(numbers == TURNS * MPIDATA_CARRIED_QUESTIONS + 1 && !refused && !questions_have_news(&carrier.ranks));
    questions_leave(&carrier.ranks, carrier.ranks.all);
    CHECK(!carrier.ranks.left);
    end();
}

/* Without a child: memory for a question, and a question that is not answered yet. */
static void ask_here(void) {
    float x[4] = {0};
    uint64_t at[2];
    const int64_t rows = 4;
    const mpidata_array in = {"x", x, MPIDATA_FLOAT32, 1, &rows}, out = {"y", x, MPIDATA_FLOAT32, 1, &rows};
    answered_up_to = 0;
    channel.shared->questions[0].wants = mpidata_question_lay_out(&in, 1, &out, 1, at);
    CHECK(questions_have_news(&carrier.ranks) && questions_serve(&carrier) == MPIDATA_SUCCESS);
    CHECK(channel.shared->answers[0].room >= channel.shared->questions[0].wants && !questions_have_news(&carrier.ranks));
    CHECK(mpidata_question_write(carrier.ranks.all->asking->places[0].memory, &in, 1, &out, 1, at) == MPIDATA_SUCCESS);
    channel.shared->questions[0].asked = 1;
}

static void what_is_wrong_ends_the_job(void) {
    for (int how = 0; how < 7; how++) {
        begin();
        ask_here();
        mpidata_carried_question *question = channel.shared->questions;
        if (how == 0) question[0].asked = 2;
        if (how == 1) question[1].asked = 1; /* without memory for it */
        if (how == 2) carrier.ranks.all->asking->places[0].memory[0] ^= 1;
        if (how == 3) question[0].wants = UINT64_MAX;
        if (how == 4) question[1].wants = UINT64_MAX - 5;
        if (how > 4) {
            CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && numbers == 1 && questions_open(&carrier.ranks));
            if (how == 5) question[0].asked = 2;
            if (how == 6) question[0].wants = 1 << 20;
        }
        CHECK(questions_serve(&carrier) != MPIDATA_SUCCESS && refused == 1);
        end();
    }
}

static void memory_stays_while_mpi_reads_it(void) {
    begin();
    ask_here();
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && numbers == 1);
    leaves = 0;
    questions_leave(&carrier.ranks, carrier.ranks.all);
    CHECK(carrier.ranks.left && !carrier.ranks.all->asking);
    *(volatile char *)carrier.ranks.left->places[0].memory = 0; /* still mapped */
    carrier.ranks.n = 0;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && carrier.ranks.left);
    leaves = 1;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && !carrier.ranks.left && !questions_open(&carrier.ranks));
    end();
}

static void a_job_that_is_stopping_waits_a_moment(void) {
    begin();
    ask_here();
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && !channel.shared->answers[0].answered);
    carrier.over = 1;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && !channel.shared->answers[0].answered);
    has_answerer = 0;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && channel.shared->answers[0].answered == 1);
    CHECK(channel.shared->answers[0].status == MPIDATA_END && numbers == 1);
    channel.shared->questions[0].asked = 2;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && channel.shared->answers[0].answered == 2 && numbers == 1);
    end();
}

static void too_many_wait_for_others(void) {
    begin();
    ask_here();
    for (int i = 0; i < MOST; i++) inference[i].number = -1;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && numbers == 0 && !questions_have_news(&carrier.ranks));
    memset(inference, 0, sizeof inference);
    answered_up_to = INT64_MAX;
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS && numbers == 1);
    CHECK(channel.shared->answers[0].answered == 1 && channel.shared->answers[0].status == MPIDATA_SUCCESS);
    end();
}

/* Counts each moment once, though other code may run between two counts, and does not count waits within calls. */
static void waiting_is_counted_once(void) {
    begin();
    waited = 0;
    const double since = mpidata_now();
    channel.shared->waits = 1;
    for (int i = 0; i < 20; i++) {
        questions_count_wait(&carrier);
        (void)usleep(1000);
        questions_count_wait(&carrier);
    }
    CHECK(waited >= 0.02 && waited <= mpidata_now() - since);
    CHECK(questions_serve(&carrier) == MPIDATA_SUCCESS); /* like a call that has waited until now */
    const double before = waited, again = mpidata_now();
    questions_count_wait(&carrier);
    CHECK(waited - before <= mpidata_now() - again + 0.001);
    end();
}

int main(void) {
    waiting_is_counted_once();
    answers_are_those_of_the_questions();
    what_is_wrong_ends_the_job();
    memory_stays_while_mpi_reads_it();
    a_job_that_is_stopping_waits_a_moment();
    too_many_wait_for_others();
    return 0;
}

/* The ceiling: the speed of MPI in hand-written code that handles only this one stream.
 *
 * Rank 1 sends samples from a pool; rank 0 receives into slots and makes batches of 32. Arguments: folder, bytes of a
 * sample, samples before the clock starts, seconds (0: take turns as turns.py does),
 *   isend | issend      how rank 1 sends
 *   prepost | probe     MPI_Irecv ahead of the messages, or MPI_Improbe and MPI_Imrecv after them
 *   gather | hold | drop | stage  gather: samples are copied to a batch; hold: a batch is 32 slots, released together;
 *                       drop: each slot is released at once, so there is no batch and memory stays in cache;
 *                       stage: like hold, but sent data is first copied into the pool, from 8 arrays in turn
 *   small | huge        memory pages */
#include "gate.h"

#include <mpi.h>
#include <sched.h>
#include <string.h>

enum { POOL = 8, DEPTH = 16, SLOTS = GATE_BATCH + DEPTH, TAG_SAMPLE = 1, TAG_END = 2 };

static const char *folder;
static int bytes;
static int64_t warm;
static double seconds;
static int synchronous, probe, huge, stage;
static enum { GATHER, HOLD, DROP } keep;

static void must(int code) {
    if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, code);
}

static float *memory(size_t size) { return huge ? gate_huge(size) : gate_memory(size); }

static void wait_for_gate(volatile int64_t *gate) {
    while (!gate[GATE_GO] && !gate[GATE_STOP]) {
        int flag; /* MPI moves data only inside MPI calls */
        must(MPI_Iprobe(0, TAG_END, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        (void)usleep(200);
    }
}

static void wait_for_turn(volatile int64_t *gate, int64_t number) {
    while (seconds == 0.0 && number >= gate[GATE_LAST_STEP] && !gate[GATE_STOP]) {
        int flag;
        must(MPI_Iprobe(0, TAG_END, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        (void)usleep(50);
    }
}

static void send_all(volatile int64_t *gate) {
    float *pool[POOL], *arrays[POOL];
    MPI_Request requests[POOL];
    for (int i = 0; i < POOL; i++) {
        pool[i] = memory((size_t)bytes);
        arrays[i] = stage ? memory((size_t)bytes) : pool[i];
        requests[i] = MPI_REQUEST_NULL;
    }
    int64_t number = 0;
    for (int used = 0; !gate[GATE_STOP]; number++) {
        int k;
        wait_for_turn(gate, number);
        if (number == warm && seconds > 0.0) {
            must(MPI_Waitall(POOL, requests, MPI_STATUSES_IGNORE));
            wait_for_gate(gate);
            used = 0;
        }
        if (used < POOL)
            k = used++;
        else
            must(MPI_Waitany(POOL, requests, &k, MPI_STATUS_IGNORE));
        float *from = stage ? arrays[number % POOL] : pool[k];
        from[0] = from[(size_t)bytes / sizeof(float) - 1] = (float)number;
        if (stage) memcpy(pool[k], from, (size_t)bytes);
        must((synchronous ? MPI_Issend : MPI_Isend)(pool[k], bytes, MPI_BYTE, 0, TAG_SAMPLE, MPI_COMM_WORLD, &requests[k]));
    }
    must(MPI_Waitall(POOL, requests, MPI_STATUSES_IGNORE));
    must(MPI_Send(&number, 1, MPI_INT64_T, 0, TAG_END, MPI_COMM_WORLD));
    for (int i = 0; i < POOL; i++) {
        if (stage) free(arrays[i]);
        free(pool[i]);
    }
}

static float *slots[SLOTS];
static int free_slots[SLOTS], n_free;
static MPI_Request requests[DEPTH];
static int slot_of[DEPTH], active;

/* Start all possible receives; the slot freed last is used first because it is still in cache. */
static int receive_more(void) {
    int any = 0;
    for (int r = 0; r < DEPTH && n_free > 0; r++) {
        if (requests[r] != MPI_REQUEST_NULL) continue;
        MPI_Message message = MPI_MESSAGE_NULL;
        if (probe) {
            int flag;
            must(MPI_Improbe(MPI_ANY_SOURCE, TAG_SAMPLE, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
            if (!flag) return any;
        }
        slot_of[r] = free_slots[--n_free];
        if (probe)
            must(MPI_Imrecv(slots[slot_of[r]], bytes, MPI_BYTE, &message, &requests[r]));
        else
            must(MPI_Irecv(slots[slot_of[r]], bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_SAMPLE, MPI_COMM_WORLD, &requests[r]));
        active++;
        any = 1;
    }
    return any;
}

static float *batch;
static int held[GATE_BATCH], n_held;
static int64_t received;

/* Check that the samples before the clock starts are whole, and that each arrives once. */
static void check(const float *sample) {
    static double sum = 0.0;
    double expected = (double)(warm * (warm - 1) / 2);
    sum += (double)sample[0];
    if (sample[0] == sample[(size_t)bytes / sizeof(float) - 1] && (received + 1 < warm || sum == expected)) return;
    (void)fprintf(stderr, "Sample %lld is not what was sent.\n", (long long)received);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void finish_batch(void) {
    for (int i = 0; i < n_held && keep == GATHER; i++)
        memcpy((char *)batch + (size_t)i * (size_t)bytes, slots[held[i]], (size_t)bytes);
    while (n_held > 0 && keep != DROP) free_slots[n_free++] = held[--n_held];
    n_held = 0;
}

/* Take the samples that have arrived; return the number of batches that they completed. */
static int take(void) {
    int done[DEPTH], n = 0, batches = 0;
    if (!active) return 0;
    must(MPI_Testsome(DEPTH, requests, &n, done, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++) {
        int slot = slot_of[done[i]];
        active--;
        if (received < warm) check(slots[slot]);
        received++;
        held[n_held++] = slot;
        if (keep == DROP) free_slots[n_free++] = slot;
        if (n_held < GATE_BATCH) continue;
        finish_batch();
        batches++;
    }
    return batches;
}

static int64_t batches;
static double start;

/* Start the clock after the last warm-up sample, and stop it when time is up. */
static void measure(volatile int64_t *gate, int completed) {
    const double now = gate_now();
    if (start > 0.0) batches += completed;
    if (start > 0.0 && now - start >= seconds) {
        gate[GATE_STOP] = 1;
        gate_result(folder, batches * GATE_BATCH, now - start);
    } else if (start == 0.0 && received == warm) {
        start = gate_now();
        gate[GATE_GO] = 1;
    }
}

/* Take batches; when the turn's batches are complete, wait for the next turn. */
static void take_turns(volatile int64_t *gate, int completed) {
    batches -= completed;
    if (batches > 0 || gate[GATE_STOP]) return;
    if (start > 0.0) gate_turn_done(gate, gate_now() - start);
    while (!gate_is_turn(gate) && !gate[GATE_STOP]) (void)usleep(500);
    start = gate_now();
    batches += gate[GATE_COUNT];
    gate[GATE_LAST_STEP] += gate[GATE_COUNT] * GATE_BATCH;
}

static void receive_all(volatile int64_t *gate) {
    int64_t total = -1;
    MPI_Request end;
    for (n_free = 0; n_free < SLOTS; n_free++) {
        slots[n_free] = memory((size_t)bytes);
        free_slots[n_free] = n_free;
    }
    for (int r = 0; r < DEPTH; r++) requests[r] = MPI_REQUEST_NULL;
    batch = memory(GATE_BATCH * (size_t)bytes);
    must(MPI_Irecv(&total, 1, MPI_INT64_T, MPI_ANY_SOURCE, TAG_END, MPI_COMM_WORLD, &end));
    for (;;) {
        int any = receive_more(), completed = take();
        if (seconds == 0.0)
            take_turns(gate, completed);
        else if (completed && !gate[GATE_STOP])
            measure(gate, completed);
        int over = 0;
        if (gate[GATE_STOP]) must(MPI_Request_get_status(end, &over, MPI_STATUS_IGNORE));
        if (over && received == total) break;
        if (!any && !completed) (void)sched_yield();
    }
    must(MPI_Wait(&end, MPI_STATUS_IGNORE));
    for (int r = 0; r < DEPTH; r++) {
        if (requests[r] == MPI_REQUEST_NULL) continue;
        must(MPI_Cancel(&requests[r]));
        must(MPI_Wait(&requests[r], MPI_STATUS_IGNORE));
    }
    free(batch);
    for (int i = 0; i < SLOTS; i++) free(slots[i]);
}

int main(int argc, char **argv) {
    int rank;
    must(MPI_Init(&argc, &argv));
    must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    if (argc != 9) MPI_Abort(MPI_COMM_WORLD, 2);
    folder = argv[1];
    bytes = atoi(argv[2]);
    warm = atol(argv[3]);
    seconds = strtod(argv[4], NULL);
    synchronous = !strcmp(argv[5], "issend");
    probe = !strcmp(argv[6], "probe");
    stage = !strcmp(argv[7], "stage");
    keep = !strcmp(argv[7], "gather") ? GATHER : !strcmp(argv[7], "drop") ? DROP : HOLD;
    huge = !strcmp(argv[8], "huge");
    volatile int64_t *gate = gate_map(folder);
    if (rank == 1)
        send_all(gate);
    else
        receive_all(gate);
    return MPI_Finalize();
}

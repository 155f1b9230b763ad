/* Replaces the MPI functions that move samples. A test determines which messages come, and when each is received or
 * fails, and sees what is sent. Handles hold a number from 1 in their first bytes. The test also controls the clock. */
#ifndef FAKE_MPI_H
#define FAKE_MPI_H

#include <mpi.h>
#include <string.h>

#include "check.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#include <mpi-ext.h>
#endif
#ifdef MPIX_ERR_PROC_FAILED
enum { FAKE_DEATH = MPIX_ERR_PROC_FAILED };
#else
enum { FAKE_DEATH = 0 }; /* an MPI without ULFM reports no deaths */
#endif

enum { FAKE_MOST = 256 };

typedef struct {
    int source, tag;
    const void *bytes;
    size_t size;
    int matched, received; /* matched by a receive; received, or failed */
    int held, dead;        /* stays under way; its sender dies during the transfer */
    char *target;
    int type;
} fake_message;

typedef struct {
    int ndim, sizes[8], shape[8], start[8];
    size_t element;
} fake_type;

static fake_message fake_messages[FAKE_MOST];
static fake_type fake_types[FAKE_MOST];
static int fake_n, fake_n_types;
static int fake_ranks = 6;
static int fake_hold_sends; /* sends stay under way */
static int fake_n_tested;   /* calls of MPI_Testsome */
static void (*fake_probed)(void); /* called by each probe, unless NULL */
static double fake_clock, fake_tick; /* in s; the advance at each reading */

/* -- for the test --------------------------------------------------------------------------------------------------- */

static inline void fake_reset(void) { fake_n = fake_n_types = 0; }

static inline fake_message *fake_send(int source, int tag, const void *bytes, size_t size) {
    CHECK(fake_n < FAKE_MOST);
    fake_messages[fake_n] = (fake_message){.source = source, .tag = tag, .bytes = bytes, .size = size};
    return &fake_messages[fake_n++];
}

/* -- handles -------------------------------------------------------------------------------------------------------- */

#define FAKE_HANDLE(handle, number)                     \
    do {                                                \
        int fake_number = (number);                     \
        memset((handle), 0, sizeof *(handle));          \
        memcpy((handle), &fake_number, sizeof fake_number); \
    } while (0)

static inline int fake_number_of(const void *handle) {
    int number;
    memcpy(&number, handle, sizeof number);
    return number;
}

static inline size_t fake_element(MPI_Datatype type) {
    if (type == MPI_BYTE || type == MPI_PACKED || type == MPI_UINT8_T || type == MPI_INT8_T) return 1;
    if (type == MPI_INT16_T || type == MPI_UINT16_T) return 2;
    if (type == MPI_FLOAT || type == MPI_INT32_T || type == MPI_UINT32_T) return 4;
    if (type == MPI_DOUBLE || type == MPI_INT64_T || type == MPI_UINT64_T || type == MPI_C_FLOAT_COMPLEX) return 8;
    if (type == MPI_C_DOUBLE_COMPLEX) return 16;
    return 0;
}

/* -- in place of MPI ------------------------------------------------------------------------------------------------ */

int MPI_Error_class(int code, int *class) {
    *class = code;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    (void)comm;
    *size = fake_ranks;
    return MPI_SUCCESS;
}

static inline int fake_isend(const void *bytes, int count, MPI_Datatype type, int target, int tag, MPI_Request *request) {
    fake_message *sent = fake_send(target, tag, bytes, (size_t)count * fake_element(type));
    sent->matched = 1;
    sent->held = fake_hold_sends;
    FAKE_HANDLE(request, fake_n);
    return MPI_SUCCESS;
}

/* Each rank has the same number in all communicators. */
int MPI_Comm_group(MPI_Comm comm, MPI_Group *group) {
    (void)comm;
    *group = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
}

int MPI_Group_translate_ranks(MPI_Group from, int n, const int *ranks, MPI_Group to, int *translated) {
    (void)from, (void)to;
    memcpy(translated, ranks, (size_t)n * sizeof *ranks);
    return MPI_SUCCESS;
}

int MPI_Group_free(MPI_Group *group) {
    (void)group;
    return MPI_SUCCESS;
}

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)comm;
    return fake_isend(bytes, count, type, target, tag, request);
}

int MPI_Issend(const void *bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)comm;
    return fake_isend(bytes, count, type, target, tag, request);
}

double mpidata_now(void) { return fake_clock += fake_tick; }

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *here, MPI_Message *message, MPI_Status *status) {
    (void)comm;
    if (fake_probed) fake_probed();
    *here = 0;
    for (int i = 0; i < fake_n && !*here; i++) {
        if (fake_messages[i].matched || fake_messages[i].tag != tag) continue;
        if (source != MPI_ANY_SOURCE && fake_messages[i].source != source) continue;
        fake_messages[i].matched = *here = 1;
        FAKE_HANDLE(message, i + 1);
        *status = (MPI_Status){.MPI_SOURCE = fake_messages[i].source, .MPI_TAG = i};
    }
    return MPI_SUCCESS;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
    size_t size = fake_messages[status->MPI_TAG].size, element = fake_element(type);
    CHECK(element);
    *count = size % element ? MPI_UNDEFINED : (int)(size / element);
    return MPI_SUCCESS;
}

int MPI_Type_create_subarray(int ndim, const int sizes[], const int shape[], const int start[], int order,
                             MPI_Datatype old, MPI_Datatype *type) {
    CHECK(fake_n_types < FAKE_MOST && order == MPI_ORDER_C);
    fake_type *new = &fake_types[fake_n_types++];
    *new = (fake_type){.ndim = ndim, .element = fake_element(old)};
    for (int d = 0; d < ndim; d++) {
        CHECK(start[d] >= 0 && shape[d] >= 1 && start[d] + shape[d] <= sizes[d]); /* as MPI does */
        new->sizes[d] = sizes[d];
        new->shape[d] = shape[d];
        new->start[d] = start[d];
    }
    FAKE_HANDLE(type, fake_n_types);
    return MPI_SUCCESS;
}

int MPI_Type_commit(MPI_Datatype *type) {
    (void)type;
    return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type) {
    (void)type;
    return MPI_SUCCESS;
}

int MPI_Imrecv(void *target, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {
    fake_message *taken = &fake_messages[fake_number_of(message) - 1];
    size_t element = fake_element(type);
    taken->target = target;
    taken->type = element ? 0 : fake_number_of(&type);
    CHECK(!element || taken->size <= (size_t)count * element);
    *request = MPI_REQUEST_NULL;
    FAKE_HANDLE(request, fake_number_of(message));
    return MPI_SUCCESS;
}

int MPI_Mrecv(void *target, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) {
    fake_message *taken = &fake_messages[fake_number_of(message) - 1];
    CHECK(taken->size <= (size_t)count * fake_element(type));
    memcpy(target, taken->bytes, taken->size);
    (void)status;
    return MPI_SUCCESS;
}

/* Stays under way: MPI may write to `results` until the process ends. */
int MPI_Iallreduce(const void *values, void *results, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request) {
    (void)op, (void)comm;
    fake_message *begun = fake_send(0, 0, values, (size_t)count * fake_element(type));
    begun->matched = begun->held = 1;
    begun->target = results;
    FAKE_HANDLE(request, fake_n);
    return MPI_SUCCESS;
}

static inline void fake_place(const fake_message *message) {
    const char *from = message->bytes;
    if (!message->target) return; /* a message that was sent */
    if (!message->type) {
        memcpy(message->target, from, message->size);
        return;
    }
    const fake_type *type = &fake_types[message->type - 1];
    int at[8] = {0}, last = type->ndim - 1;
    size_t row = (size_t)type->shape[last] * type->element;
    for (const char *end = from + message->size; from < end; from += row) {
        size_t offset = 0;
        for (int d = 0; d <= last; d++) offset = offset * (size_t)type->sizes[d] + (size_t)(type->start[d] + at[d]);
        memcpy(message->target + offset * type->element, from, row);
        for (int d = last - 1; d >= 0 && ++at[d] == type->shape[d]; d--) at[d] = 0;
    }
}

static inline int fake_test(MPI_Request *request, int *done) {
    fake_message *message = &fake_messages[fake_number_of(request) - 1];
    *done = message->dead || !message->held;
    if (!*done) return MPI_SUCCESS;
    CHECK(!message->received);
    message->received = 1;
    *request = MPI_REQUEST_NULL;
    if (message->dead) return FAKE_DEATH;
    fake_place(message);
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *done, MPI_Status *status) {
    (void)status;
    *done = 1;
    return *request == MPI_REQUEST_NULL ? MPI_SUCCESS : fake_test(request, done);
}

int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int done[], MPI_Status statuses[]) {
    int result = MPI_SUCCESS;
    *n_done = 0;
    fake_n_tested++;
    for (int i = 0; i < n; i++) {
        int ended, status = fake_test(&requests[i], &ended);
        if (!ended) continue;
        if (status != MPI_SUCCESS) result = MPI_ERR_IN_STATUS;
        statuses[*n_done] = (MPI_Status){.MPI_ERROR = status};
        done[(*n_done)++] = i;
    }
    return result;
}

#endif

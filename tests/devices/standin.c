/* A stand-in for a device driver, for tests on machines without a device: CUDA's functions, or HIP's with STANDIN_HIP.
 *
 * A device's memory is mapped twice; the program cannot access its own mapping. Streams do nothing by themselves: their operations run
 * when the host waits for a later event, so each copy is as late as possible. Until then its target is poisoned. */
#define _GNU_SOURCE
#include "standin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
enum { DEVICES = 2, MANY = 64, POISON = 0xa5 };
enum { INVALID_VALUE = 1, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };

typedef struct { char *program, *device; size_t bytes; char kind; int ordinal; } memory;
typedef struct { int ordinal, non_blocking, open; } stream;

/* The operations of all streams in one list, in the order of submission. */
typedef struct {
    int over, stream;
    enum { WRITE, WAIT } kind;
    char *to;
    const char *from; /* NULL: from `values` */
    char *values;
    size_t bytes;
    long waits_for; /* up to this operation of the stream `waits_of` */
    int waits_of;
} operation;

static memory memories[MANY * MANY];
static stream streams[MANY]; /* 0 to DEVICES - 1: the default streams */
static struct { int ordinal, open, stream; long upto; } events[MANY * 16];
static operation *operations;
static long n_operations, n_copies, first; /* first: all earlier ones are over */
static int n_memories, n_streams = DEVICES, n_events, n_host, failing_code, current = -1, last_error;
static struct { const char *from; size_t bytes; } registered[MANY];
static int n_registered, n_retained;
static char failing[64];

static int fails(const char *function) {
    if (strcmp(failing, function)) return 0;
    failing[0] = '\0';
    return last_error = failing_code;
}

static memory *memory_of(uintptr_t address) {
    for (int m = 0; m < n_memories; m++)
        if (address >= (uintptr_t)memories[m].program && address < (uintptr_t)memories[m].program + memories[m].bytes) return &memories[m];
    return NULL;
}

/* The device's address of the same memory. */
static char *on_device(uintptr_t address, size_t bytes) {
    memory *found = memory_of(address);
    if (!found || address + bytes > (uintptr_t)found->program + found->bytes) return NULL;
    return found->device + (address - (uintptr_t)found->program);
}

static operation *add(int to_stream) {
    operations = realloc(operations, (size_t)(n_operations + 1) * sizeof *operations);
    if (!operations) abort();
    operations[n_operations] = (operation){.stream = to_stream};
    return &operations[n_operations++];
}

/* The default stream waits for all blocking streams, and they wait for it. */
static int is_before(int one, int of) {
    if (one == of) return 1;
    if (streams[one].ordinal != streams[of].ordinal || streams[one].non_blocking || streams[of].non_blocking) return 0;
    return one < DEVICES || of < DEVICES;
}

static void run(int of, long upto) {
    for (long i = first; i < upto; i++) {
        operation *next = &operations[i];
        if (next->over || !is_before(next->stream, of)) continue;
        next->over = 1;
        if (next->stream != of) run(next->stream, i);
        if (next->kind == WAIT)
            run(next->waits_of, next->waits_for);
        else
            memcpy(next->to, next->from ? next->from : next->values, next->bytes);
    }
}

static int stream_number(void *handle) {
    if (!handle) return current;
    return (int)((stream *)handle - streams);
}

/* -- for tests ------------------------------------------------------------------------------------------------------ */

static void *allocate(size_t bytes, char kind, int device) {
    const int file = memfd_create("device", 0);
    memory *made = &memories[n_memories++];
    const size_t pages = (bytes + 4095) / 4096 * 4096;
    if (file < 0 || ftruncate(file, (off_t)pages) || n_memories == MANY * MANY) abort();
    *made = (memory){.bytes = bytes, .kind = kind, .ordinal = device};
    made->device = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    made->program = mmap(NULL, pages, PROT_NONE, MAP_SHARED, file, 0);
    if (made->device == MAP_FAILED || made->program == MAP_FAILED) abort();
    (void)close(file);
    memset(made->device, POISON, pages);
    return made->program;
}

static void write_now(void *to, const void *values, size_t bytes) {
    char *there = on_device((uintptr_t)to, bytes);
    if (!there) abort();
    memcpy(there, values, bytes);
}

static void launch_write(void *handle, void *to, const void *values, size_t bytes) {
    operation *kernel = add(handle ? stream_number(handle) : memory_of((uintptr_t)to)->ordinal);
    kernel->kind = WRITE;
    kernel->to = on_device((uintptr_t)to, bytes);
    kernel->values = malloc(bytes);
    kernel->bytes = bytes;
    if (!kernel->to || !kernel->values) abort();
    memcpy(kernel->values, values, bytes);
}

static void *make_stream(int device, int non_blocking) {
    if (n_streams == MANY) abort();
    streams[n_streams] = (stream){.ordinal = device, .non_blocking = non_blocking};
    return &streams[n_streams++];
}

static void fail(const char *function, int code) {
    (void)snprintf(failing, sizeof failing, "%s", function);
    failing_code = code;
}

static int open_objects(void) {
    int n = n_host + n_registered + n_retained;
    for (int s = 0; s < n_streams; s++) n += streams[s].open;
    for (int e = 0; e < n_events; e++) n += events[e].open;
    return n;
}

static int get_current(void) { return current; }
static void set_current(int device) { current = device; }
static int get_last(void) { return last_error; }
static long get_copies(void) { return n_copies; }

static size_t locked(const void *of) {
    for (int r = 0; r < n_registered; r++)
        if ((const char *)of >= registered[r].from && (const char *)of < registered[r].from + registered[r].bytes)
            return registered[r].bytes - (size_t)((const char *)of - registered[r].from);
    return 0;
}

static void forget(void) {
    for (int m = 0; m < n_memories; m++) {
        const size_t pages = (memories[m].bytes + 4095) / 4096 * 4096;
        (void)munmap(memories[m].program, pages);
        (void)munmap(memories[m].device, pages);
    }
    n_memories = 0;
    for (; first < n_operations; first++) operations[first].over = 1, free(operations[first].values);
}

SHOWN extern const standin_functions standin;
const standin_functions standin = {allocate, write_now, launch_write, make_stream, fail, open_objects, get_current, set_current, get_last,
                                   get_copies, locked, forget};

/* -- driver functions ----------------------------------------------------------------------------------------------- */

#ifdef STANDIN_HIP
#define NAME(of_cuda, of_hip) of_hip
#define NO_CONTEXT 0
#define DEVICE_TYPE (STANDIN_HIP < 6 ? 1u : 2u)
#define MANAGED_TYPE (STANDIN_HIP < 6 ? 4u : 3u)
#else
#define NAME(of_cuda, of_hip) of_cuda
#define NO_CONTEXT (current < 0)
#define DEVICE_TYPE 2u
#define MANAGED_TYPE 2u
#endif
#define BEGIN(of_cuda)                                      \
    if (fails(#of_cuda)) return failing_code;               \
    if (NO_CONTEXT) return last_error = INVALID_CONTEXT

SHOWN int NAME(cuPointerGetAttribute, hipPointerGetAttribute)(void *value, int attribute, uintptr_t address) {
    const memory *found = memory_of(address);
    if (fails("cuPointerGetAttribute")) return failing_code;
    if (!found) return last_error = INVALID_VALUE;
    if (attribute == 2)
        *(unsigned *)value = found->kind == 'm' ? MANAGED_TYPE : DEVICE_TYPE;
    else if (attribute == 9)
        *(int *)value = found->ordinal;
    else if (attribute == 1)
        *(void **)value = found->kind == 'p' ? NULL : (void *)&streams[found->ordinal]; /* any address that identifies it */
    else
        return last_error = INVALID_VALUE;
    return 0;
}

SHOWN int NAME(cuStreamCreate, hipStreamCreateWithFlags)(void **handle, unsigned flags) {
    BEGIN(cuStreamCreate);
    stream *made = make_stream(current, (int)(flags & 1));
    made->open = 1;
    *handle = made;
    return 0;
}

SHOWN int NAME(cuStreamDestroy_v2, hipStreamDestroy)(void *handle) {
    BEGIN(cuStreamDestroy);
    ((stream *)handle)->open = 0;
    return 0;
}

SHOWN int NAME(cuEventCreate, hipEventCreateWithFlags)(void **handle, unsigned flags) {
    BEGIN(cuEventCreate);
    if (!(flags & 1)) return last_error = INVALID_VALUE; /* a waiting thread would spin */
    if (n_events == MANY * 16) abort();
    events[n_events].ordinal = current;
    events[n_events].open = 1;
    events[n_events].stream = -1;
    *handle = &events[n_events++];
    return 0;
}

SHOWN int NAME(cuEventDestroy_v2, hipEventDestroy)(void *handle) {
    BEGIN(cuEventDestroy);
    events[((char *)handle - (char *)events) / (long)sizeof *events].open = 0;
    return 0;
}

SHOWN int NAME(cuEventRecord, hipEventRecord)(void *handle, void *of) {
    BEGIN(cuEventRecord);
    const long e = ((char *)handle - (char *)events) / (long)sizeof *events;
    const int number = stream_number(of);
    if (events[e].ordinal != current || streams[number].ordinal != current) return last_error = INVALID_HANDLE;
    events[e].stream = number;
    events[e].upto = n_operations;
    return 0;
}

SHOWN int NAME(cuStreamWaitEvent, hipStreamWaitEvent)(void *handle, void *waits_for, unsigned flags) {
    BEGIN(cuStreamWaitEvent);
    const long e = ((char *)waits_for - (char *)events) / (long)sizeof *events;
    operation *wait = add(stream_number(handle));
    (void)flags;
    wait->kind = WAIT;
    wait->waits_of = events[e].stream;
    wait->waits_for = events[e].upto;
    return 0;
}

SHOWN int NAME(cuEventSynchronize, hipEventSynchronize)(void *handle) {
    BEGIN(cuEventSynchronize);
    const long e = ((char *)handle - (char *)events) / (long)sizeof *events;
    if (events[e].stream >= 0) run(events[e].stream, events[e].upto);
    for (; first < n_operations && operations[first].over; first++) free(operations[first].values);
    return 0;
}

SHOWN int NAME(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, uintptr_t from, size_t bytes, void *on) {
    BEGIN(cuMemcpyDtoHAsync);
    const char *there = on_device(from, bytes);
    if (!there || memory_of(from)->ordinal != current) return last_error = INVALID_VALUE;
    memset(to, POISON, bytes);
    operation *copy = add(stream_number(on));
    copy->kind = WRITE;
    copy->to = to;
    copy->from = there;
    copy->bytes = bytes;
    n_copies++;
    return 0;
}

SHOWN int NAME(cuMemHostAlloc, hipHostMalloc)(void **to, size_t bytes, unsigned flags) {
    BEGIN(cuMemHostAlloc);
    (void)flags;
    *to = malloc(bytes);
    n_host++;
    return *to ? 0 : 2;
}

SHOWN int NAME(cuMemFreeHost, hipHostFree)(void *of) {
    BEGIN(cuMemFreeHost);
    free(of);
    n_host--;
    return 0;
}

SHOWN int NAME(cuMemHostRegister_v2, hipHostRegister)(void *from, size_t bytes, unsigned flags) {
    BEGIN(cuMemHostRegister);
    if (n_registered == MANY || locked(from) || !(flags & 1)) return last_error = INVALID_VALUE;
    registered[n_registered].from = from;
    registered[n_registered++].bytes = bytes;
    return 0;
}

SHOWN int NAME(cuMemHostUnregister, hipHostUnregister)(void *from) {
    BEGIN(cuMemHostUnregister);
    for (int r = 0; r < n_registered; r++)
        if (registered[r].from == from) {
            registered[r] = registered[--n_registered];
            return 0;
        }
    return last_error = INVALID_VALUE;
}

#ifdef STANDIN_HIP
SHOWN int hipGetDevice(int *device) { *device = current < 0 ? 0 : current; return 0; }
SHOWN int hipSetDevice(int device) { current = device; return 0; }
SHOWN int hipPeekAtLastError(void) { return last_error; }
SHOWN int hipGetLastError(void) {
    const int code = last_error;
    last_error = 0;
    return code;
}
SHOWN const char *hipGetErrorString(int code) { return code == 700 ? "an illegal memory access" : "unknown"; }
#else
static int before[8], n_before;
SHOWN int cuCtxPushCurrent_v2(void *context) {
    if (fails("cuCtxPushCurrent")) return failing_code;
    before[n_before++] = current;
    current = (int)((stream *)context - streams);
    return 0;
}
SHOWN int cuCtxPopCurrent_v2(void **context) {
    *context = &streams[current];
    current = before[--n_before];
    return 0;
}
SHOWN int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
SHOWN int cuDevicePrimaryCtxRetain(void **context, int device) { n_retained++; *context = &streams[device]; return 0; }
SHOWN int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; n_retained--; return 0; }
SHOWN int cuGetErrorString(int code, const char **text) {
    *text = code == 700 ? "an illegal memory access was encountered" : NULL;
    return code == 700 ? 0 : INVALID_VALUE;
}
#endif

__attribute__((constructor)) static void begin(void) {
    for (int d = 0; d < DEVICES; d++) streams[d].ordinal = d;
#ifdef STANDIN_HIP
    current = 0;
#endif
}

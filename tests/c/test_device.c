/* Arrays in device memory, through a stand-in for the driver (tests/devices): the host cannot access them, and the work
 * in a stream is done only when somebody waits for it. */
#include "device/copying.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "calls/values/copy_in.h"
#include "calls/values/strided.h"
#include "device/locking.h"
#include "check.h"
#include "standin.h"

enum { LARGEST = 3 * MPIDATA_DEVICE_PIECE };

static const standin_functions *device;
static char *host, *wanted, *got;

static mpidata_put_arguments put_of(const void *values, mpidata_dtype dtype, int64_t *shape) {
    mpidata_put_arguments put = {.field = "u", .values = values, .dtype = dtype, .ndim = 1, .shape = shape};
    CHECK(!mpidata_device_find(values, &put.device));
    return put;
}

static void memory_of_the_host_is_known(const char *name) {
    mpidata_device_place place;
    CHECK(!mpidata_device_find(host, &place) && !place.driver);
    CHECK(!mpidata_device_find(NULL, &place) && !place.driver);
    if (!strcmp(name, "HIP")) CHECK(!device->last_error()); /* a program may query it later */
}

/* All sizes around those of the pieces, while the program's stream still has work. */
static void what_is_copied_is_what_kernels_have_made(mpidata_random *random, char kind) {
    mpidata_copy_choice copies = {0};
    const size_t near[] = {1, 8, 4096, MPIDATA_DEVICE_PIECE, 2 * MPIDATA_DEVICE_PIECE, LARGEST};
    for (int i = 0; i < 24; i++) {
        size_t bytes = near[mpidata_random_below(random, 6)] + (size_t)mpidata_random_below(random, 3) - 1;
        const int on = (int)mpidata_random_below(random, 2), own = (int)mpidata_random_below(random, 3);
        int64_t n = (int64_t)(bytes = bytes < 1 ? 1 : bytes > LARGEST ? LARGEST : bytes);
        char *values = device->allocate(bytes, kind, on);
        void *stream = own ? device->stream(on, own == 2) : NULL;
        for (size_t b = 0; b < bytes; b++) wanted[b] = (char)(b * 7 + (size_t)i);
        device->launch_write(stream, values, wanted, bytes);
        CHECK(!mpidata_device_stream(own == 2 ? stream : NULL)); /* the default stream waits for blocking streams */
        const mpidata_put_arguments put = put_of(values, MPIDATA_UINT8, &n);
        const int before = device->current();
        CHECK(put.device.driver && !mpidata_copy_in(got, &put, MPIDATA_UINT8, bytes, i % 2 ? &copies : NULL));
        CHECK(device->current() == before);
        memset(host, 0, bytes);
        device->write(values, host, bytes); /* as soon as the call returns */
        CHECK(!memcmp(got, wanted, bytes));
    }
    CHECK(!mpidata_device_stream(NULL));
}

static void floats_are_converted(void) {
    int64_t n = MPIDATA_DEVICE_PIECE / 8 + 5; /* two pieces */
    double *numbers = (double *)(void *)host;
    float *floats = (float *)(void *)got;
    double *values = device->allocate((size_t)n * 8, 'd', 0);
    for (int64_t i = 0; i < n; i++) numbers[i] = 0.1 * (double)i;
    device->write(values, numbers, (size_t)n * 8);
    const mpidata_put_arguments put = put_of(values, MPIDATA_FLOAT64, &n);
    CHECK(!mpidata_copy_in(floats, &put, MPIDATA_FLOAT32, (size_t)n * 4, 0));
    for (int64_t i = 0; i < n; i++) CHECK(floats[i] == (float)numbers[i]);
}

static void strided_arrays_are_gathered(mpidata_random *random) {
    for (int i = 0; i < 200; i++) {
        int64_t shape[3], strides[3], below = 0, above = 4;
        for (int d = 0; d < 3; d++) shape[d] = 1 + mpidata_random_below(random, 6), strides[d] = 4 * (mpidata_random_below(random, 200) - 100);
        for (int d = 0; d < 3; d++) *(strides[d] < 0 ? &below : &above) += (shape[d] - 1) * strides[d];
        for (int64_t b = 0; b < above - below; b++) host[b] = (char)mpidata_random_below(random, 256);
        char *values = device->allocate((size_t)(above - below), 'd', 1);
        mpidata_put_arguments put = put_of(values - below, MPIDATA_FLOAT32, shape), same = put;
        put.ndim = same.ndim = 3;
        same.values = host - below;
        same.device.driver = NULL;
        device->write(values, host, (size_t)(above - below));
        const size_t bytes = (size_t)(shape[0] * shape[1] * shape[2]) * 4;
        CHECK(!mpidata_gather_strided(&same, strides));
        memcpy(wanted, same.values, bytes);
        CHECK(!mpidata_gather_strided(&put, strides) && !put.device.driver && !memcmp(put.values, wanted, bytes));
        mpidata_strided_close();
        if (i % 40 == 39) device->forget();
    }
}

static void each_call_that_fails_is_said(const char *name) {
    static const char *const calls[] = {"cuPointerGetAttribute", "cuCtxPushCurrent", "cuStreamCreate", "cuEventCreate", "cuMemHostAlloc",
                                        "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyDtoHAsync", "cuEventSynchronize"};
    int64_t n = 64;
    char *values = device->allocate((size_t)n, 'd', 0);
    for (size_t i = !strcmp(name, "HIP") ? 2 : 1; i < sizeof calls / sizeof *calls; i++) {
        mpidata_device_close(); /* so that each call is made again */
        const mpidata_put_arguments put = put_of(values, MPIDATA_UINT8, &n);
        device->fail(calls[i], 700);
        CHECK(mpidata_copy_in(got, &put, MPIDATA_UINT8, (size_t)n, 0) == MPIDATA_ERR_DEVICE);
        CHECK(strstr(mpidata_last_error(), name) && strstr(mpidata_last_error(), "error 700, an illegal memory access"));
    }
    mpidata_device_place place;
    device->fail("cuPointerGetAttribute", 700);
    CHECK(mpidata_device_find(values, &place) == MPIDATA_ERR_DEVICE && strstr(mpidata_last_error(), "the memory of an array"));
    device->fail("cuPointerGetAttribute", 999);
    CHECK(mpidata_device_find(values, &place) == MPIDATA_ERR_DEVICE && strstr(mpidata_last_error(), "error 999"));
}

/* All memory of an arena is page-locked until the arena is closed; if the driver refuses, it is used unlocked. */
static void arenas_are_page_locked(const char *name) {
    mpidata_arena arena = {0};
    device->fail("cuMemHostRegister", 1);
    CHECK(mpidata_page_locking(1, &arena.pages) == MPIDATA_ERR_DEVICE && strstr(mpidata_last_error(), "Page-locking"));
    CHECK(!mpidata_page_locking(1, &arena.pages));
    device->set_current(!strcmp(name, "HIP") ? 0 : -1);
    for (int i = 0; i < 40; i++) {
        char *memory = mpidata_arena_take(&arena, 1 << 20);
        CHECK(memory && device->locked(memory) >= 1 << 20);
        if (i == 30) device->fail("cuMemHostRegister", 2);
        if (i == 30) CHECK((memory = mpidata_arena_take(&arena, 20 << 20)) && !device->locked(memory));
    }
    mpidata_arena_close(&arena);
}

int main(int argc, char **argv) {
    mpidata_random random;
    mpidata_device_place place;
    CHECK(argc == 3 && (host = calloc(LARGEST, 1)) && (wanted = calloc(LARGEST, 1)) && (got = calloc(LARGEST, 1)));
    CHECK(!mpidata_device_find(host, &place) && !place.driver);
    void *library = dlopen(argv[2], RTLD_NOW); /* as late as a program may load it */
    CHECK(library && (device = dlsym(library, "standin")));
    mpidata_random_seed(&random, 11, 0);
    memory_of_the_host_is_known(argv[1]);
    for (const char *kind = "dpm"; *kind; kind++) what_is_copied_is_what_kernels_have_made(&random, *kind), device->forget();
    floats_are_converted();
    strided_arrays_are_gathered(&random);
    each_call_that_fails_is_said(argv[1]);
    arenas_are_page_locked(argv[1]);
    device->set_current(1);
    mpidata_device_close();
    CHECK(device->open_objects() == 2 * !strcmp(argv[1], "CUDA") && /* their context, which is kept */
          device->current() == 1);
    return 0;
}

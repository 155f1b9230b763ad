#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "device/driver.h"

#include <dlfcn.h>
#include <string.h>
#ifdef __linux__
#include <link.h>
#endif

#include "base/status.h"

/* A statically linked program has no driver, and no dlsym. */
#pragma weak dlsym

enum { CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_ORDINAL = 9 };                     /* CUpointer_attribute, hipPointer_attribute */
enum { INVALID_VALUE = 1, NOT_INITIALIZED = 3, DEINITIALIZED = 4, NO_DEVICE = 100, INVALID_CONTEXT = 201 };

typedef struct { const char *name; size_t place; } function;
#define OFFSET_OF(member) offsetof(mpidata_driver, member)

static const function of_cuda[] = {
    {"cuPointerGetAttribute", OFFSET_OF(pointer_get_attribute)}, {"cuStreamCreate", OFFSET_OF(stream_create)},
    {"cuStreamDestroy_v2", OFFSET_OF(stream_destroy)}, {"cuStreamWaitEvent", OFFSET_OF(stream_wait_event)},
    {"cuEventCreate", OFFSET_OF(event_create)}, {"cuEventDestroy_v2", OFFSET_OF(event_destroy)}, {"cuEventRecord", OFFSET_OF(event_record)},
    {"cuEventSynchronize", OFFSET_OF(event_synchronize)}, {"cuMemcpyDtoHAsync_v2", OFFSET_OF(copy_to_host)},
    {"cuMemHostAlloc", OFFSET_OF(host_alloc)}, {"cuMemFreeHost", OFFSET_OF(host_free)}, {"cuMemHostRegister_v2", OFFSET_OF(host_register)},
    {"cuMemHostUnregister", OFFSET_OF(host_unregister)}, {"cuCtxPushCurrent_v2", OFFSET_OF(context_push)},
    {"cuCtxPopCurrent_v2", OFFSET_OF(context_pop)}, {"cuDeviceGet", OFFSET_OF(device_get)},
    {"cuDevicePrimaryCtxRetain", OFFSET_OF(primary_context_retain)}, {"cuDevicePrimaryCtxRelease_v2", OFFSET_OF(primary_context_release)},
    {"cuGetErrorString", OFFSET_OF(get_error_string)}};

static const function of_hip[] = {
    {"hipPointerGetAttribute", OFFSET_OF(pointer_get_attribute)}, {"hipStreamCreateWithFlags", OFFSET_OF(stream_create)},
    {"hipStreamDestroy", OFFSET_OF(stream_destroy)}, {"hipStreamWaitEvent", OFFSET_OF(stream_wait_event)},
    {"hipEventCreateWithFlags", OFFSET_OF(event_create)}, {"hipEventDestroy", OFFSET_OF(event_destroy)}, {"hipEventRecord", OFFSET_OF(event_record)},
    {"hipEventSynchronize", OFFSET_OF(event_synchronize)}, {"hipMemcpyDtoHAsync", OFFSET_OF(copy_to_host)},
    {"hipHostMalloc", OFFSET_OF(host_alloc)}, {"hipHostFree", OFFSET_OF(host_free)}, {"hipHostRegister", OFFSET_OF(host_register)},
    {"hipHostUnregister", OFFSET_OF(host_unregister)}, {"hipGetDevice", OFFSET_OF(get_device)},
    {"hipSetDevice", OFFSET_OF(set_device)}, {"hipPeekAtLastError", OFFSET_OF(peek_at_last_error)},
    {"hipGetLastError", OFFSET_OF(get_last_error)}, {"hipGetErrorString", OFFSET_OF(error_text)}};

/* Types of memory: CUmemorytype has device 2 and unified 4; hipMemoryType device 2, managed 3 and unified 11, and before ROCm 6
 * device 1, unified 3 and managed 4. */
enum { CUDA_TYPES = 1 << 2 | 1 << 4, HIP_TYPES = 1 << 2 | 1 << 3 | 1 << 11, HIP_5_TYPES = 1 << 1 | 1 << 3 | 1 << 4 };

#define COUNT(list) (sizeof(list) / sizeof *(list))
static const struct {
    const char *file, *name;
    unsigned device_types;
    const function *functions;
    size_t n;
} known[] = {{"libcuda.so.1", "CUDA", CUDA_TYPES, of_cuda, COUNT(of_cuda)},
             {"libamdhip64.so.7", "HIP", HIP_TYPES, of_hip, COUNT(of_hip)},
             {"libamdhip64.so.6", "HIP", HIP_TYPES, of_hip, COUNT(of_hip)},
             {"libamdhip64.so.5", "HIP", HIP_5_TYPES, of_hip, COUNT(of_hip)}};

/* The drivers found in the process; once found, a library stays loaded, because its handle is not closed. */
static struct {
    mpidata_driver list[COUNT(known)]; /* name NULL: not found */
    int any;
    unsigned long long loads; /* number of library loads of the process at the last search */
} drivers;

static void look_for_drivers(void) {
    void *(*open)(const char *, int) = NULL;
    void *symbol = dlsym ? dlsym(RTLD_DEFAULT, "dlopen") : NULL; /* its name makes the linker warn in a static program */
    memcpy(&open, &symbol, sizeof open);
    for (size_t k = 0; k < COUNT(known) && open; k++) {
        mpidata_driver driver = {.name = known[k].name, .device_types = known[k].device_types};
        void *library = drivers.list[k].name ? NULL : open(known[k].file, RTLD_NOLOAD | RTLD_NOW);
        size_t found = 0;
        if (!library) continue;
        for (; found < known[k].n && (symbol = dlsym(library, known[k].functions[found].name)); found++)
            memcpy((char *)&driver + known[k].functions[found].place, &symbol, sizeof symbol);
        if (found < known[k].n) continue;
        drivers.list[k] = driver;
        drivers.any = 1;
    }
}

#ifdef __linux__
static int loads_so_far(struct dl_phdr_info *info, size_t size, void *loads) {
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1; /* for the first library: all report the same number */
}
#endif

static void look_again(void) {
#ifdef __linux__
    unsigned long long loads = 0;
    (void)dl_iterate_phdr(loads_so_far, &loads);
    if (loads == drivers.loads) return;
    drivers.loads = loads;
    look_for_drivers();
#endif
}

int mpidata_driver_error(const mpidata_driver *driver, int code, const char *what) {
    const char *text = NULL;
    if (!code) return MPIDATA_SUCCESS;
    if (driver->error_text)
        text = driver->error_text(code);
    else if (driver->get_error_string(code, &text))
        text = NULL;
    return mpidata_error(MPIDATA_ERR_DEVICE, "%s failed on %s: error %d%s%.200s", what, driver->name, code,
                         text ? ", " : "", text ? text : "");
}

/* A pointer that the driver does not know is not an error of the program, but HIP would leave the program its code. */
static int get_attribute(const mpidata_driver *driver, void *value, int attribute, const void *values) {
    const int pending = driver->peek_at_last_error ? driver->peek_at_last_error() : 0;
    const int code = driver->pointer_get_attribute(value, attribute, (uintptr_t)values);
    if (code && driver->get_last_error && !pending) (void)driver->get_last_error();
    return code;
}

static int is_unknown(int code) {
    return code == INVALID_VALUE || code == NOT_INITIALIZED || code == DEINITIALIZED || code == NO_DEVICE || code == INVALID_CONTEXT;
}

/* Memory of a pool has no context of its own; it belongs to the primary context of its device. */
static int find_context(const void *values, mpidata_device_place *place) {
    const mpidata_driver *driver = place->driver;
    int device = 0;
    if (!get_attribute(driver, &place->context, CONTEXT, values) && place->context) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_driver_error(driver, get_attribute(driver, &place->ordinal, DEVICE_ORDINAL, values), "cuPointerGetAttribute"));
    MPIDATA_TRY(mpidata_driver_error(driver, driver->device_get(&device, place->ordinal), "cuDeviceGet"));
    MPIDATA_TRY(mpidata_driver_error(driver, driver->primary_context_retain(&place->context, device), "cuDevicePrimaryCtxRetain"));
    place->ordinal = 0; /* the context determines it */
    return mpidata_driver_error(driver, driver->primary_context_release(device), "cuDevicePrimaryCtxRelease"); /* the program holds it */
}

int mpidata_device_find(const void *values, mpidata_device_place *place) {
    *place = (mpidata_device_place){.driver = NULL};
    look_again();
    for (size_t d = 0; d < (drivers.any ? COUNT(known) : 0); d++) {
        const mpidata_driver *driver = &drivers.list[d];
        unsigned type = 0;
        if (!driver->name) continue;
        const int code = get_attribute(driver, &type, MEMORY_TYPE, values);
        if (is_unknown(code)) continue;
        MPIDATA_TRY(mpidata_driver_error(driver, code, "Finding the memory of an array"));
        if (type > 31 || !(driver->device_types >> type & 1)) continue;
        place->driver = driver;
        if (driver->context_push) return find_context(values, place);
        return mpidata_driver_error(driver, get_attribute(driver, &place->ordinal, DEVICE_ORDINAL, values), "hipPointerGetAttribute");
    }
    return MPIDATA_SUCCESS;
}

int mpidata_device_by_ordinal(int ordinal, mpidata_device_place *place) {
    int device = 0;
    *place = (mpidata_device_place){.ordinal = ordinal};
    look_again();
    for (size_t d = 0; d < COUNT(known); d++)
        if (drivers.list[d].name) place->driver = &drivers.list[d];
    if (!place->driver) return mpidata_error(MPIDATA_ERR_DEVICE, "This process has not loaded a driver of CUDA or HIP");
    if (!place->driver->context_push) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_driver_error(place->driver, place->driver->device_get(&device, ordinal), "cuDeviceGet"));
    return mpidata_driver_error(place->driver, place->driver->primary_context_retain(&place->context, device), "cuDevicePrimaryCtxRetain");
}

int mpidata_device_enter(const mpidata_device_place *place, mpidata_before *before) {
    const mpidata_driver *driver = place->driver;
    *before = (mpidata_before){0};
    if (driver->context_push) return mpidata_driver_error(driver, driver->context_push(place->context), "cuCtxPushCurrent");
    MPIDATA_TRY(mpidata_driver_error(driver, driver->get_device(&before->ordinal), "hipGetDevice"));
    return mpidata_driver_error(driver, driver->set_device(place->ordinal), "hipSetDevice");
}

void mpidata_device_leave(const mpidata_device_place *place, const mpidata_before *before) {
    void *context;
    if (place->driver->context_push)
        (void)place->driver->context_pop(&context);
    else
        (void)place->driver->set_device(before->ordinal);
}

/* The device driver that the program itself has loaded: CUDA's or HIP's. The library neither links nor loads one.
 *
 * Both have the same functions under different names. They return 0, or a code for `mpidata_driver_error`. */
#ifndef MPIDATA_DRIVER_H
#define MPIDATA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

enum { MPIDATA_BLOCKING_SYNC = 1, MPIDATA_DISABLE_TIMING = 2 }; /* of an event: waiting for it sleeps */
enum { MPIDATA_NON_BLOCKING = 1 };                              /* of a stream: the default stream does not wait for it */
enum { MPIDATA_PORTABLE = 1 };                                  /* of page-locked memory: for all devices */

typedef struct {
    const char *name;
    unsigned device_types; /* bit t: memory of type t is on a device, or migrates there */
    int (*pointer_get_attribute)(void *value, int attribute, uintptr_t address);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait_event)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_synchronize)(void *event);
    int (*copy_to_host)(void *to, uintptr_t from, size_t bytes, void *stream);
    int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
    int (*host_free)(void *memory);
    int (*host_register)(void *memory, size_t bytes, unsigned flags);
    int (*host_unregister)(void *memory);
    /* CUDA only: all above belong to the thread's context. */
    int (*context_push)(void *context);
    int (*context_pop)(void **context);
    int (*device_get)(int *device, int ordinal);
    int (*primary_context_retain)(void **context, int device);
    int (*primary_context_release)(int device);
    int (*get_error_string)(int code, const char **text);
    /* HIP only: they belong to the thread's device, and a failed call leaves its code for the program to find. */
    int (*get_device)(int *ordinal);
    int (*set_device)(int ordinal);
    int (*peek_at_last_error)(void);
    int (*get_last_error)(void);
    const char *(*error_text)(int code);
} mpidata_driver;

/* Where memory of a device is. */
typedef struct {
    const mpidata_driver *driver; /* NULL: in the memory of the host */
    void *context;                /* CUDA */
    int ordinal;                  /* HIP */
} mpidata_device_place;

/* Find where an address is. Almost free if no driver is loaded. Errors: MPIDATA_ERR_DEVICE. */
int mpidata_device_find(const void *values, mpidata_device_place *place);

/* The place of a device by its number in this process; its primary context is retained permanently. Errors: MPIDATA_ERR_DEVICE,
 * also if no driver is loaded. */
int mpidata_device_by_ordinal(int ordinal, mpidata_device_place *place);

/* Make the place current for the calling thread; restore the previous one. */
typedef struct { int ordinal; } mpidata_before;
int mpidata_device_enter(const mpidata_device_place *place, mpidata_before *before);
void mpidata_device_leave(const mpidata_device_place *place, const mpidata_before *before);

/* MPIDATA_ERR_DEVICE with a sentence, or MPIDATA_SUCCESS if code is 0. what: name of the call. */
int mpidata_driver_error(const mpidata_driver *driver, int code, const char *what);

#endif

/* Functions of the stand-in device driver that tests call beside the driver's own. Tests find them by dlsym. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>

typedef struct {
    /* Allocate device memory, which the host must not access. kind: 'd' of a context, 'p' of a pool, 'm' managed, which moves. */
    void *(*allocate)(size_t bytes, char kind, int device);
    void (*write)(void *memory, const void *values, size_t bytes); /* immediately */
    /* Write by a kernel on a stream of this device, which runs when a later operation is waited for. */
    void (*launch_write)(void *stream, void *memory, const void *values, size_t bytes);
    void *(*stream)(int device, int non_blocking);
    void (*fail)(const char *function, int code); /* its next call fails */
    int (*open_objects)(void);                    /* streams, events and page-locked memory that are not freed */
    int (*current)(void);                         /* device of the thread's context; -1: none */
    void (*set_current)(int device);
    int (*last_error)(void);                      /* that HIP would report to the program */
    long (*copies)(void);                         /* copies to the host so far */
    size_t (*locked)(const void *memory);         /* bytes from here on that are page-locked */
    void (*forget)(void);                         /* free the memory, and drop all pending operations */
} standin_functions;

#endif

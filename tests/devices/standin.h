/* What a test asks of the stand-in for a device's driver, beside the driver's own functions. Found by dlsym. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stddef.h>

typedef struct {
    /* Memory of the device, which the host must not touch. kind: 'd' of a context, 'p' of a pool, 'm' managed, which moves. */
    void *(*allocate)(size_t bytes, char kind, int device);
    void (*write)(void *memory, const void *values, size_t bytes); /* at once */
    /* By a kernel on a stream of this device, which runs when somebody waits for what comes after it. */
    void (*launch_write)(void *stream, void *memory, const void *values, size_t bytes);
    void *(*stream)(int device, int non_blocking);
    void (*fail)(const char *function, int code); /* its next call */
    int (*open_objects)(void);                    /* streams, events and page-locked memory that are not freed */
    int (*current)(void);                         /* device of the thread's context; -1: none */
    void (*set_current)(int device);
    int (*last_error)(void);                      /* that HIP would tell the program */
    long (*copies)(void);                         /* to the host, so far */
    size_t (*locked)(const void *memory);         /* bytes from here on that are page-locked */
    void (*forget)(void);                         /* free the memory, and all that streams have still to do */
} standin_functions;

#endif

#include "device/copying.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Two pieces: one is copied while the other is processed. */
typedef struct mpidata_reader {
    mpidata_device_place place;
    void *stream, *before; /* before: an event after the earlier work of the program's stream */
    void *piece[2], *copied[2];
    struct mpidata_reader *next;
} mpidata_reader;

static mpidata_reader *readers; /* one for each device that was read from */
static void *program_stream;

int mpidata_device_stream(void *stream) {
    program_stream = stream;
    return MPIDATA_SUCCESS;
}

#define TRY_DRIVER(driver, call, what) MPIDATA_TRY(mpidata_driver_error(driver, (driver)->call, what))

static int open_reader(mpidata_reader *reader) {
    const mpidata_driver *driver = reader->place.driver;
    const unsigned flags = MPIDATA_BLOCKING_SYNC | MPIDATA_DISABLE_TIMING;
    TRY_DRIVER(driver, stream_create(&reader->stream, MPIDATA_NON_BLOCKING), "Creating a stream");
    TRY_DRIVER(driver, event_create(&reader->before, flags), "Creating an event");
    for (int i = 0; i < 2; i++) {
        TRY_DRIVER(driver, event_create(&reader->copied[i], flags), "Creating an event");
        TRY_DRIVER(driver, host_alloc(&reader->piece[i], MPIDATA_DEVICE_PIECE, MPIDATA_PORTABLE), "Allocating page-locked memory");
    }
    return MPIDATA_SUCCESS;
}

/* The driver may have been unloaded, which frees everything. */
static void close_reader(mpidata_reader *reader) {
    const mpidata_driver *driver = reader->place.driver;
    for (int i = 0; i < 2; i++) {
        if (reader->piece[i]) (void)driver->host_free(reader->piece[i]);
        if (reader->copied[i]) (void)driver->event_destroy(reader->copied[i]);
    }
    if (reader->before) (void)driver->event_destroy(reader->before);
    if (reader->stream) (void)driver->stream_destroy(reader->stream);
    free(reader);
}

static int find_reader(const mpidata_device_place *place, mpidata_reader **reader) {
    for (*reader = readers; *reader; *reader = (*reader)->next) {
        const mpidata_device_place *other = &(*reader)->place;
        if (other->driver == place->driver && other->context == place->context && other->ordinal == place->ordinal) return MPIDATA_SUCCESS;
    }
    *reader = calloc(1, sizeof **reader);
    if (!*reader) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the copy of a device's array");
    (*reader)->place = *place;
    const int status = open_reader(*reader);
    if (status) {
        close_reader(*reader);
        return status;
    }
    (*reader)->next = readers;
    readers = *reader;
    return MPIDATA_SUCCESS;
}

static size_t bytes_of_piece(size_t bytes, size_t at) {
    return bytes - at < MPIDATA_DEVICE_PIECE ? bytes - at : MPIDATA_DEVICE_PIECE;
}

static int begin_piece(const mpidata_reader *reader, int i, const void *values, size_t at, size_t bytes) {
    const mpidata_driver *driver = reader->place.driver;
    const uintptr_t from = (uintptr_t)values + at;
    TRY_DRIVER(driver, copy_to_host(reader->piece[i], from, bytes_of_piece(bytes, at), reader->stream), "The copy of an array to the host");
    TRY_DRIVER(driver, event_record(reader->copied[i], reader->stream), "Recording an event");
    return MPIDATA_SUCCESS;
}

static int read_pieces(const mpidata_reader *reader, const void *values, size_t bytes, mpidata_take_piece *take, void *taker) {
    const mpidata_driver *driver = reader->place.driver;
    TRY_DRIVER(driver, event_record(reader->before, program_stream), "Recording an event on the stream of mpidata_device_stream");
    TRY_DRIVER(driver, stream_wait_event(reader->stream, reader->before, 0), "Waiting for the stream of mpidata_device_stream");
    MPIDATA_TRY(begin_piece(reader, 0, values, 0, bytes));
    int i = 0;
    for (size_t at = 0, next; at < bytes; at = next, i = !i) {
        next = at + bytes_of_piece(bytes, at);
        if (next < bytes) MPIDATA_TRY(begin_piece(reader, !i, values, next, bytes));
        TRY_DRIVER(driver, event_synchronize(reader->copied[i]), "The copy of an array to the host");
        take(taker, reader->piece[i], at, next - at);
    }
    return MPIDATA_SUCCESS;
}

int mpidata_device_read(const mpidata_device_place *place, const void *values, size_t bytes, mpidata_take_piece *take, void *taker) {
    mpidata_reader *reader;
    mpidata_before before;
    if (!bytes) return MPIDATA_SUCCESS;
    MPIDATA_TRY(mpidata_device_enter(place, &before));
    int status = find_reader(place, &reader);
    if (!status) status = read_pieces(reader, values, bytes, take, taker);
    mpidata_device_leave(place, &before);
    return status;
}

static void into_memory(void *target, const void *piece, size_t at, size_t bytes) { memcpy((char *)target + at, piece, bytes); }

int mpidata_device_copy(const mpidata_device_place *place, void *target, const void *values, size_t bytes) {
    return mpidata_device_read(place, values, bytes, into_memory, target);
}

void mpidata_device_close(void) {
    for (mpidata_reader *next; readers; readers = next) {
        mpidata_before before;
        mpidata_device_place place = readers->place;
        const int entered = !mpidata_device_enter(&place, &before);
        next = readers->next;
        close_reader(readers);
        if (entered) mpidata_device_leave(&place, &before);
    }
}

/* The connection of a rank of a carried program to its carrier: the shared memory and the socket. */
#ifndef MPIDATA_CARRIED_CHANNEL_H
#define MPIDATA_CARRIED_CHANNEL_H

#include <time.h>

#include "carried/layout.h"

typedef struct {
    int socket;
    int came[2]; /* descriptors that have come with a byte: of published arrays, and of room; -1: none */
    mpidata_carried *shared;
    /* Read once and checked: */
    uint64_t slots_at, slot_bytes, values_at, values_bytes, bytes;
    uint32_t slots, blocks;
    const double *parameters;
    const char *plan_text;
    /* Kept by this rank: */
    uint64_t committed;
    uint32_t request;
    int place; /* of the question that is being waited for */
    struct timespec checked; /* when the carrier was last checked */
} mpidata_channel;

/* Connect to the carrier that the environment names. Blocks until it has answered. */
int mpidata_channel_open(mpidata_channel *channel, const char *address);
void mpidata_channel_close(mpidata_channel *channel);

/* Slot of the next sample: its head, followed by the blocks, and its values. Blocks while the carrier has all slots. */
int mpidata_channel_slot(mpidata_channel *channel, mpidata_carried_sample **sample, char **values);

/* Pass the filled slot to the carrier. */
int mpidata_channel_commit(mpidata_channel *channel);

/* Send a request and wait for the answer; returns its status. reason: may be NULL. */
int mpidata_channel_ask(mpidata_channel *channel, uint32_t kind, const char *reason);

/* After an answer: the descriptor of newly published arrays, to be closed; -1: there are none. */
int mpidata_channel_published(mpidata_channel *channel, int *memory);

/* Get memory of at least `bytes` for a place for questions: *memory, a descriptor to be closed. Blocks until the carrier has
 * made it. */
int mpidata_channel_room(mpidata_channel *channel, int place, uint64_t bytes, int *memory);

/* Pass the question in a place to the carrier. */
void mpidata_channel_question(mpidata_channel *channel, int place);

/* Wait for its answer. */
int mpidata_channel_answer(mpidata_channel *channel, int place);

/* Returns MPIDATA_ERR_JOB if the carrier has ended. */
int mpidata_channel_check(mpidata_channel *channel);

#endif

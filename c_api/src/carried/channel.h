/* The way of a rank of a carried program to its carrier: the memory that both share, and the socket. */
#ifndef MPIDATA_CARRIED_CHANNEL_H
#define MPIDATA_CARRIED_CHANNEL_H

#include <time.h>

#include "carried/layout.h"

typedef struct {
    int socket;
    int came[2]; /* descriptors that have come with a byte, of what is published, and of room; -1: none */
    mpidata_carried *shared;
    /* Read once and checked: */
    uint64_t slots_at, slot_bytes, values_at, values_bytes, bytes;
    uint32_t slots, blocks;
    const double *parameters;
    const char *plan_text;
    /* Kept by this rank: */
    uint64_t committed;
    uint32_t request;
    int place; /* of the question that is waited for */
    struct timespec checked; /* when it was last looked whether the carrier is there */
} mpidata_channel;

/* Connect to the carrier that the environment names. Blocks until it has answered. */
int mpidata_channel_open(mpidata_channel *channel, const char *address);
void mpidata_channel_close(mpidata_channel *channel);

/* Slot of the sample that comes next: its head, with the blocks behind it, and its values. Blocks while all are with the
 * carrier. */
int mpidata_channel_slot(mpidata_channel *channel, mpidata_carried_sample **sample, char **values);

/* The slot is filled. */
int mpidata_channel_commit(mpidata_channel *channel);

/* Ask, and wait for the answer, whose status this returns. reason: may be NULL. */
int mpidata_channel_ask(mpidata_channel *channel, uint32_t kind, const char *reason);

/* After an answer: the descriptor of what is published, to be closed, if another one has come since; -1: none has. */
int mpidata_channel_published(mpidata_channel *channel, int *memory);

/* Get memory of so many bytes, or more, for a place for questions: *memory, a descriptor to be closed. Blocks until the carrier has
 * made it. */
int mpidata_channel_room(mpidata_channel *channel, int place, uint64_t bytes, int *memory);

/* The question in a place is there to be asked. */
void mpidata_channel_question(mpidata_channel *channel, int place);

/* Wait for its answer. */
int mpidata_channel_answer(mpidata_channel *channel, int place);

/* MPIDATA_ERR_JOB where the carrier has ended. */
int mpidata_channel_check(mpidata_channel *channel);

#endif

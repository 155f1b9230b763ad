/* Sending of maps: each trainer gets one with the first sample that needs it, in each stream (training and validation samples),
 * and learns with a later sample that one is no longer needed. */
#ifndef MPIDATA_MAP_SENDING_H
#define MPIDATA_MAP_SENDING_H

#include "calls/maps.h"
#include "solver/sender.h"

/* As mpidata_sender_stage, for a put by a map or of local numbers in a step. */
int mpidata_stage_mapped(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend,
                         int64_t step);

/* Send those maps of a piece that the trainer lacks. */
int mpidata_send_maps_of(mpidata_sender *sender, const mpidata_staged_piece *piece, int trainer, int validation);

/* Before a sample is committed: send its trainers the maps that they lack, and the numbers of those that they may forget. */
int mpidata_send_maps(mpidata_sender *sender, int64_t simulation, int64_t step, int validation);

/* A map was sent and is no longer needed. */
void mpidata_forget_map(mpidata_sender *sender, const mpidata_map *map);

/* The first row of a field that is in none of the maps of a step, given that the ranks of the group put `put` of `rows` rows;
 * -1: unknown. Collective over the group. */
int64_t mpidata_missing_row(mpidata_sender *sender, int64_t step, int field, int64_t put, int64_t rows);

/* The steps before this one are complete. */
void mpidata_release_put(mpidata_sender *sender, int64_t step);

/* Before the sender is closed: free the notes on maps. */
void mpidata_forget_nothing(mpidata_sender *sender);

#endif

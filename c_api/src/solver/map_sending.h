/* Maps on their way: each trainer gets one with the first sample that needs it, in each stream (training and validation samples),
 * and is told of one that is needed no more with a later sample. */
#ifndef MPIDATA_MAP_SENDING_H
#define MPIDATA_MAP_SENDING_H

#include "calls/maps.h"
#include "solver/sender.h"

/* As mpidata_sender_stage, of what is put by a map or as local numbers in a step. */
int mpidata_stage_mapped(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend,
                         int64_t step);

/* Send what the trainer lacks of the maps of a piece. */
int mpidata_send_maps_of(mpidata_sender *sender, const mpidata_staged_piece *piece, int trainer, int validation);

/* Before a sample is committed: send what its trainers lack of its maps, and what they may forget. */
int mpidata_send_maps(mpidata_sender *sender, int64_t simulation, int64_t step, int validation);

/* A map was sent, and is needed no more. */
void mpidata_forget_map(mpidata_sender *sender, const mpidata_map *map);

/* The first of the rows of a field that none of the maps has by which the ranks of the group have put it in a step, so many
 * rows in all; -1: unknown. Collective over the group. */
int64_t mpidata_missing_row(mpidata_sender *sender, int64_t step, int field, int64_t put, int64_t rows);

/* The steps before this one have no missing rows. */
void mpidata_release_put(mpidata_sender *sender, int64_t step);

/* Before the sender is closed: free what is noted of maps. */
void mpidata_forget_nothing(mpidata_sender *sender);

#endif

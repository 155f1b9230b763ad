/* Maps on their way: each trainer gets one with the first sample that needs it, in each stream (training and validation samples),
 * and is told of one that is needed no more with a later sample. */
#ifndef MPIDATA_SOLVER_MAPS_H
#define MPIDATA_SOLVER_MAPS_H

#include "calls/maps.h"
#include "solver/sender.h"

/* As mpidata_sender_stage, of what is put by a map or as local numbers. */
int mpidata_stage_mapped(mpidata_sender *sender, const mpidata_block *block, const mpidata_put_arguments *put, int lend);

/* Before a piece is sent: what this trainer lacks of its maps, and what it may forget. */
int mpidata_send_maps(mpidata_sender *sender, const mpidata_staged_piece *piece, int trainer);

/* A piece is sent, or dropped. */
void mpidata_release_maps(mpidata_staged_piece *piece);

/* A map was sent, and is needed no more. */
void mpidata_forget_map(mpidata_sender *sender, const mpidata_map *map);

/* The first row of a field that none of the maps has which the ranks of the group have put it by last, if so many are missing;
 * -1: unknown. Collective over the group. */
int64_t mpidata_missing_row(mpidata_sender *sender, int field, int64_t missing);

/* Free the lists of what is to be forgotten. */
void mpidata_forget_nothing(mpidata_sender *sender);

#endif

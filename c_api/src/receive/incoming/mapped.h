/* Rows that were put by maps: the maps of each rank, and the copy of the rows to their places when a sample is whole. After
 * that the sample is as if they had been put in order. */
#ifndef MPIDATA_MAPPED_H
#define MPIDATA_MAPPED_H

#include "receive/incoming/state.h"

/* Take a message with a map, or with maps to forget. */
int mpidata_take_map(mpidata_source *source);

/* A block that is put by a map has become part number `part` of its sample. */
int mpidata_announce_mapped(const mpidata_incoming *in, const mpidata_source *source, mpidata_assembly *assembly,
                            const mpidata_block *block, int part);

/* All rows have come: put them in their places. */
int mpidata_place_mapped(const mpidata_incoming *in, mpidata_assembly *assembly);

/* Merge the moments of each row of a block. */
void mpidata_merge_row_moments(const mpidata_source *source, const mpidata_block *block, mpidata_moments *all,
                               const mpidata_moments *moments);

#endif

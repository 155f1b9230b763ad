/* Writing of slots to a file, for the record and for checkpoints. */
#ifndef MPIDATA_WRITE_H
#define MPIDATA_WRITE_H

#include "buffer/slots.h"

/* Write a field of `count` slots, contiguously, to a file from byte `offset` on. Blocks as write does, and continues after
 * interrupts and partial writes. Returns 0, or errno. The slots must be pinned. */
int mpidata_write_field(const mpidata_slots *slots, int file, int field, mpidata_slot *const *list, int64_t count,
                        int64_t offset);

#endif

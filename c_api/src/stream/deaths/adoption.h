/* What follows for a stream from the death of another trainer, in a job in which the others go on (trainers.elastic), and
 * from others that join or leave.
 *
 * The scheduler tells all of each change; the trainers' scripts come together without the dead one, or with the new one
 * (elastic/members.py). When both have happened, steps become those of others (wire/plan.h), and the stream goes on, even
 * where it had come to its end. Each trainer then says which simulations it lacks steps of: they run again. The ledger knows
 * what was trained on, as with each training step the trainers tell one another what they have drawn for it. */
#ifndef MPIDATA_ADOPTION_H
#define MPIDATA_ADOPTION_H

#include "stream/state.h"

int mpidata_adoption_open(mpidata_trainer *trainer);
void mpidata_adoption_close(mpidata_trainer *trainer);

/* The scheduler has told of a change, by its code. */
void mpidata_note_change_locked(mpidata_trainer *trainer, int code);

/* The trainers have come together in `living`; not under the lock. It is the library's from now on. */
int mpidata_come_together(mpidata_trainer *trainer, MPI_Comm living);

/* The communicator of those that live, once what follows from their coming together can be done; MPI_COMM_NULL before. */
MPI_Comm mpidata_take_living_locked(mpidata_trainer *trainer);

/* Carry out the changes that the scheduler has told, as far as the scripts have come together after them. */
int mpidata_adopt_locked(mpidata_trainer *trainer);

/* Must the trainers meet before a draw can go on: at the end, or as one has left? And before anything else, as one has left? */
int mpidata_must_meet_locked(const mpidata_trainer *trainer);
int mpidata_one_has_left_locked(const mpidata_trainer *trainer);

/* Has this trainer all validation samples that are its, those of others that have left included? Of one that leaves when all have
 * had all batches none come again. */
int mpidata_validation_is_whole_locked(const mpidata_trainer *trainer);

/* Is nothing to come any more of those that have died, as far as this trainer knows? Of one without which the scripts have come
 * together the scheduler may tell only later. */
int mpidata_all_adopted_locked(const mpidata_trainer *trainer);

/* Enter into the ledger what the trainers have trained on. */
int mpidata_enter_trained_locked(mpidata_trainer *trainer);

#endif

/* Consequences for a stream of the death of another trainer, in a job in which the others continue (trainers.elastic), and
 * of others that join or leave.
 *
 * The scheduler reports each change to all; the trainers' scripts meet without the dead one, or with the new one
 * (elastic/members.py). When both have happened, steps go to others (wire/plan.h), and the stream continues, even if it had
 * ended. Each trainer then reports the simulations of which it lacks steps: they run again. The ledger knows which samples were
 * trained on, because with each training step the trainers exchange what they have drawn for it. */
#ifndef MPIDATA_ADOPTION_H
#define MPIDATA_ADOPTION_H

#include "stream/state.h"

int mpidata_adoption_open(mpidata_trainer *trainer);
void mpidata_adoption_close(mpidata_trainer *trainer);

/* The scheduler has reported a change, by its code. */
void mpidata_note_change_locked(mpidata_trainer *trainer, int code);

/* The trainers have met in `living`, which the library owns from now on; not under the lock. */
int mpidata_come_together(mpidata_trainer *trainer, MPI_Comm living);

/* The communicator of the living, once the consequences of their meeting can be carried out; MPI_COMM_NULL before. */
MPI_Comm mpidata_take_living_locked(mpidata_trainer *trainer);

/* Carry out the changes that the scheduler has reported, as far as the scripts have met after them. */
int mpidata_adopt_locked(mpidata_trainer *trainer);

/* Whether the trainers must meet before a draw can continue, at the end or because one has left; whether one has left. */
int mpidata_must_meet_locked(const mpidata_trainer *trainer);
int mpidata_one_has_left_locked(const mpidata_trainer *trainer);

/* Whether this trainer has all its validation samples, including those of others that have left. Those of one that leaves when
 * all have had all batches do not come again. */
int mpidata_validation_is_whole_locked(const mpidata_trainer *trainer);

/* Whether nothing more will come of dead trainers, as far as this one knows. If the scripts have met without a trainer, the
 * scheduler may report it only later. */
int mpidata_all_adopted_locked(const mpidata_trainer *trainer);

/* Enter the samples that the trainers have trained on into the ledger. */
int mpidata_enter_trained_locked(mpidata_trainer *trainer);

#endif

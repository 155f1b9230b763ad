/* The hub: the communicator of the scheduler and the trainers over which what is spawned joins. Once a trainer has died, MPI
 * makes nothing out of it any more. So where the trainers go on then, each has a communicator with the scheduler alone from
 * the start, a pair, and a new hub is made by these, one trainer after the other. */
#ifndef MPIDATA_HUB_H
#define MPIDATA_HUB_H

#include "wire/plan.h"

typedef struct {
    MPI_Comm comm;   /* on the scheduler and the trainers; else MPI_COMM_NULL */
    MPI_Comm *pairs; /* of each trainer on the scheduler, one on a trainer; NULL: not needed */
} mpidata_hub;

/* Collective over the scheduler and the trainers, as the job begins. */
int mpidata_hub_open(mpidata_hub *hub, const mpidata_plan *plan, int kind, int index);
void mpidata_hub_close(mpidata_hub *hub);

/* Make one communicator of two, whose ranks 0 meet in `peers`, as `leader` there; `last`: the own ranks come behind the others.
 * Collective over both; blocks. Where somebody dies meanwhile, some may wait for ever. */
int mpidata_hub_unite(MPI_Comm own, MPI_Comm peers, int leader, int last, MPI_Comm *united);

/* After an error in the making of a communicator: where one was being made, Open MPI 5.0 lets no other one of a higher number be
 * made any more, until one of a lower number has been: that of this process alone. */
int mpidata_hub_let_others_be_made(void);

/* Make a new one, of the scheduler and `n` trainers. The scheduler gives these in their order; a trainer its place among them,
 * from 0. Collective over them; blocks for milliseconds. Where one of them has died before its turn, all get an
 * error; where it dies later, some may wait for ever. */
int mpidata_hub_renew_as_scheduler(mpidata_hub *hub, int n, const int *trainers);
int mpidata_hub_renew_as_trainer(mpidata_hub *hub, int n, int place);

#endif

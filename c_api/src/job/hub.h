/* The hub: the communicator of the scheduler and the trainers over which spawned ranks join. Once a trainer has died, MPI can
 * no longer make communicators from it. If the trainers continue then, each has from the start a communicator with only the
 * scheduler, a pair, and these make a new hub, one trainer after the other. */
#ifndef MPIDATA_HUB_H
#define MPIDATA_HUB_H

#include "wire/plan.h"

typedef struct {
    MPI_Comm comm;   /* on the scheduler and the trainers; else MPI_COMM_NULL */
    MPI_Comm *pairs; /* of each trainer on the scheduler, one on a trainer; NULL: not needed */
} mpidata_hub;

/* Collective over the scheduler and the trainers, at the start of the job. */
int mpidata_hub_open(mpidata_hub *hub, const mpidata_plan *plan, int kind, int index);
void mpidata_hub_close(mpidata_hub *hub);

/* Make one communicator of two, whose ranks 0 meet in `peers`, as `leader` there; `last`: the own ranks follow the others.
 * Collective over both; blocks. If a rank dies meanwhile, some may wait forever. */
int mpidata_hub_unite(MPI_Comm own, MPI_Comm peers, int leader, int last, MPI_Comm *united);

/* After an error while making a communicator: Open MPI 5.0 then makes no other one of a higher number until one of a lower
 * number has been made: that of this process alone. */
int mpidata_hub_let_others_be_made(void);

/* Make a new one, of the scheduler and `n` trainers. The scheduler passes these in order; a trainer its place among them, from
 * 0. Collective over them; blocks for milliseconds. If one of them dies before its turn, all get an error; if it dies
 * later, some may wait forever. */
int mpidata_hub_renew_as_scheduler(mpidata_hub *hub, int n, const int *trainers);
int mpidata_hub_renew_as_trainer(mpidata_hub *hub, int n, int place);

#endif

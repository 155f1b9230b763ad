/* Scheduler side of the library: messages in, messages out. Its caller (mpidata/scheduler/scheduler.py) makes the decisions.
 * Not installed. One thread. Functions return the codes of mpidata.h. */
#ifndef MPIDATA_SCHEDULER_H
#define MPIDATA_SCHEDULER_H

#include "wire/messages.h"

/* Join the job as its scheduler and give every rank the plan. Collective over world; blocks without spinning. */
int mpidata_scheduler_open(MPI_Fint world, const char *plan);

/* The next events, *n <= room; 0 after timeout_s, or if an answer of reading.h or teaching.h has come. Sleeps while it waits. */
int mpidata_scheduler_poll(mpidata_event *events, int room, double timeout_s, int *n);

/* Answer a group's NEXT: run `simulation` with its parameters (n_parameters float64). */
int mpidata_scheduler_dispatch(int group, int64_t simulation, int64_t by_try, int validation, const double *parameters);

/* Answer a group's NEXT: there are no more. */
int mpidata_scheduler_no_more(int group);

/* Tell all trainers that `simulation` has `steps` steps in total, according to its try number `by_try`; each answers HELD when
 * it holds its own steps. */
int mpidata_scheduler_expect(int64_t simulation, int64_t steps, int by_try);

/* Tell all trainers that a simulation is cancelled: they drop its incomplete and later samples. group: the one that runs it,
 * whose messages they then take even if they are full, until it has `closed` the simulation; -1: none. */
int mpidata_scheduler_cancel(int64_t simulation, int group, int closed);

/* Tell a group, after the trainers, that its simulation is cancelled; a group that already runs another try ignores this. */
int mpidata_scheduler_cancel_group(int group, int64_t simulation, int64_t by_try);

/* A trainer has died, or lives but no longer trains, and the others continue; or a spare trains from now on: tell all trainers,
 * and with each later task the groups. Each trainer answers LACKS and ADOPTED. */
int mpidata_scheduler_lose_trainer(int trainer);
int mpidata_scheduler_retire_trainer(int trainer);
int mpidata_scheduler_join_trainer(int trainer);

/* Tell all trainers that no more samples will come. */
int mpidata_scheduler_end_of_stream(void);

/* Tell all trainers and groups to leave: draws and steps return MPIDATA_END from now on. */
int mpidata_scheduler_stop(void);

/* Tell a loader, inference rank or learner to leave. */
int mpidata_scheduler_release(int role, int number);

/* Tell all solver ranks that an inference rank answers from now on. */
int mpidata_scheduler_answers(int inference);

/* This learner runs the sampler from now on (teaching.h). */
int mpidata_scheduler_teaches(int learner);

/* Tell all trainers that a loader takes requests from now on. */
int mpidata_scheduler_serves(int loader);

/* Tell all trainers to send a loader no more requests. After its pending answers, it leaves; one of the world asks for work
 * again, and rests: it may serve again. */
int mpidata_scheduler_retires(int loader);
int mpidata_scheduler_rests(int loader);

/* Tell a trainer whose buffer is full to take `samples` beyond its capacity, because another one starves. */
int mpidata_scheduler_relieve(int trainer, int64_t samples);

/* Tell all trainers that this one draws nothing: its samples go to the others. */
int mpidata_scheduler_hands_over(int trainer);

/* Tell all trainers to write a checkpoint of this number, greater than all before; each answers CHECKPOINT_WRITTEN. */
int mpidata_scheduler_checkpoint(int64_t number);

/* Tell all trainers how many of them must train; 0: those that wait leave. number: greater than all before. */
int mpidata_scheduler_trainers(int64_t number, int64_t count);

/* Tell all trainers that all validation samples have come. */
int mpidata_scheduler_validation(void);

/* Give up a group, a loader, an inference rank or a learner: its ranks end at their next call, and the trainers drop its
 * unfinished and later data. The loss of an inference rank is reported to the solver ranks, which ask another one, not to the
 * trainers. role: MPIDATA_ROLE_SOLVER, _LOADER, _INFERENCE or _LEARNER; number: its number in this role, also below. at: what a
 * loader was reading, if known, for the trainers. */
int mpidata_scheduler_lose(int role, int number, const char *at);

/* It has left in order: if it was spawned, its communicator is freed. The trainers learn of loaders and of spawned ranks. */
int mpidata_scheduler_gone(int role, int number);

/* Whether this trainer lives, as far as is known. */
int mpidata_scheduler_trainer_lives(int trainer, int *yes);

/* Whether all ranks of the world are on one host. */
int mpidata_scheduler_one_host(int *yes);

/* How a group or loader that MPI_Comm_spawn has started joins the job. greet, call and join may be called from another thread
 * than the rest, one group at a time from prepare to join; the order is greet, prepare, call, invite, join, link. A rank that
 * hangs or dies while others are in join blocks them, so all are asked before.
 * greet: send it the plan and its number. intercomm, *bridge: Fortran handles; blocks until its ranks have answered.
 * prepare: ask the trainers for MPIDATA_EVENT_READY, which may come more than once.
 * If the trainers continue after a death, they must be asked after call, because from their answers on their scripts may have
 * to wait; all answer again when they have joined. dismiss: it must not join for now, or, after invite, never. call: blocks
 * until its ranks have answered once more. invite: tell the trainers to join it. join: do so with them, blocks for
 * milliseconds; *comm is the new communicator, a Fortran handle. link: listen to it. */
int mpidata_scheduler_greet(MPI_Fint intercomm, int role, int number, MPI_Fint *bridge);
int mpidata_scheduler_prepare(int role, int number);
int mpidata_scheduler_call(MPI_Fint bridge);
int mpidata_scheduler_has_died(MPI_Fint bridge, int *yes); /* whether one of its ranks has, as MPI says; before join is over */
int mpidata_scheduler_invite(int role, int number);
int mpidata_scheduler_dismiss(int role, int number);
int mpidata_scheduler_join(MPI_Fint bridge, MPI_Fint *comm);
int mpidata_scheduler_link(int role, int number, MPI_Fint comm);

/* Tell all trainers that every group has left and every trainer has said goodbye: nothing more is in flight. */
int mpidata_scheduler_all_gone(void);

/* End all ranks immediately with this exit status (MPI_Abort). Does not return. */
void mpidata_scheduler_abort(int status);

/* Leave the job in order: after all_gone. */
int mpidata_scheduler_close(void);

#endif

/* Statistics of the fields, for Python: arrays of plan.n_moments mpidata_moments, as float64. Any thread; nothing blocks. */
#ifndef MPIDATA_TRAINER_SCALES_H
#define MPIDATA_TRAINER_SCALES_H

/* Of all trainers, as of the batch that was drawn last: the same on all that have drawn as many. */
int mpidata_trainer_scales(double *moments);

/* Of what the checkpointed trainers whose place this one takes had received: before mpidata_trainer_begin. */
int mpidata_trainer_restore_scales(const double *moments);

#endif

/* Statistics of the fields, for Python: arrays of plan.n_moments mpidata_moments, as float64. Any thread; nothing blocks. */
#ifndef MPIDATA_TRAINER_SCALES_H
#define MPIDATA_TRAINER_SCALES_H

/* Of all trainers, as of the last drawn batch: the same on all that have drawn equally many. */
int mpidata_trainer_scales(double *moments);

/* Restore those of the samples received by the checkpointed trainers that this one replaces; before mpidata_trainer_begin. */
int mpidata_trainer_restore_scales(const double *moments);

#endif

/* Constants for Python (mpidata/trainer/constants.py): each pointer that it gets has a reference. Not
 * installed. */
#ifndef MPIDATA_HELD_H
#define MPIDATA_HELD_H

#include <stdint.h>

typedef struct mpidata_try_constants mpidata_try_constants;

/* Those of the batch that mpidata_trainer_draw has last filled, each once: *n of them, at most as many as samples; if
 * nobody asks, the next batch releases them. */
int mpidata_trainer_constants_drawn(mpidata_try_constants **constants, int64_t *n);

/* The newest of a simulation that this trainer holds, or NULL. */
int mpidata_trainer_constants_find(int64_t simulation, mpidata_try_constants **constants);

/* Their contents: the address for each field, NULL if there are no values; and the numbers, as for a sample; a length
 * that no constant has is -1. */
int mpidata_trainer_constants_look(const mpidata_try_constants *constants, void **values, int64_t *numbers,
                                   int64_t *simulation, int64_t *by_try);

/* Any thread; no effect after mpidata_trainer_free. */
int mpidata_trainer_constants_release(mpidata_try_constants *constants);

#endif

/* What a solver rank knows of the inference ranks: the scheduler says of each that it answers, and later that it is
 * lost. */
#ifndef MPIDATA_ANSWERERS_H
#define MPIDATA_ANSWERERS_H

#include <stdint.h>

enum { MPIDATA_ANSWERER_UNKNOWN = 0, MPIDATA_ANSWERER_LIVES, MPIDATA_ANSWERER_LOST };

typedef struct {
    char *states; /* by number of the inference rank: one of the above */
    int n;
} mpidata_answerers;

/* Take a word of the scheduler (wire/messages.h). One that is lost stays so. */
int mpidata_answerers_hear(mpidata_answerers *answerers, int32_t word);

/* The next one after `number` that lives, round robin; -1: none does. */
int mpidata_answerers_next(const mpidata_answerers *answerers, int number);

int mpidata_answerer_lives(const mpidata_answerers *answerers, int number);
void mpidata_answerers_close(mpidata_answerers *answerers);

#endif

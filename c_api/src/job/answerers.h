/* The inference ranks that a solver rank knows: the scheduler reports each one that answers, and later those that are
 * lost. */
#ifndef MPIDATA_ANSWERERS_H
#define MPIDATA_ANSWERERS_H

#include <stdint.h>

enum { MPIDATA_ANSWERER_UNKNOWN = 0, MPIDATA_ANSWERER_LIVES, MPIDATA_ANSWERER_LOST };

typedef struct {
    char *states; /* by number of the inference rank: one of the above */
    int n;
} mpidata_answerers;

/* Take a report of the scheduler (wire/messages.h). A lost one stays lost. */
int mpidata_answerers_hear(mpidata_answerers *answerers, int32_t word);

/* The next living one after `number`, round robin; -1: there is none. */
int mpidata_answerers_next(const mpidata_answerers *answerers, int number);

int mpidata_answerer_lives(const mpidata_answerers *answerers, int number);
void mpidata_answerers_close(mpidata_answerers *answerers);

#endif

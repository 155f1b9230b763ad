#include "job/answerers.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "containers/array.h"
#include "wire/messages.h"

enum { MOST = 1 << 20 };

int mpidata_answerers_hear(mpidata_answerers *answerers, int32_t word) {
    const int number = mpidata_answerer_number(word), grown = number + 1;
    if (number >= MOST)
        return mpidata_error(MPIDATA_ERR_WIRE, "The scheduler names an inference rank %d, which does not exist.", number);
    if (grown > answerers->n) {
        if (!mpidata_array_resize(&answerers->states, grown, 1))
            return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for a list of inference ranks.");
        memset(answerers->states + answerers->n, MPIDATA_ANSWERER_UNKNOWN, (size_t)(grown - answerers->n));
        answerers->n = grown;
    }
    char *state = &answerers->states[number];
    if (*state != MPIDATA_ANSWERER_LOST)
        *state = mpidata_answerer_is_lost(word) ? MPIDATA_ANSWERER_LOST : MPIDATA_ANSWERER_LIVES;
    return MPIDATA_SUCCESS;
}

int mpidata_answerer_lives(const mpidata_answerers *answerers, int number) {
    return number >= 0 && number < answerers->n && answerers->states[number] == MPIDATA_ANSWERER_LIVES;
}

int mpidata_answerers_next(const mpidata_answerers *answerers, int number) {
    for (int i = 1; i <= answerers->n; i++) {
        const int next = (int)(((int64_t)number + i) % answerers->n);
        if (mpidata_answerer_lives(answerers, next)) return next;
    }
    return -1;
}

void mpidata_answerers_close(mpidata_answerers *answerers) {
    free(answerers->states);
    *answerers = (mpidata_answerers){0};
}

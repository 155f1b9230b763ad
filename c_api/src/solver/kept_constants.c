#include "solver/kept_constants.h"

#include <string.h>

#include "base/wait.h"
#include "solver/map_sending.h"

int mpidata_kept_constants_begin(mpidata_sender *sender) {
    mpidata_staged_piece *piece = &sender->pieces[mpidata_kept_constants_piece(sender)];
    mpidata_backoff backoff = {0};
    if (!sender->constants.over) return MPIDATA_SUCCESS;
    const double since = mpidata_now();
    while (piece->under_way) {
        MPIDATA_TRY(mpidata_sender_wait(sender));
        if (!piece->under_way) break;
        mpidata_backoff_pause(&backoff);
        mpidata_job_waits(sender->job, since);
    }
    sender->waited += mpidata_now() - since;
    mpidata_sender_release_maps(piece);
    piece->n_blocks = 0;
    piece->n_moments = 0;
    piece->payload_bytes = 0;
    memset(sender->constants.sent, 0, (size_t)sender->job->plan.trainers);
    sender->constants.over = 0;
    sender->constants.header_bytes = 0;
    return MPIDATA_SUCCESS;
}

/* Written once for all trainers: MPI may still read it when the next one gets it. */
static int write_header(mpidata_sender *sender, int64_t simulation, const double *parameters) {
    const int number = mpidata_kept_constants_piece(sender);
    mpidata_piece head = {.magic = MPIDATA_PIECE_MAGIC, .n_blocks = sender->pieces[number].n_blocks,
                          .simulation = simulation, .step = MPIDATA_STEP_OF_CONSTANTS, .by_try = sender->by_try};
    return mpidata_sender_write(sender, number, &head, parameters, &sender->constants.header_bytes);
}

int mpidata_kept_constants_send(mpidata_sender *sender, int64_t simulation, int64_t step, int validation,
                                const double *parameters) {
    int trainers[2], n = mpidata_plan_trainers(&sender->job->plan, simulation, step, trainers);
    mpidata_kept_constants *constants = &sender->constants;
    MPIDATA_TRY(mpidata_kept_constants_begin(sender));
    sender->tag = validation ? MPIDATA_TAG_VALIDATION : MPIDATA_TAG_SAMPLE;
    for (int i = 0; i < n; i++) {
        if (constants->sent[trainers[i]]) continue;
        if (!constants->header_bytes) MPIDATA_TRY(write_header(sender, simulation, parameters));
        constants->sent[trainers[i]] = 1;
        MPIDATA_TRY(mpidata_send_maps_of(sender, &sender->pieces[mpidata_kept_constants_piece(sender)], trainers[i], validation));
        MPIDATA_TRY(mpidata_sender_send(sender, mpidata_kept_constants_piece(sender), constants->header_bytes,
                                        trainers[i]));
    }
    return MPIDATA_SUCCESS;
}

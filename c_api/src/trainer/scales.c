#include "trainer/scales.h"

#include <math.h>
#include <string.h>

#include "stream/state.h"

static int need_scales(mpidata_trainer **trainer) {
    MPIDATA_TRY(mpidata_the_trainer(trainer));
    if ((*trainer)->job.plan.n_moments) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ORDER, "The job keeps no statistics. Add 'samples: {statistics: true}' to the job file.");
}

int mpidata_trainer_scales(double *moments) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_scales(&trainer));
    mpidata_lock_take(&trainer->lock);
    memcpy(moments, trainer->scales.known, (size_t)trainer->job.plan.n_moments * sizeof(mpidata_moments));
    mpidata_lock_give(&trainer->lock);
    return MPIDATA_SUCCESS;
}

int mpidata_trainer_restore_scales(const double *moments) {
    mpidata_trainer *trainer;
    MPIDATA_TRY(need_scales(&trainer));
    if (trainer->begun) return mpidata_error(MPIDATA_ERR_ORDER, "A checkpoint must be restored before mpidata_trainer_begin.");
    size_t n = (size_t)trainer->job.plan.n_moments;
    memcpy(trainer->scales.own, moments, n * sizeof *trainer->scales.own);
    for (size_t i = 0; i < n; i++) {
        const mpidata_moments *of = &trainer->scales.own[i];
        double values = of->count + of->not_finite;
        if (!(values >= 0 && values < 0x1p53) || !mpidata_moments_possible(of, (int64_t)values))
            return mpidata_error(MPIDATA_ERR_ARGUMENT, "The checkpoint's statistics make no sense.");
    }
    return MPIDATA_SUCCESS;
}

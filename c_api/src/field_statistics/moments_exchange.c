#include "field_statistics/moments_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "containers/list.h"

static int no_memory(void) { return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the statistics of the fields."); }

int mpidata_scales_open(mpidata_scales *scales, const mpidata_plan *plan) {
    memset(scales, 0, sizeof *scales);
    if (!plan->n_moments) return MPIDATA_SUCCESS;
    scales->own = calloc((size_t)plan->n_moments, sizeof *scales->own);
    scales->known = calloc((size_t)plan->n_moments, sizeof *scales->known);
    if (!scales->own || !scales->known) return no_memory();
    mpidata_moments_clear(scales->own, plan->n_moments);
    mpidata_moments_clear(scales->known, plan->n_moments);
    return MPIDATA_SUCCESS;
}

static void drop_first(mpidata_scales *scales) {
    mpidata_granted_scales *first;
    MPIDATA_LIST_POP(scales, first);
    free(first);
}

void mpidata_scales_close(mpidata_scales *scales) {
    while (scales->first) drop_first(scales);
    free(scales->own);
    free(scales->known);
    memset(scales, 0, sizeof *scales);
}

int mpidata_scales_grant(mpidata_scales *scales, const mpidata_plan *plan, const mpidata_moments *of_each, int n, int64_t from) {
    mpidata_granted_scales *granted = malloc(sizeof *granted + (size_t)plan->n_moments * sizeof granted->moments[0]);
    if (!granted) return no_memory();
    granted->from = from;
    mpidata_moments_clear(granted->moments, plan->n_moments);
    for (int t = 0; t < n; t++)
        mpidata_moments_merge(granted->moments, of_each + (int64_t)t * plan->n_moments, plan->n_moments);
    MPIDATA_LIST_APPEND(scales, granted);
    return MPIDATA_SUCCESS;
}

void mpidata_scales_go_on(mpidata_scales *scales, int64_t from) {
    for (mpidata_granted_scales *granted = scales->first; granted; granted = granted->next)
        if (granted->from > from) granted->from = from;
}

void mpidata_scales_drawn(mpidata_scales *scales, const mpidata_plan *plan, int64_t drawn) {
    size_t bytes = (size_t)plan->n_moments * sizeof(mpidata_moments);
    if (plan->n_moments && plan->trainers == 1) memcpy(scales->known, scales->own, bytes);
    while (scales->first && scales->first->from < drawn) {
        memcpy(scales->known, scales->first->moments, bytes);
        drop_first(scales);
    }
}

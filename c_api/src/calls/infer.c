/* mpidata_infer and its variants: the checks before a question is sent. */
#include <stddef.h>

#include "calls/calls.h"
#include "device/driver.h"
#include "program/caller.h"
#include "question/description.h"

/* Refuse a question that nobody can answer. */
static int need_answerer(const char **advice) {
    *advice =
        "Add 'inference: {ranks: 1, function: \"module:function\"}' to the job file, and start it with `mpidata run`.";
    if (mpidata_calls.alone)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_infer was called outside a job, which has no inference ranks");
    if (!mpidata_calls.plan->inference)
        return mpidata_error(MPIDATA_ERR_ORDER, "mpidata_infer was called in a job without 'inference'");
    return MPIDATA_SUCCESS;
}

/* MPI receives answers in place. */
static int refuse_devices(const mpidata_array *arrays, int n, const char **advice) {
    *advice = "Pass an array in the memory of the host.";
    for (int i = 0; i < n; i++) {
        mpidata_device_place place;
        MPIDATA_TRY(mpidata_device_find(arrays[i].values, &place));
        if (place.driver) return mpidata_error(MPIDATA_ERR_ARGUMENT, "Array '%.100s' is in the memory of a device", arrays[i].name);
    }
    return MPIDATA_SUCCESS;
}

static int begin(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version,
                 int64_t *question) {
    const char *advice;
    MPIDATA_TRY(mpidata_calls_enter_simulation("mpidata_infer"));
    int status = need_answerer(&advice);
    if (!status) status = mpidata_question_check(in, n_in, out, n_out, &advice);
    if (!status) status = refuse_devices(in, n_in, &advice);
    if (!status) status = refuse_devices(out, n_out, &advice);
    if (status) return mpidata_calls_misuse(status, advice);
    status = mpidata_calls_transport()->ask(in, n_in, out, n_out, version, question);
    if (status != MPIDATA_ERR_ARGUMENT) return status;
    return mpidata_calls_misuse(status, "Call mpidata_infer_wait for one of them first.");
}

/* Also if the job is stopping: from then on the arrays are no longer lent. */
static int wait_for_answer(mpidata_question *question) {
    const mpidata_transport *transport = mpidata_calls_transport();
    if (transport && transport->forked()) return transport->refuse_forked();
    if (mpidata_calls.broken) return mpidata_calls.broken;
    const int64_t number = *question;
    *question = 0;
    if (!number) return MPIDATA_SUCCESS;
    int status = transport && !mpidata_calls.alone && mpidata_calls.state == MPIDATA_JOINED ? transport->answer(number)
                                                                                            : MPIDATA_ERR_ARGUMENT;
    if (status == MPIDATA_ERR_ARGUMENT) {
        (void)mpidata_error(status, "mpidata_infer_wait was called for a question that is not open");
        return mpidata_calls_misuse(status, "Call it once for each mpidata_infer_begin.");
    }
    MPIDATA_TRY(status);
    return mpidata_calls.stopping ? MPIDATA_END : MPIDATA_SUCCESS;
}

int mpidata_infer_begin(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version,
                        mpidata_question *question) {
    MPIDATA_CALLED;
    if (!question) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_infer_begin: question is NULL.");
    *question = 0;
    return mpidata_calls_settle(begin(in, n_in, out, n_out, version, question));
}

int mpidata_infer_wait(mpidata_question *question) {
    MPIDATA_CALLED;
    if (!question) return mpidata_error(MPIDATA_ERR_ARGUMENT, "mpidata_infer_wait: question is NULL.");
    return mpidata_calls_settle(wait_for_answer(question));
}

int mpidata_infer(const mpidata_array *in, int n_in, const mpidata_array *out, int n_out, int64_t *version) {
    MPIDATA_CALLED;
    mpidata_question question = 0;
    const int status = begin(in, n_in, out, n_out, version, &question);
    return mpidata_calls_settle(status ? status : wait_for_answer(&question));
}

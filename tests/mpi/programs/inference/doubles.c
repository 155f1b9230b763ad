/* An inference rank in C, to run its library under the sanitizers: takes each published version, checks it, and answers
 * questions with y = 2 x, in float32, with the shape of x. */
#include "contents/contents.h"
#include "loader/loader.h"
#include "question/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct {
    int64_t ticket; /* 0: nothing is being sent */
    mpidata_answer_head head;
    float *y;
} kept_answer;

static kept_answer kept[MOST];
static int64_t version, tickets;

static void must(int holds, const char *what) {
    if (holds) return;
    (void)fprintf(stderr, "NOT SO: %s: %s\n", what, mpidata_last_error());
    _Exit(1);
}

static void take_newer(void) {
    mpidata_taken newer;
    const int status = mpidata_loader_published(version, &newer);
    if (status == MPIDATA_ERR_AGAIN) return;
    must(!status && (int64_t)newer.number > version, "a newer version");
    const mpidata_contents *contents = (const mpidata_contents *)(const void *)newer.memory;
    const mpidata_published_array *weight = mpidata_contents_find(contents, "weight");
    must(weight != NULL, "weight");
    const double *values = (const double *)(const void *)(newer.memory + weight->at);
    for (int64_t i = 0; i < weight->shape[0]; i++) must((int64_t)values[i] == (int64_t)newer.number + i, "one version");
    version = (int64_t)newer.number;
    mpidata_parcel_release(newer.parcel);
}

static void let_go(void) {
    for (int64_t ticket; !mpidata_loader_sent(&ticket);)
        for (int i = 0; i < MOST; i++)
            if (kept[i].ticket == ticket) {
                free(kept[i].y);
                kept[i] = (kept_answer){0};
            }
}

static void answer(const mpidata_taken *request) {
    kept_answer *own = kept;
    while (own < kept + MOST && own->ticket) own++;
    must(own < kept + MOST && request->n_parts == 2, "room, and one array");
    const int64_t n = request->sizes[1] / (int64_t)sizeof(float);
    const float *x = (const float *)(const void *)(request->memory + request->offsets[1]);
    *own = (kept_answer){.ticket = ++tickets, .head = {version}, .y = malloc((size_t)n * sizeof(float) + 1)};
    must(own->y != NULL, "memory");
    for (int64_t i = 0; i < n; i++) own->y[i] = 2 * x[i];
    const void *const parts[] = {&own->head, own->y};
    const int64_t sizes[] = {sizeof own->head, n * (int64_t)sizeof(float)};
    must(!mpidata_loader_answer(request, 0, 2, parts, sizes, own->ticket), "mpidata_loader_answer");
}

int main(int argc, char **argv) {
    int level, status, answers = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    must(!mpidata_loader_open(MPI_Comm_c2f(MPI_COMM_WORLD), MPIDATA_ROLE_INFERENCE), "mpidata_loader_open");
    must(!mpidata_loader_begin(), "mpidata_loader_begin");
    for (mpidata_taken request; (status = mpidata_loader_next(&request, 0.2)) != MPIDATA_END; let_go()) {
        must(!status || status == MPIDATA_ERR_AGAIN, "mpidata_loader_next");
        take_newer();
        if (status) continue;
        answer(&request);
        mpidata_parcel_release(request.parcel);
        answers++;
    }
    must(!mpidata_loader_close(), "mpidata_loader_close");
    for (int i = 0; i < MOST; i++) free(kept[i].y);
    (void)printf("answers %d, version %lld\n", answers, (long long)version);
    return MPI_Finalize();
}

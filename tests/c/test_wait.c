/* Requests that fail because a peer has died, with the test's own MPI functions, and the sleeps of waits. */
#include <string.h>

#include "base/wait.h"

#include "check.h"

enum { REQUESTS = 5, FAILS = 77 };

static int told[REQUESTS], n_told, freed[REQUESTS], result;

int MPI_Error_class(int code, int *class) {
    *class = code;
    return MPI_SUCCESS;
}

/* Like Open MPI: requests found to have failed in this call are freed without a report. */
int MPI_Testsome(int n, MPI_Request requests[], int *n_done, int done[], MPI_Status statuses[]) {
    CHECK(n == REQUESTS);
    *n_done = n_told;
    for (int i = 0; i < n_told; i++) {
        done[i] = told[i];
        statuses[i].MPI_ERROR = freed[told[i]] ? FAILS : MPI_SUCCESS;
    }
    for (int i = 0; i < n; i++)
        if (freed[i]) requests[i] = MPI_REQUEST_NULL;
    return result;
}

static int test_them(int *done, MPI_Status *statuses) {
    static char under_way[REQUESTS];
    MPI_Request requests[REQUESTS];
    int n_done = -1;
    for (int i = 0; i < REQUESTS; i++) {
        const char *some = &under_way[i]; /* anything but MPI_REQUEST_NULL */
        memset(&requests[i], 1, sizeof requests[i]);
        memcpy(&requests[i], &some, sizeof requests[i] < sizeof some ? sizeof requests[i] : sizeof some);
    }
    CHECK(mpidata_test_some(REQUESTS, requests, &n_done, done, statuses) == MPIDATA_SUCCESS);
    return n_done;
}

static void pauses_grow(void) {
    mpidata_backoff backoff = {0}, other = {0};
    int64_t waited = 0;
    int pauses = 0;
    for (; waited < INT64_C(100000000); pauses++) waited += mpidata_backoff_next_patient(&backoff);
    CHECK(pauses < 200 && mpidata_backoff_next_patient(&backoff) <= 1010000); /* 1 % of 0.1 s */
    for (pauses = 0; waited < INT64_C(10000000000); pauses++) {
        const long sleep_ns = mpidata_backoff_next_patient(&backoff);
        CHECK(sleep_ns <= 20000000 && sleep_ns <= waited / 90);
        waited += sleep_ns;
    }
    CHECK(pauses < 800 && mpidata_backoff_next_patient(&backoff) == 20000000);
    CHECK(mpidata_backoff_next(&backoff) == 1000000);
    for (pauses = 0; pauses < 5000; pauses++) CHECK(mpidata_backoff_next(&other) <= 1000000);
}

/* A wait yields longer before it sleeps if the last answer came soon than if it took long. */
static void yields_are_for_what_comes_soon(void) {
    mpidata_yields yields = {.last_s = 0.0009};
    CHECK(mpidata_yield_between(&yields, 0.0) && mpidata_yield_between(&yields, 0.0009));
    CHECK(!mpidata_yield_between(&yields, 0.0011));
    yields.last_s = 0.0011;
    CHECK(mpidata_yield_between(&yields, 0.00009) && !mpidata_yield_between(&yields, 0.00011));
}

int main(void) {
    pauses_grow();
    yields_are_for_what_comes_soon();
    int done[REQUESTS];
    MPI_Status statuses[REQUESTS];
    n_told = 2;
    told[0] = 0;
    told[1] = 3;
    CHECK(test_them(done, statuses) == 2 && done[0] == 0 && done[1] == 3 && statuses[1].MPI_ERROR == MPI_SUCCESS);
    freed[1] = freed[3] = freed[4] = 1;
    result = MPI_ERR_IN_STATUS;
    CHECK(test_them(done, statuses) == 4 && done[0] == 0 && done[1] == 3 && done[2] == 1 && done[3] == 4);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS);
    for (int i = 1; i < 4; i++) CHECK(statuses[i].MPI_ERROR == FAILS);
    n_told = 0;
    result = MPI_SUCCESS;
    CHECK(test_them(done, statuses) == 0);
    return 0;
}

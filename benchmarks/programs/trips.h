/* Round trips of one row of 1024 float32. Each is timed, except the first ones; quantiles are written to trips.json. */
#ifndef TRIPS_H
#define TRIPS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIP_VALUES = 1024, TRIPS_WARM = 500, TRIPS_MOST = 2000000 };

static double trips_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int trips_compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void trips_check(const float *asked, const float *answered) {
    for (int i = 0; i < TRIP_VALUES; i++)
        if (asked[i] < answered[i] || asked[i] > answered[i]) abort();
}

static void trips_write(double *times, int n) {
    qsort(times, (size_t)n, sizeof *times, trips_compare);
    FILE *file = fopen("trips.json", "w");
    if (!file || fprintf(file, "{\"median_us\": %.3f, \"p99_us\": %.3f, \"trips\": %d}\n", 1e6 * times[n / 2],
                         1e6 * times[n - 1 - n / 100], n) < 0 || fclose(file)) {
        perror("trips.json");
        exit(1);
    }
}

/* Ask for a number of seconds; ends the program if `trip` fails. */
static void trips_run(double seconds, int (*trip)(const float *asked, float *answered)) {
    static float asked[TRIP_VALUES], answered[TRIP_VALUES];
    static double times[TRIPS_MOST];
    int n = 0;
    double end = 0;
    for (int i = 0; n < TRIPS_MOST; i++) {
        for (int k = 0; k < TRIP_VALUES; k++) asked[k] = (float)(i + k);
        const double before = trips_now();
        if (trip(asked, answered)) exit(1);
        const double after = trips_now();
        trips_check(asked, answered);
        if (i < TRIPS_WARM) end = after + seconds;
        else times[n++] = after - before;
        if (i > TRIPS_WARM && after > end) break;
    }
    trips_write(times, n);
}

#endif

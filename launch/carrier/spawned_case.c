/* The case of a group that is spawned for one simulation. No carrier is there, so this program is called for it, without
 * MPI: by the scheduler before the group is spawned, and by the parent of the group's rank 0 when that has ended. The parent
 * of a carrier calls it, too, as that may have been killed. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "containers/text_list.h"

static long long value(char **values, const char *name) {
    const char *found = mpidata_texts_value(values, name, strlen(name));
    return found ? atoll(found) : 0;
}

int spawned_case(int argc, char **argv) {
    static case_t spawned;
    const int make = argc > 1 && !strcmp(argv[1], "--make-case"), kept = argc > 1 && !strcmp(argv[1], "--failed-case");
    const int all = argc > 1 && !strcmp(argv[1], "--end-cases");
    if (!make && !kept && !all && (argc < 2 || strcmp(argv[1], "--end-case") != 0)) return -1;
    if (argc < 4) return 2;
    char **values = argv + 4;
    const int group = atoi(argv[3]);
    const long long simulation = value(values, "simulation"), by_try = value(values, "try");
    int status = case_read(&spawned, argv[2]);
    if (!status && make) status = case_make(&spawned, simulation, by_try, group, values);
    if (!status && all) case_end_of_group(&spawned, group);
    if (!status && !make && !all) {
        case_name(&spawned, simulation, by_try, group);
        case_end(&spawned, kept);
    }
    if (status) (void)fprintf(stderr, "%s\n", mpidata_last_error());
    return status != 0;
}

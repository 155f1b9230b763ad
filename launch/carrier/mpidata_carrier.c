/* mpidata-carrier RANKS WORDS [launcher ...] program [argument ...]: a rank of the job for a program that is not a rank.
 *
 * mpidata-rank starts it. It joins the job as a solver and starts the program, through the launcher (of WORDS words) if there
 * is one. The program has RANKS ranks, which attach here or at the other carriers of the group. The data that they put is sent
 * as this rank's own. The death of the program is the failure of a try: the program is restarted, and this rank stays.
 *
 * One thread does everything. It sleeps in ppoll, but only briefly while MPI has operations in progress. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "carrier.h"
#include "family.h"
#include "job/run_files.h"
#include "solver/solver.h"

enum { IDLE_MS = 100 };
static const double SAY_AFTER_S = 5;

static char *read_plan(const char *folder) {
    char path[4096], *text = NULL;
    size_t room = 0;
    (void)snprintf(path, sizeof path, "%s/" MPIDATA_RUN_PLAN, folder);
    FILE *file = fopen(path, "re");
    if (!file || getdelim(&text, &room, 0, file) <= 0) text = NULL;
    if (file) fclose(file);
    return text;
}

static int open_carrier(carrier_t *carrier, int room) {
    ranks_t *ranks = &carrier->ranks;
    MPI_Comm group;
    const int status = mpidata_init(MPI_COMM_WORLD, &group); /* which prints its own error */
    if (status) return status;
    ranks->room = room;
    ranks->plan = mpidata_solver_plan();
    carrier->start_timeout_s = ranks->plan->start_timeout_s;
    carrier->group = mpidata_solver_who(ranks->who, sizeof ranks->who);
    ranks->plan_text = ranks->plan->run ? read_plan(ranks->plan->run) : NULL;
    if (!ranks->plan_text) return mpidata_error(MPIDATA_ERR_JOB, "The carrier cannot read the plan of the job.");
    (void)snprintf(ranks->mark, sizeof ranks->mark, MPIDATA_CARRIED_MARK "=%s", ranks->plan->run);
    ranks_lay_out(ranks);
    int trouble = carriers_open(&carrier->others, group);
    ranks->carriers = carrier->others.size;
    ranks->place = carrier->others.rank;
    ranks->beside = carrier->others.index == 0 ? carrier->others.here : 1;
    if (carrier->others.index == 0)
        (void)snprintf(ranks->group_mark, sizeof ranks->group_mark, MPIDATA_CARRIED_GROUP "=%d", carrier->group);
    if (!trouble) trouble = case_read(&carrier->own_case, ranks->plan->run);
    if (!trouble) trouble = memory_check(ranks);
    if (!trouble) trouble = socket_open(ranks, carrier->group, carrier->others.index);
    if (ranks->plan->inference) mpidata_solver_meanwhile(questions_serve, carrier);
    return trouble ? end_job(trouble) : MPIDATA_SUCCESS;
}

/* The program may still have work; the job does not wait for it, but its ranks do. */
static void wait_for_program(carrier_t *carrier) {
    const int first = carrier->others.rank == 0;
    const double since = mpidata_now();
    int said = 0;
    while (first ? !program_has_ended(&carrier->program) && !outlives_ranks(carrier, carrier->ranks.n && ranks_have_ended(&carrier->ranks), mpidata_now())
                 : carrier->ranks.n && !ranks_have_ended(&carrier->ranks)) {
        struct pollfd ended = {.fd = carrier->program.descriptor, .events = POLLIN};
        const char *why = goes_on_after_ranks(carrier, 1, mpidata_now());
        if (!said && (why || mpidata_now() - since > SAY_AFTER_S))
            said = fprintf(stderr, "mpidata: %s: the job is done and waits until its program ends.\n", carrier->ranks.who);
        if (why) {
            (void)fprintf(stderr, "mpidata: %s: its program %s.\n", carrier->ranks.who, why);
            return;
        }
        hurry(carrier, mpidata_now());
        (void)poll(&ended, 1, IDLE_MS);
    }
}

/* -- a carrier that is not the first of its group: it executes the orders of that one ------------------------------------ */

static int obey(carrier_t *carrier, int *did) {
    order_t order;
    int came;
    for (*did = 0; !carrier->left; *did = 1) {
        MPIDATA_TRY(carriers_next_order(&carrier->others, &order, &came));
        if (!came) return MPIDATA_SUCCESS;
        MPIDATA_TRY(carry_out(carrier, &order));
    }
    return MPIDATA_SUCCESS;
}

static int follow(carrier_t *carrier) {
    while (!carrier->left) {
        int did, stopping, under_way;
        MPIDATA_TRY(obey(carrier, &did));
        MPIDATA_TRY(look(carrier));
        MPIDATA_TRY(mpidata_solver_look(&stopping, &under_way));
        if (did) carrier->backoff.idle = 0;
        else MPIDATA_TRY(rest(carrier, under_way));
    }
    return MPIDATA_SUCCESS;
}

int main(int argc, char **argv) {
    static carrier_t carrier = {.ranks = {.listener = -1, .folder = -1, .memory = -1, .held = -1}, .program = {.descriptor = -1}};
    const int of_a_case = spawned_case(argc, argv);
    if (of_a_case >= 0) return of_a_case;
    const int room = argc > 3 ? atoi(argv[1]) : 0, words = argc > 3 ? atoi(argv[2]) : -1;
    if (room < 1 || words < 0 || argc < 4 + words) {
        (void)fprintf(stderr, "mpidata: Only `mpidata run` starts mpidata-carrier.\n");
        return 2;
    }
    carrier.command = (command_t){.n_launcher = words, .arguments = argv + 3 + words};
    adopt_orphans();
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    int status = open_carrier(&carrier, room);
    if (!status) status = words_of_launcher(argv + 3, words, carrier.others.hosts, &carrier.command.launcher);
    if (!status) status = carrier.others.rank == 0 ? lead(&carrier) : follow(&carrier);
    if (!status) status = carriers_close(&carrier.others);
    questions_close(&carrier.ranks);
    if (!status) status = mpidata_finalize();
    if (status) {
        (void)fprintf(stderr, "mpidata: %s\n", mpidata_last_error());
        program_end(&carrier.program, &carrier.ranks);
        case_end(&carrier.own_case, 1);
        socket_close(&carrier.ranks);
        _exit(1);
    }
    wait_for_program(&carrier);
    program_end(&carrier.program, &carrier.ranks);
    case_end(&carrier.own_case, 0);
    socket_close(&carrier.ranks);
    ranks_forget(&carrier.ranks);
    return MPI_Finalize() != MPI_SUCCESS;
}

/* mpidata-carrier: what its parts share. It is a rank of the job, and sends what a program that is none puts into memory
 * which both share (c_api/src/carried/layout.h). */
#ifndef MPIDATA_CARRIER_H
#define MPIDATA_CARRIER_H

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "carried/layout.h"

/* A rank of the program. Of its memory, what the rank may write is read once, and checked. */
typedef struct {
    int socket, process; /* process: a pidfd, or -1 */
    pid_t pid;
    mpidata_carried *shared; /* NULL: it has only connected */
    uint64_t bytes;
    uint64_t taken, released; /* slots whose samples were sent, and that were given back */
    uint32_t beats;           /* as it was seen last ... */
    double alive;             /* ... and when; s */
    int asks;                 /* MPIDATA_CARRIED_ of a request that is not answered yet, or 0 */
    uint32_t request;
    int left;                 /* it has finalized */
    int gone;                 /* its socket is closed */
} rank_t;

/* The ranks of the present start of the program, and where they come in. ranks.c */
typedef struct {
    int n, room; /* n: those that have connected, room: that are expected */
    rank_t *all;
    double listened; /* to the sockets, last; s */
    int listener, folder, memory; /* descriptors; the folders are locked while this process lives */
    char directory[108], path[108];
    char scratch[2][128]; /* for files of the program's MPI, and for its shared memory; "": there is none */
    char token[MPIDATA_CARRIED_TOKEN];
    const mpidata_plan *plan;
    const char *plan_text;
    char who[128];
    /* Layout of the memory of each. */
    uint64_t parameters_at, slots_at, slot_bytes, values_at, values_bytes, bytes;
    uint32_t slots;
} ranks_t;

/* socket.c: the folder, and the socket in it, at which the ranks come in. */
int socket_open(ranks_t *ranks, int group);
void socket_close(ranks_t *ranks);
void socket_clean(const ranks_t *ranks); /* remove what the program's MPI has left */
int socket_renew_token(ranks_t *ranks); /* for another start of the program */

/* ranks.c */
void ranks_lay_out(ranks_t *ranks);
void ranks_forget(ranks_t *ranks); /* those of a start that is over; MPI must not read from their memory any more */
/* Take connections, farewells and requests. Returns NULL, or a sentence on a rank that does what none may do. */
const char *ranks_take(ranks_t *ranks, double now);
int ranks_attached(const ranks_t *ranks);
int ranks_left(const ranks_t *ranks); /* how many have finalized */
int ranks_have_ended(const ranks_t *ranks); /* the processes of all, as far as they can be seen */
int ranks_all_ask(const ranks_t *ranks, int what); /* whether all ranks of the program do */
/* Slot of a rank: its head, with the blocks behind it, and its values. */
const mpidata_carried_sample *ranks_slot(const ranks_t *ranks, const rank_t *rank, uint64_t number, const char **values);
void ranks_give_back(rank_t *rank, uint64_t released);
void ranks_answer(rank_t *rank, int status, const char *sentence);
void ranks_stop(ranks_t *ranks);              /* tell them that the job is stopping */
void ranks_sleep(ranks_t *ranks, int asleep); /* this process is about to, or does no more */
int ranks_have_sample(const ranks_t *ranks);  /* all have committed one */
int ranks_have_news(const ranks_t *ranks);    /* in their memory */
int ranks_poll(const ranks_t *ranks, struct pollfd *polled); /* room for 1 + ranks->n; returns how many */

/* memory.c: MPIDATA_ERR_MEMORY, where what is to be shared with the ranks is more than there is. */
int memory_check(const ranks_t *ranks);

/* The program, or what launches it. program.c */
typedef struct {
    pid_t pid; /* 0: not running */
    int descriptor; /* pidfd, -1: none */
    int status;     /* as waitpid gives it, once it has ended */
    int is_launched;
} program_t;

typedef struct {
    int n_launcher;
    char **launcher, **arguments; /* both end with NULL */
    const char *folder;           /* to run in; NULL: this process's */
} command_t;

/* Start it with these assignments, "NAME=value", in its environment. */
int program_start(program_t *program, const command_t *command, char **assignments);
int program_has_ended(program_t *program); /* reaps, too */
void program_end(program_t *program, const ranks_t *ranks); /* with all that it has started; blocks until they are gone */
const char *program_how(const program_t *program); /* "ended with exit status 3" */

/* words.c: lists of words that end with NULL; each call appends to one. NULL: an empty one. */
void words_free(char **words);
int words_of_start(const ranks_t *ranks, int group, char ***variables);
int words_of_simulation(const mpidata_plan *plan, int64_t simulation, const double *parameters, char ***variables,
                        char ***placeholders);
int words_of_case(const ranks_t *ranks, int group, char ***values); /* besides those of the simulation */
int words_of_launcher(char **launcher, int n, char ***filled);
/* The first n words, with their placeholders replaced by these values. */
int words_fill(char **words, int n, char **values, char ***filled);

/* The case of each simulation. case.c */
enum { MPIDATA_MARK_MAX = 16 };
typedef struct {
    char *folder, *in, *failed; /* folder: NULL: there is no case */
    char **fill, **link;        /* lists of paths within it */
    char opens[MPIDATA_MARK_MAX], closes[MPIDATA_MARK_MAX]; /* what stands around a name */
    int keep_failed;
    long long simulation;
    char path[4096]; /* of the present copy, "": none */
} case_t;

int case_read(case_t *case_, const char *run);
/* Copy it; values: "name=value". */
int case_make(case_t *case_, long long simulation, int group, char **values);
void case_end(case_t *case_, int failed); /* remove the copy, or keep it */

/* sending.c */
/* Send what all ranks have committed. */
int send_samples(ranks_t *ranks, int *sent);
/* Give the slots back from which MPI reads no more. */
void give_slots_back(ranks_t *ranks);

#endif

/* mpidata-carrier: declarations that its parts share. It is a rank of the job, and sends what a program that is not a rank
 * puts into shared memory (c_api/src/carried/layout.h). */
#ifndef MPIDATA_CARRIER_H
#define MPIDATA_CARRIER_H

#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#include "asked/questions.h"
#include "base/wait.h"
#include "carried/layout.h"
#include "contents/contents.h"

static inline uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

/* A map of a rank, by its number there. */
typedef struct {
    int64_t number;
    mpidata_map *map;
} rank_map_t;

enum { MOST_MAPS = 64 };

/* The questions of a rank: the state of each place for a question, and its memory, shared with the rank. questions.c */
typedef struct asking {
    struct {
        char *memory; /* NULL: none yet */
        uint64_t bytes;
        uint64_t asked; /* questions taken in total */
        int64_t number; /* of the open one, among all of this process; 0: none */
        int64_t version;
    } places[MPIDATA_CARRIED_QUESTIONS];
    struct asking *next; /* in the list of those whose ranks are gone */
} asking_t;

/* A rank of the program. Memory that the rank may write is read once, and checked. */
typedef struct {
    int socket, process; /* process: a pidfd, or -1 */
    pid_t pid;
    mpidata_carried *shared; /* NULL: it has only connected */
    int64_t number;          /* in the program; -1: unknown */
    uint64_t bytes;
    uint64_t taken, released; /* slots whose samples were sent; slots that were given back */
    uint32_t beats;           /* as last seen ... */
    double alive;             /* ... and when; s */
    int asks;                 /* MPIDATA_CARRIED_ of an unanswered request, or 0 */
    uint32_t request;
    int64_t version;          /* of the published arrays that it has */
    int left;                 /* it has finalized */
    int gone;                 /* its socket is closed */
    rank_map_t *maps;         /* recently used, MOST_MAPS; NULL: none yet (sending.c) */
    asking_t *asking;         /* NULL: no question yet */
} rank_t;

/* The ranks of the current start of the program, and the socket at which they connect. ranks.c */
typedef struct {
    int n, room; /* n: connected ranks, room: ranks of the program, here and at the group's other carriers */
    int64_t sent; /* samples, in this start of the program */
    int64_t seen; /* samples that all ranks here have committed, as last found by ranks_take */
    int diverged; /* the next one has a time that is not finite */
    uint64_t cancel_from; /* as sent to the ranks */
    int beside, turn; /* carriers of the group that share the ranks of this host; ranks that have connected so far */
    int carriers, place; /* number of carriers of the group; index of this one */
    int in_order; /* all have distinct known numbers */
    rank_t *all;  /* by number */
    double listened; /* when the sockets were last polled; s */
    int listener, folder, memory, held; /* descriptors; the folders and the file `held` are locked while this process lives */
    char directory[108], path[108];
    char scratch[2][160]; /* for files of the program's MPI, and for its shared memory; "": none */
    char token[MPIDATA_CARRIED_TOKEN];
    const mpidata_plan *plan;
    const char *plan_text;
    char who[128];
    char mark[4200], group_mark[40]; /* variables in the environment of all processes of the program; group_mark "":
                                        another carrier on this host ends them */
    uint64_t sample_bytes; /* with the constants, each of the largest size */
    /* Layout of the memory of each rank. */
    uint64_t parameters_at, slots_at, slot_bytes, values_at, values_bytes, bytes;
    uint32_t slots;
    int published;           /* descriptor of memory with the published arrays, -1: none ... */
    int64_t version;         /* ... of this version */
    mpidata_questions *questions; /* of all ranks to inference ranks; NULL: none yet */
    asking_t *left;          /* of ranks that are gone, while MPI may read their questions */
} ranks_t;

/* What a carrier knows of its ranks; the first carrier of the group decides by the sum. */
typedef struct {
    int64_t orders;  /* of the first carrier, executed */
    int64_t samples; /* that all its ranks have committed in this start of the program; INT64_MAX: it has no ranks */
    int32_t attached, left, lost; /* lost: closed their connection without mpidata_finalize */
    int32_t asks[MPIDATA_CARRIED_ERROR]; /* number of ranks that request MPIDATA_CARRIED_NEXT etc. */
    int32_t ahead;   /* ranks that have committed a sample that others have not, without a request */
    int32_t in_order; /* as in ranks_t */
    int64_t least, greatest; /* of the numbers */
    int32_t ended;   /* whether all processes have ended, as far as they can be seen */
    char silent[160]; /* why the program must be ended; "": it need not */
    char words[480];  /* last words of a rank */
    char reason[MPIDATA_CARRIED_SENTENCE]; /* of ranks that abandon the simulation */
} view_t;

/* Orders that all carriers of a group execute at the same point, because calls of libmpidata are collective. */
enum {
    ORDER_TAKE = 1,  /* a simulation from the scheduler */
    ORDER_START,     /* text: token; the ranks of another start of the program may connect */
    ORDER_SEND,      /* number: total of this start up to which samples are sent */
    ORDER_NEXT,      /* answer MPIDATA_CARRIED_NEXT, and likewise: */
    ORDER_FAIL,      /* text: reason */
    ORDER_FAIL_TRY,  /* text: reason */
    ORDER_FINALIZE,
    ORDER_REFRESH,
    ORDER_OVER,      /* the job is stopping */
    ORDER_END,       /* end the ranks here */
    ORDER_GIVE_BACK, /* text: how the program has ended; the simulation is tried again */
    ORDER_CLEAR,     /* forget the ranks */
    ORDER_LEAVE
};

typedef struct {
    int32_t kind;
    int64_t number;
    char text[MPIDATA_CARRIED_SENTENCE];
} order_t;

/* The carriers of a group, at least one for each host of the program. carriers.c */
typedef struct {
    MPI_Comm comm;
    int size, rank;
    int here, index;    /* number of carriers on this host; index of this one */
    char *hosts;        /* of all, once each: "node1,node2" */
    int64_t orders;     /* at the first carrier: given; at the others: executed */
    view_t *views;      /* of all others, at the first carrier; else [0] is the one sent last */
    const view_t *mine; /* at the first one */
    MPI_Request telling;
} carriers_t;

int carriers_open(carriers_t *carriers, MPI_Comm group);
/* Send an order to all others, which execute orders in sequence. */
int carriers_order(carriers_t *carriers, const order_t *order);
int carriers_next_order(carriers_t *carriers, order_t *order, int *came);
/* Send this carrier's view to the first one, or, as the first one, receive those of the others. */
int carriers_tell(carriers_t *carriers, view_t *mine); /* keeps `mine` */
/* The sum of all views; room: memory for it. Valid until the next carriers_tell. */
const view_t *carriers_sum(const carriers_t *carriers, view_t *room);
/* The last call, by all: no message of the others may be left when the group's communicator is freed. */
int carriers_close(carriers_t *carriers);

/* socket.c: the folder, and the socket in it at which the ranks connect. index: of this carrier among those of its group on
 * this host. */
int socket_open(ranks_t *ranks, int group, int index);
void socket_close(ranks_t *ranks);
void socket_clean(const ranks_t *ranks); /* remove files that the program's MPI has left */
/* End the programs of carriers of this run on this host that died together with their mpidata-rank. */
void socket_sweep(const ranks_t *ranks);
int socket_renew_token(ranks_t *ranks); /* for another start of the program */

/* ranks.c */
void ranks_lay_out(ranks_t *ranks);
void ranks_forget(ranks_t *ranks); /* those of a start that has ended; MPI must no longer read from their memory */
/* Take connections, farewells and requests. Returns NULL, or a sentence on a rank that has broken the protocol. */
const char *ranks_take(ranks_t *ranks, double now);
int ranks_attached(const ranks_t *ranks);
int ranks_have_ended(const ranks_t *ranks); /* whether all processes have ended, as far as they can be seen */
void ranks_view(const ranks_t *ranks, view_t *view); /* all except `orders` and `silent` */
/* Slot of a rank: its head, followed by the blocks, and its values. */
const mpidata_carried_sample *ranks_slot(const ranks_t *ranks, const rank_t *rank, uint64_t number, const char **values);
void ranks_give_back(rank_t *rank, uint64_t released);
void ranks_answer(rank_t *rank, int status, const char *sentence);
void ranks_wake(rank_t *rank);
/* Make shared memory of fixed size, mapped here; returns its descriptor, or -1. */
int ranks_make_memory(const char *name, uint64_t bytes, void **mapped);
/* Send a message through its socket, with a descriptor if that is not -1; returns whether it was sent. */
int ranks_send(const rank_t *rank, const void *data, size_t bytes, int memory);
void ranks_stop(ranks_t *ranks);              /* signal them that the job is stopping */
void ranks_cancel(ranks_t *ranks);            /* signal them that the simulation is cancelled, and from which sample on */
void ranks_sleep(ranks_t *ranks, int asleep); /* whether this process is about to sleep */
int ranks_have_news(const ranks_t *ranks);    /* in their memory, since ranks_take */
int ranks_poll(const ranks_t *ranks, struct pollfd *polled); /* room for 1 + ranks->n; returns the number used */

/* memory.c: returns MPIDATA_ERR_MEMORY if the memory to share with the ranks is more than is available. */
int memory_check(const ranks_t *ranks);
/* Give memory with this version to each rank that requests it and has another one. */
int memory_share(ranks_t *ranks, const mpidata_contents *published);

/* The program, or its launcher. program.c */
typedef struct {
    pid_t pid; /* 0: not running */
    int descriptor; /* pidfd, -1: none */
    int status;     /* as waitpid returns it, once it has ended */
    int is_launched;
} program_t;

typedef struct {
    int n_launcher;
    char **launcher, **arguments; /* both end with NULL */
    const char *folder;           /* working directory; NULL: that of this process */
} command_t;

/* Start it with these assignments, "NAME=value", in its environment. */
int program_start(program_t *program, const command_t *command, char **assignments);
int program_has_ended(program_t *program); /* also reaps */
void program_end(program_t *program, const ranks_t *ranks); /* with all that it has started; blocks until they have ended */
const char *program_how(const program_t *program); /* "ended with exit status 3" */

/* words.c: lists of words that end with NULL; each call appends to one. NULL: an empty list. */
int words_of_start(const ranks_t *ranks, int group, char ***variables);
int words_of_simulation(const mpidata_plan *plan, int64_t simulation, const double *parameters, char ***variables,
                        char ***placeholders);
int words_of_case(const ranks_t *ranks, int group, const char *hosts, char ***values); /* besides those of the simulation */
int words_of_launcher(char **launcher, int n, const char *hosts, char ***filled);
/* The first n words, with their placeholders replaced by these values. */
int words_fill(char **words, int n, char **values, char ***filled);

/* The case of each simulation. case.c */
enum { MPIDATA_MARK_MAX = 16 };
typedef struct {
    char **all;
    size_t n;
    int64_t room;
} paths_t; /* sorted */
typedef struct {
    char *folder, *in, *failed; /* folder: NULL: there is no case */
    paths_t fill, link;         /* within it, as found when the job started */
    char opens[MPIDATA_MARK_MAX], closes[MPIDATA_MARK_MAX]; /* delimiters of a name */
    int keep_failed, is_apart; /* is_apart: `in` was given: a folder of this run in one that the user has named */
    long long simulation, by_try;
    char path[4096]; /* of the current copy, "": none */
} case_t;

int case_read(case_t *case_, const char *run);
void case_name(case_t *case_, long long simulation, long long by_try, int group); /* of a copy; also in launch/rank/plan.c */
/* Copy the case; values: "name=value". */
int case_make(case_t *case_, long long simulation, long long by_try, int group, char **values);
void case_end(case_t *case_, int failed); /* remove the copy, or keep it */
void case_end_of_group(case_t *case_, int group); /* end a killed carrier's copies as failed; -1: those of all groups */
/* Do so for a group without a carrier, if these arguments request it; returns the exit status, -1: they do not.
 * --make-case, --end-case or --failed-case RUN GROUP name=value... ; --end-cases RUN GROUP, by the parent of a carrier that
 * has ended in any way, and with -1 by `mpidata run` at its end. Also case.c */
int spawned_case(int argc, char **argv);

/* sending.c */
/* Whether several ranks have put all of a field in the next sample, as happens if their launcher is not that of their MPI;
 * what: the start of a sentence about it. */
int ranks_put_the_same(const ranks_t *ranks, char *what, size_t size);
/* Send samples that all ranks have committed, up to this total of this start. */
int send_samples(ranks_t *ranks, int64_t up_to);
/* Give back the slots from which MPI no longer reads. */
void give_slots_back(ranks_t *ranks);

/* The process. */
typedef struct {
    ranks_t ranks;
    carriers_t others;
    program_t program;
    command_t command;
    case_t own_case;
    view_t view;
    int group;
    int64_t simulation;
    int pending;   /* it was taken for a program that has not been started or has not requested it yet */
    int open;      /* the program runs it */
    int over;      /* there are no more simulations, or the job is stopping */
    int finalized; /* all ranks of the program have */
    int whole;     /* all have attached */
    int took;      /* whether this start has taken a simulation */
    int fruitless; /* consecutive starts that have taken none */
    int64_t began_at; /* samples of this start that were sent before the current simulation */
    int left;      /* ORDER_LEAVE has come */
    int waits;     /* whether the program's rank 0 waited for an answer when its time was last counted ... */
    double counted; /* ... and when that was; s */
    double over_since; /* when questions were first found to have no answerer; s, 0: not yet */
    double began, gone_since, ended_since, left_since, looked, continued;
    double start_timeout_s; /* from the plan, which exists until mpidata_finalize */
    mpidata_backoff backoff;
} carrier_t;

/* orders.c */
int give_order(carrier_t *carrier, int kind, int64_t number, const char *text); /* and execute it; by the first carrier */
int carry_out(carrier_t *carrier, const order_t *order);
void answer_each(carrier_t *carrier); /* if the job is stopping: each rank leaves at its current point */

/* questions.c: questions of ranks to inference ranks. For a carrier_t: take questions, answer them, and let MPI progress. */
int questions_serve(void *carrier);
int questions_have_news(const ranks_t *ranks); /* in the memory of the ranks */
int questions_open(const ranks_t *ranks);      /* whether any is unanswered */
void questions_count_wait(carrier_t *carrier); /* time that rank 0 has waited since the last call, or questions_serve */
void questions_leave(ranks_t *ranks, rank_t *rank); /* it is gone: nobody waits for its answers */
void questions_close(ranks_t *ranks);

/* serving.c: the loop of every carrier. */
int look(carrier_t *carrier); /* at the ranks, the other carriers and the scheduler */
int rest(carrier_t *carrier, int under_way); /* sleep until there is work */
void hurry(carrier_t *carrier, double now);

/* ending.c */
int refuse(const carrier_t *carrier, int status, const char *what, const char *advice); /* ends the job */
int end_job(int status); /* with the last error, which would recur in another try */

/* first.c */
int lead(carrier_t *carrier);
/* Whether the launcher of the ranks still runs long after they have ended. */
int outlives_ranks(carrier_t *carrier, int ended, double now);
/* Why the program, which still runs after its ranks have finalized, must be ended; NULL: it need not, yet. */
const char *goes_on_after_ranks(carrier_t *carrier, int have_left, double now);

#endif

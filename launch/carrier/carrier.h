/* mpidata-carrier: what its parts share. It is a rank of the job, and sends what a program that is none puts into memory
 * which both share (c_api/src/carried/layout.h). */
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

/* The questions of a rank: what is known of each place for one, and the memory that both share for it. questions.c */
typedef struct asking {
    struct {
        char *memory; /* NULL: none yet */
        uint64_t bytes;
        uint64_t asked; /* questions that were taken, ever */
        int64_t number; /* of the one that is open, among all of this process; 0: none is */
        int64_t version;
    } places[MPIDATA_CARRIED_QUESTIONS];
    struct asking *next; /* of those whose ranks are gone */
} asking_t;

/* A rank of the program. Of its memory, what the rank may write is read once, and checked. */
typedef struct {
    int socket, process; /* process: a pidfd, or -1 */
    pid_t pid;
    mpidata_carried *shared; /* NULL: it has only connected */
    int64_t number;          /* in the program; -1: not known */
    uint64_t bytes;
    uint64_t taken, released; /* slots whose samples were sent, and that were given back */
    uint32_t beats;           /* as it was seen last ... */
    double alive;             /* ... and when; s */
    int asks;                 /* MPIDATA_CARRIED_ of a request that is not answered yet, or 0 */
    uint32_t request;
    int64_t version;          /* of what is published, that it has */
    int left;                 /* it has finalized */
    int gone;                 /* its socket is closed */
    rank_map_t *maps;         /* that it has used lately, MOST_MAPS; NULL: none yet (sending.c) */
    asking_t *asking;         /* NULL: it has asked nothing yet */
} rank_t;

/* The ranks of the present start of the program, and where they come in. ranks.c */
typedef struct {
    int n, room; /* n: those that have connected, room: that the program has, here and at the group's other carriers */
    int64_t sent; /* samples, in this start of the program */
    int64_t seen; /* samples that all ranks here have committed, as ranks_take has found it */
    int diverged; /* the next one has a time that is not finite */
    uint64_t cancel_from; /* as the ranks are told */
    int beside, turn; /* carriers of the group that share out the ranks of this host, and how many ranks have come so far */
    int carriers, place; /* of the group, and which of them this is */
    int in_order; /* all are known by distinct numbers */
    rank_t *all;  /* by number */
    double listened; /* to the sockets, last; s */
    int listener, folder, memory, held; /* descriptors; the folders, and the file held, are locked while this process lives */
    char directory[108], path[108];
    char scratch[2][160]; /* for files of the program's MPI, and for its shared memory; "": there is none */
    char token[MPIDATA_CARRIED_TOKEN];
    const mpidata_plan *plan;
    const char *plan_text;
    char who[128];
    char mark[4200], group_mark[40]; /* what all processes of the program have in their environment; group_mark "": of
                                        another carrier on this host, which ends them */
    uint64_t sample_bytes; /* with the constants, each as long as may be */
    /* Layout of the memory of each. */
    uint64_t parameters_at, slots_at, slot_bytes, values_at, values_bytes, bytes;
    uint32_t slots;
    int published;           /* descriptor of memory with what is published, -1: none ... */
    int64_t version;         /* ... of this version */
    mpidata_questions *questions; /* to inference ranks, of all; NULL: none was asked yet */
    asking_t *left;          /* of ranks that are gone, while MPI may read their questions */
} ranks_t;

/* What a carrier knows of the ranks that have come to it; the first of its group goes by the sum. */
typedef struct {
    int64_t orders;  /* of the first carrier, which it has carried out */
    int64_t samples; /* that all its ranks have committed, in this start of the program; INT64_MAX: it has no ranks */
    int32_t attached, left, lost; /* lost: closed their connection without mpidata_finalize */
    int32_t asks[MPIDATA_CARRIED_ERROR]; /* by MPIDATA_CARRIED_NEXT etc., how many ask for it */
    int32_t ahead;   /* have committed a sample that others have not, and ask for nothing */
    int32_t in_order; /* as in ranks_t */
    int64_t least, greatest; /* of the numbers */
    int32_t ended;   /* the processes of all have, as far as they can be seen */
    char silent[160]; /* why the program has to be ended; "": it need not */
    char words[480];  /* the last ones of a rank */
    char reason[MPIDATA_CARRIED_SENTENCE]; /* of those that give up */
} view_t;

/* What all carriers of a group do at the same point, as calls of libmpidata are collective. */
enum {
    ORDER_TAKE = 1,  /* a simulation from the scheduler */
    ORDER_START,     /* text: token; the ranks of another start of the program may come */
    ORDER_SEND,      /* number: up to so many samples of this start */
    ORDER_NEXT,      /* answer MPIDATA_CARRIED_NEXT, and likewise: */
    ORDER_FAIL,      /* text: reason */
    ORDER_FAIL_TRY,  /* text: reason */
    ORDER_FINALIZE,
    ORDER_REFRESH,
    ORDER_OVER,      /* the job is stopping */
    ORDER_END,       /* end the ranks here */
    ORDER_GIVE_BACK, /* text: how the program has ended; the simulation is to be tried again */
    ORDER_CLEAR,     /* forget the ranks */
    ORDER_LEAVE
};

typedef struct {
    int32_t kind;
    int64_t number;
    char text[MPIDATA_CARRIED_SENTENCE];
} order_t;

/* The carriers of a group, one for each host of the program or more. carriers.c */
typedef struct {
    MPI_Comm comm;
    int size, rank;
    int here, index;    /* carriers on this host, and which of them this is */
    char *hosts;        /* of all, once each: "node1,node2" */
    int64_t orders;     /* the first one: given, the others: carried out */
    view_t *views;      /* of all others, at the first one; else [0] is what was told last */
    const view_t *mine; /* at the first one */
    MPI_Request telling;
} carriers_t;

int carriers_open(carriers_t *carriers, MPI_Comm group);
/* To all others, which carry them out in their order. */
int carriers_order(carriers_t *carriers, const order_t *order);
int carriers_next_order(carriers_t *carriers, order_t *order, int *came);
/* Tell the first one what this one knows, or hear what the others do. */
int carriers_tell(carriers_t *carriers, view_t *mine); /* which is kept */
/* The sum of what all know; room: where it may be made. Until the next carriers_tell. */
const view_t *carriers_sum(const carriers_t *carriers, view_t *room);
/* The last call, of all: no message of the others may be left when the group's communicator is freed. */
int carriers_close(carriers_t *carriers);

/* socket.c: the folder, and the socket in it, at which the ranks come in. index: of this carrier, among those of its group
 * on this host. */
int socket_open(ranks_t *ranks, int group, int index);
void socket_close(ranks_t *ranks);
void socket_clean(const ranks_t *ranks); /* remove what the program's MPI has left */
/* End what a carrier of this run on this host has left behind that died together with its mpidata-rank. */
void socket_sweep(const ranks_t *ranks);
int socket_renew_token(ranks_t *ranks); /* for another start of the program */

/* ranks.c */
void ranks_lay_out(ranks_t *ranks);
void ranks_forget(ranks_t *ranks); /* those of a start that is over; MPI must not read from their memory any more */
/* Take connections, farewells and requests. Returns NULL, or a sentence on a rank that does what none may do. */
const char *ranks_take(ranks_t *ranks, double now);
int ranks_attached(const ranks_t *ranks);
int ranks_have_ended(const ranks_t *ranks); /* the processes of all, as far as they can be seen */
void ranks_view(const ranks_t *ranks, view_t *view); /* all but `orders` and `silent` */
/* Slot of a rank: its head, with the blocks behind it, and its values. */
const mpidata_carried_sample *ranks_slot(const ranks_t *ranks, const rank_t *rank, uint64_t number, const char **values);
void ranks_give_back(rank_t *rank, uint64_t released);
void ranks_answer(rank_t *rank, int status, const char *sentence);
void ranks_wake(rank_t *rank);
/* Memory to share, mapped here, which can neither shrink nor grow; its descriptor, or -1. */
int ranks_make_memory(const char *name, uint64_t bytes, void **mapped);
/* A message through its socket, with a descriptor if it is not -1; whether it has left. */
int ranks_send(const rank_t *rank, const void *data, size_t bytes, int memory);
void ranks_stop(ranks_t *ranks);              /* tell them that the job is stopping */
void ranks_cancel(ranks_t *ranks);            /* tell them that the simulation is cancelled, and from which sample on */
void ranks_sleep(ranks_t *ranks, int asleep); /* this process is about to, or does no more */
int ranks_have_news(const ranks_t *ranks);    /* in their memory, since ranks_take */
int ranks_poll(const ranks_t *ranks, struct pollfd *polled); /* room for 1 + ranks->n; returns how many */

/* memory.c: MPIDATA_ERR_MEMORY, where what is to be shared with the ranks is more than there is. */
int memory_check(const ranks_t *ranks);
/* Give each rank that asks, and has another version, memory with this one. */
int memory_share(ranks_t *ranks, const mpidata_contents *published);

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
    paths_t fill, link;         /* within it: as they were found when the job began */
    char opens[MPIDATA_MARK_MAX], closes[MPIDATA_MARK_MAX]; /* what stands around a name */
    int keep_failed, is_apart; /* is_apart: `in` was given, and is a folder of this run in one that the user has named */
    long long simulation, by_try;
    char path[4096]; /* of the present copy, "": none */
} case_t;

int case_read(case_t *case_, const char *run);
void case_name(case_t *case_, long long simulation, long long by_try, int group); /* of a copy: launch/rank/plan.c, too */
/* Copy it; values: "name=value". */
int case_make(case_t *case_, long long simulation, long long by_try, int group, char **values);
void case_end(case_t *case_, int failed); /* remove the copy, or keep it */
void case_end_of_group(case_t *case_, int group); /* as failed, what a carrier that was killed has left; -1: of all groups */
/* Do that for a group that has no carrier, where these arguments say so; returns the exit status, -1: they do not.
 * --make-case, --end-case or --failed-case RUN GROUP name=value... ; --end-cases RUN GROUP, by the parent of a carrier that
 * has ended in any way, and with -1 by `mpidata run` at its end. case.c, too */
int spawned_case(int argc, char **argv);

/* sending.c */
/* Whether several ranks have put all of a field in the next sample, as where their launcher is not that of their MPI; what:
 * the beginning of a sentence about it. */
int ranks_put_the_same(const ranks_t *ranks, char *what, size_t size);
/* Send samples that all ranks have committed, until there are so many of this start. */
int send_samples(ranks_t *ranks, int64_t up_to);
/* Give the slots back from which MPI reads no more. */
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
    int pending;   /* it was taken for a program that has not been started, or has not asked yet */
    int open;      /* the program runs it */
    int over;      /* there are no more simulations, or the job is stopping */
    int finalized; /* all ranks of the program have */
    int whole;     /* all have attached */
    int took;      /* a simulation, in this start */
    int fruitless; /* starts in a row in which that was not so */
    int64_t began_at; /* samples of this start that were sent before the present simulation */
    int left;      /* ORDER_LEAVE has come */
    int waits;     /* the program's rank 0 did for an answer, when its time was counted last ... */
    double counted; /* ... which was then; s */
    double over_since; /* when questions were first found to have nobody who answers; s, 0: not yet */
    double began, gone_since, ended_since, left_since, looked, continued;
    double start_timeout_s; /* as in the plan, which is there until mpidata_finalize */
    mpidata_backoff backoff;
} carrier_t;

/* orders.c */
int give_order(carrier_t *carrier, int kind, int64_t number, const char *text); /* and carry it out; by the first carrier */
int carry_out(carrier_t *carrier, const order_t *order);
void answer_each(carrier_t *carrier); /* where the job is stopping: each rank leaves where it is */

/* questions.c: what ranks ask inference ranks. Of a carrier_t: take questions, answer them, and let MPI move them. */
int questions_serve(void *carrier);
int questions_have_news(const ranks_t *ranks); /* in the memory of the ranks */
int questions_open(const ranks_t *ranks);      /* is any under way? */
void questions_count_wait(carrier_t *carrier); /* for which rank 0 has waited since then, or questions_serve */
void questions_leave(ranks_t *ranks, rank_t *rank); /* it is gone: nobody waits for its answers */
void questions_close(ranks_t *ranks);

/* serving.c: what every carrier does, again and again. */
int look(carrier_t *carrier); /* at the ranks, the other carriers and the scheduler */
int rest(carrier_t *carrier, int under_way); /* sleep until there is something to do */
void hurry(carrier_t *carrier, double now);

/* ending.c */
int refuse(const carrier_t *carrier, int status, const char *what, const char *advice); /* ends the job */
int end_job(int status); /* with the last error, which another try would meet again */

/* first.c */
int lead(carrier_t *carrier);
/* Does what has launched the ranks not end, though they have, for long? */
int outlives_ranks(carrier_t *carrier, int ended, double now);
/* Why the program has to be ended that goes on although its ranks have finalized; NULL: it need not, yet. */
const char *goes_on_after_ranks(carrier_t *carrier, int have_left, double now);

#endif

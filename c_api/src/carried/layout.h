/* The memory that one rank of a carried program shares with its carrier, and their messages over the socket.
 *
 * The carrier makes the memory (a memfd, sealed so that it can neither shrink nor grow) and sends its descriptor. It holds
 * only numbers of fixed widths, and no lock: each word has one writer. Either side may die at any point, or write anything:
 * the other side keeps private copies of what it needs, and checks the rest each time.
 *
 * A rank fills the slots in order and counts the samples that it has committed; the carrier sends from the slots, and counts
 * those that it has given back. All else is a request, which the carrier answers after the samples before it. A side that goes
 * to sleep sets a flag first, and is woken by a byte through the socket.
 *
 * Published arrays come in separate memory, one for each version, whose descriptor the carrier sends with such a byte before
 * its answer. A question also has separate memory (question/in_memory.h), which the carrier makes when the rank requests room,
 * and which later questions reuse. Each place for questions belongs to the rank until it has asked, and then to the carrier
 * until that has answered: inputs are sent from it, and outputs are received in it, without a copy. */
#ifndef MPIDATA_CARRIED_LAYOUT_H
#define MPIDATA_CARRIED_LAYOUT_H

#include <stdint.h>

#include "wire/wire.h"

#define MPIDATA_CARRIER_VARIABLE "MPIDATA_CARRIER" /* "<path of the socket>:<token of this start of the program>" */
#define MPIDATA_CARRIED_MAGIC UINT32_C(0x4d504331)
#define MPIDATA_CARRIED_VERSION 7u

enum { MPIDATA_CARRIED_TOKEN = 32, MPIDATA_CARRIED_SENTENCE = 1024, MPIDATA_CARRIED_LINE = 64, MPIDATA_CARRIED_QUESTIONS = 8 };

/* Launchers' variables for the number of a process; the first one that is set counts. */
#define MPIDATA_CARRIED_NUMBER_VARIABLES(each, last)                                                                        \
    each("OMPI_COMM_WORLD_RANK") each("PMIX_RANK") each("PMI_RANK") each("MV2_COMM_WORLD_RANK") each("PALS_RANKID") \
    last("SLURM_PROCID")

/* The first message of a rank. */
typedef struct {
    uint32_t magic, version;
    char token[MPIDATA_CARRIED_TOKEN];
    int64_t number; /* of the rank in its program, from its launcher; -1: unknown */
} mpidata_carried_hello;

enum { MPIDATA_CARRIED_REFUSED = 1, MPIDATA_CARRIED_ELSEWHERE = 2 };

/* The answer, with the memory's descriptor; else `sentence`: why the rank is refused, or the path of the socket of another
 * carrier, which waits for it. */
typedef struct {
    uint32_t magic, version;
    uint64_t bytes; /* of the memory */
    uint32_t refused;
    uint32_t unused;
    char sentence[MPIDATA_CARRIED_SENTENCE];
} mpidata_carried_welcome;

enum {
    MPIDATA_CARRIED_NEXT = 1,
    MPIDATA_CARRIED_FAIL = 2,     /* reason: why the simulation is abandoned */
    MPIDATA_CARRIED_FAIL_TRY = 3, /* reason: why this try of it is abandoned */
    MPIDATA_CARRIED_FINALIZE = 4,
    MPIDATA_CARRIED_REFRESH = 5,
    MPIDATA_CARRIED_ERROR = 6     /* reason: the sentence with which the job ends */
};

/* Bytes through the socket; both wake, and tell to which memory a descriptor that comes with them belongs. */
enum { MPIDATA_CARRIED_PUBLISHED = 0, MPIDATA_CARRIED_ROOM = 1 };

/* A place for questions: the words that the rank writes ... */
typedef struct {
    uint64_t wants; /* bytes of memory */
    uint64_t asked; /* questions asked here in total */
} mpidata_carried_question;

/* ... and those that the carrier writes. */
typedef struct {
    uint64_t room;     /* bytes of the memory whose descriptor it has sent last; 0: none yet */
    uint64_t answered; /* questions answered in total ... */
    int32_t status;    /* ... and the status of the last one: MPIDATA_SUCCESS, or MPIDATA_END if nobody answers */
    uint32_t unused;
    int64_t version;   /* of the weights */
} mpidata_carried_answer;

/* The beginning of the memory. */
typedef struct {
    uint32_t magic, version;
    uint64_t bytes;
    uint64_t plan_at, plan_bytes; /* the text of the plan, which ends with 0 */
    uint64_t parameters_at;       /* doubles, of the current simulation, in the plan's order */
    uint64_t slots_at, slot_bytes;
    uint64_t values_at;           /* of a slot's values, within the slot, after its head and blocks */
    uint64_t values_bytes;
    uint32_t slots, blocks;       /* blocks: at most, of one slot */
    char who[128];                /* the rank of the job, in a sentence */
    /* From here on, the carrier writes. */
    __attribute__((aligned(MPIDATA_CARRIED_LINE))) uint64_t released; /* slots given back in total */
    uint32_t answered;            /* number of the last answered request ... */
    int32_t status;               /* ... and its status */
    int64_t simulation;
    uint64_t cancel_from;         /* sample of this start, from 1, from which on the simulation is cancelled; 0: it is not */
    uint32_t stopping;            /* the job is stopping */
    uint32_t carrier_sleeps;
    uint64_t published;           /* bytes of the published arrays (contents/contents.h), whose descriptor precedes an answer; 0: none */
    mpidata_carried_answer answers[MPIDATA_CARRIED_QUESTIONS];
    char sentence[MPIDATA_CARRIED_SENTENCE]; /* of an error */
    /* From here on, the rank writes. */
    __attribute__((aligned(MPIDATA_CARRIED_LINE))) uint64_t committed; /* slots filled in total */
    uint32_t request;             /* number of the last one */
    uint32_t kind;
    uint32_t rank_sleeps;
    uint32_t beats;               /* signs of life */
    uint32_t waits;               /* for an answer */
    uint32_t unused;
    mpidata_carried_question questions[MPIDATA_CARRIED_QUESTIONS];
    char reason[MPIDATA_CARRIED_SENTENCE]; /* without a request: the last words of a rank that is about to end */
} mpidata_carried;

/* The beginning of a slot; its blocks follow. */
typedef struct {
    double time;
    uint32_t n_blocks;
    uint32_t unused;
} mpidata_carried_sample;

typedef struct {
    mpidata_block block;
    uint64_t at; /* of the values, of the declared dtype, within the slot's values */
    uint64_t map_at; /* likewise, of the indices of its map */
} mpidata_carried_block;

_Static_assert(sizeof(mpidata_carried_sample) == 16 && sizeof(mpidata_carried_block) == 128, "both sides must agree");
_Static_assert(sizeof(mpidata_carried_hello) == 48 && sizeof(mpidata_carried_welcome) == 1048, "both sides must agree");
_Static_assert(sizeof(mpidata_carried) == 2816, "both sides must agree");

/* Words that the other side accesses concurrently: data that was written before a word is seen with it. */
#define MPIDATA_CARRIED_GET(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)
#define MPIDATA_CARRIED_SET(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELEASE)

#endif

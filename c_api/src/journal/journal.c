#include "journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "containers/array.h"
#include "job/run_files.h"

static const char FIX[] = "Replay the run with the programs and the job file that it had.";

static int open_file(const char *run, int trainer, const char *mode, FILE **file) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/" MPIDATA_RUN_JOURNAL "/trainer-%04d", run, trainer) >= (int)sizeof path)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "The path of the run folder %.200s... is too long.", run);
    *file = fopen(path, mode);
    if (*file) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Cannot open the journal %s: %s.", path, strerror(errno));
}

enum { RANDOM_EVICTIONS = 1, VERSION = 2 }; /* in version 1 a reservoir evicted any sample that had been drawn */

static void header(const mpidata_plan *plan, int version, int trainer, char *text, size_t size) {
    (void)snprintf(text, size, "mpidata-journal %d trainer %d of %d\n", version, trainer, plan->trainers);
}

static int damaged(const mpidata_journal *journal, int64_t line) {
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Line %lld of a journal of %s cannot be read. The run cannot be replayed.",
                         (long long)line, journal->plan->replay);
}

static int parse_sample(const mpidata_journal *journal, const char *line, mpidata_journal_entry *entry) {
    int length = 0;
    int n = sscanf(line, "s %" SCNd64 " %" SCNd64 " %" SCNx64 "%n", &entry->simulation, &entry->step, &entry->hash, &length);
    return n == 3 && line[length] == '\n' && entry->simulation >= 0 && entry->simulation < journal->plan->simulations &&
           entry->step >= 0 && entry->step < MPIDATA_STEPS_MAX;
}

static int parse_draw(const char *line, mpidata_journal_entry *entry) {
    int length = 0;
    return sscanf(line, "d %" SCNd64 "%n", &entry->count, &length) == 1 && line[length] == '\n' && entry->count > 0;
}

static int parse_cancel(const mpidata_journal *journal, const char *line, int64_t *simulation) {
    int length = 0;
    return sscanf(line, "c %" SCNd64 "%n", simulation, &length) == 1 && line[length] == '\n' && *simulation >= 0 &&
           *simulation < journal->plan->simulations;
}

/* Read the next entry. An incomplete last line was being written when the run was killed. */
static int advance(mpidata_journal *journal) {
    char line[128];
    mpidata_journal_entry *next = &journal->next;
    memset(next, 0, sizeof *next);
    int64_t cancelled;
    journal->since = mpidata_now();
    do {
        journal->line++;
        if (!fgets(line, sizeof line, journal->replayed) || !strchr(line, '\n'))
            return ferror(journal->replayed) || !feof(journal->replayed) ? damaged(journal, journal->line) : MPIDATA_SUCCESS;
    } while (*line == MPIDATA_JOURNAL_CANCEL && parse_cancel(journal, line, &cancelled));
    next->kind = line[0];
    int good = next->kind == MPIDATA_JOURNAL_SAMPLE ? parse_sample(journal, line, next)
               : next->kind == MPIDATA_JOURNAL_DRAW ? parse_draw(line, next)
                                                    : !strcmp(line, "e\n") || !strcmp(line, "o\n");
    return good ? MPIDATA_SUCCESS : damaged(journal, journal->line);
}

static int no_memory(const mpidata_journal *journal) {
    return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the journal of %s.", journal->plan->replay);
}

static mpidata_cancelled *cancelled_one(const mpidata_journal *journal, int64_t simulation) {
    for (int64_t i = 0; i < journal->n_cancelled; i++)
        if (journal->cancelled[i].simulation == simulation) return &journal->cancelled[i];
    return NULL;
}

static int add_cancelled(mpidata_journal *journal, int64_t simulation) {
    if (cancelled_one(journal, simulation)) return MPIDATA_SUCCESS;
    if (!mpidata_array_reserve(&journal->cancelled, &journal->cancelled_allocated, journal->n_cancelled + 1, 4, sizeof *journal->cancelled))
        return no_memory(journal);
    journal->cancelled[journal->n_cancelled++] = (mpidata_cancelled){.simulation = simulation};
    journal->unsaid++;
    return MPIDATA_SUCCESS;
}

static int add_step(mpidata_journal *journal, mpidata_cancelled *to, int64_t step) {
    if (!mpidata_array_reserve(&to->steps, &to->allocated, to->n + 1, 16, sizeof *to->steps)) return no_memory(journal);
    to->steps[to->n++] = step;
    to->left++;
    return MPIDATA_SUCCESS;
}

static int by_number(const void *one, const void *other) {
    const int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

/* Find out which simulations were cancelled, and then which of their steps had come. */
static int read_cancelled(mpidata_journal *journal) {
    char line[128];
    int64_t simulation;
    mpidata_journal_entry entry;
    const long begin = ftell(journal->replayed);
    while (fgets(line, sizeof line, journal->replayed))
        if (*line == MPIDATA_JOURNAL_CANCEL && parse_cancel(journal, line, &simulation)) MPIDATA_TRY(add_cancelled(journal, simulation));
    if (begin < 0 || fseek(journal->replayed, begin, SEEK_SET)) return damaged(journal, journal->line);
    while (journal->n_cancelled && fgets(line, sizeof line, journal->replayed)) {
        mpidata_cancelled *of = *line == MPIDATA_JOURNAL_SAMPLE && parse_sample(journal, line, &entry) ? cancelled_one(journal, entry.simulation) : NULL;
        if (of) MPIDATA_TRY(add_step(journal, of, entry.step));
    }
    for (int64_t i = 0; i < journal->n_cancelled; i++)
        if (journal->cancelled[i].n) qsort(journal->cancelled[i].steps, (size_t)journal->cancelled[i].n, sizeof(int64_t), by_number);
    return fseek(journal->replayed, begin, SEEK_SET) ? damaged(journal, journal->line) : MPIDATA_SUCCESS;
}

int mpidata_journal_drops(const mpidata_journal *journal, int64_t simulation, int64_t step) {
    const mpidata_cancelled *of = journal->n_cancelled ? cancelled_one(journal, simulation) : NULL;
    return of && (!of->n || !bsearch(&step, of->steps, (size_t)of->n, sizeof step, by_number));
}

int64_t mpidata_journal_next_cancelled(mpidata_journal *journal) {
    for (int64_t i = 0; i < journal->n_cancelled && journal->unsaid; i++) {
        mpidata_cancelled *of = &journal->cancelled[i];
        if (of->left || of->said) continue;
        of->said = 1;
        journal->unsaid--;
        return of->simulation;
    }
    return -1;
}

/* Find out how many steps each simulation has, if the file is complete. */
static int read_ends(mpidata_journal *journal) {
    char line[128];
    int whole = 0;
    const long begin = ftell(journal->replayed);
    mpidata_journal_entry entry;
    journal->ends = calloc((size_t)journal->plan->simulations + 1, sizeof *journal->ends);
    if (!journal->ends) return no_memory(journal);
    while (!whole && fgets(line, sizeof line, journal->replayed)) {
        whole = *line == MPIDATA_JOURNAL_END;
        if (*line == MPIDATA_JOURNAL_SAMPLE && parse_sample(journal, line, &entry) &&
            entry.step >= journal->ends[entry.simulation]) journal->ends[entry.simulation] = entry.step + 1;
    }
    if (!whole) free(journal->ends);
    if (!whole) journal->ends = NULL;
    return begin < 0 || fseek(journal->replayed, begin, SEEK_SET) ? damaged(journal, journal->line) : MPIDATA_SUCCESS;
}

int mpidata_journal_lacks(const mpidata_journal *journal, int64_t simulation, int64_t step) {
    return journal->ends && step >= journal->ends[simulation];
}

static int check_header(mpidata_journal *journal, int trainer) {
    const mpidata_plan *plan = journal->plan;
    char ours[128], earlier[128], theirs[128];
    header(plan, VERSION, trainer, ours, sizeof ours);
    header(plan, RANDOM_EVICTIONS, trainer, earlier, sizeof earlier);
    journal->line = 1;
    if (!fgets(theirs, sizeof theirs, journal->replayed)) return damaged(journal, 1);
    if (!strcmp(theirs, ours)) return MPIDATA_SUCCESS;
    if (strcmp(theirs, earlier)) return damaged(journal, 1);
    if (plan->policy != MPIDATA_POLICY_RESERVOIR) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "%s was run by an earlier version of mpidata, whose reservoir replaced other samples. Replay it with "
                         "that version.",
                         plan->replay);
}

int mpidata_journal_open(mpidata_journal *journal, const mpidata_plan *plan, int trainer) {
    char mine[128];
    journal->plan = plan;
    header(plan, VERSION, trainer, mine, sizeof mine);
    if (plan->journal) {
        MPIDATA_TRY(open_file(plan->run, trainer, "we", &journal->written));
        (void)fputs(mine, journal->written);
        MPIDATA_TRY(mpidata_journal_flush(journal));
    }
    if (!plan->replay) return MPIDATA_SUCCESS;
    MPIDATA_TRY(open_file(plan->replay, trainer, "re", &journal->replayed));
    MPIDATA_TRY(check_header(journal, trainer));
    const size_t n = (size_t)plan->simulations + 1;
    journal->groups = malloc(n * sizeof *journal->groups);
    if (!journal->groups) return no_memory(journal);
    for (size_t i = 0; i < n; i++) journal->groups[i] = -1;
    MPIDATA_TRY(read_cancelled(journal));
    MPIDATA_TRY(read_ends(journal));
    return advance(journal);
}

void mpidata_journal_close(mpidata_journal *journal) {
    if (journal->written) (void)fclose(journal->written);
    if (journal->replayed) (void)fclose(journal->replayed);
    journal->written = journal->replayed = NULL;
    free(journal->ends);
    free(journal->groups);
    journal->groups = NULL;
    for (int64_t i = 0; i < journal->n_cancelled; i++) free(journal->cancelled[i].steps);
    free(journal->cancelled);
    journal->ends = NULL;
    journal->cancelled = NULL;
    journal->n_cancelled = 0;
}

int mpidata_journal_flush(mpidata_journal *journal) {
    if (!journal->written || (!fflush(journal->written) && !ferror(journal->written))) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "The journal in %s cannot be written: %s. Make room, or remove 'journal' from the job file.",
                         journal->plan->run, strerror(errno));
}

/* Eight bytes at a time, mixed by multiplication. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    for (size_t at = 0; at < n; at += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, (const char *)bytes + at, n - at < sizeof word ? n - at : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Computed once for all samples with them. */
static uint64_t hash_constants(const mpidata_plan *plan, mpidata_try_constants *constants) {
    uint64_t hash = 1;
    for (int f = 0; f < plan->n_fields && !constants->hash; f++)
        hash = hash_bytes(hash, constants->values[f], mpidata_constants_bytes(constants, plan, f));
    if (!constants->hash) constants->hash = hash;
    return constants->hash;
}

static uint64_t hash_sample(const mpidata_slots *slots, const mpidata_slot *slot) {
    const mpidata_plan *plan = slots->plan;
    uint64_t hash = hash_bytes(1, slot->time, sizeof *slot->time);
    hash = hash_bytes(hash, slot->parameters, (size_t)plan->n_parameters * sizeof *slot->parameters);
    for (int f = 0; f < plan->n_fields; f++)
        hash = hash_bytes(hash, mpidata_slot_field(slots, slot, f),
                          (size_t)plan->fields[f].elements * plan->fields[f].element_size);
    hash = hash_bytes(hash, slot->parts.numbers, (size_t)plan->n_numbers * sizeof *slot->parts.numbers);
    for (int i = 0; i < slot->parts.n; i++)
        hash = hash_bytes(hash, slot->parts.list[i].values, mpidata_block_bytes(plan, &slot->parts.list[i].block));
    if (slot->constants) hash = hash_bytes(hash, &(uint64_t){hash_constants(plan, slot->constants)}, sizeof hash);
    return hash;
}

int mpidata_journal_sample(mpidata_journal *journal, const mpidata_slots *slots, int64_t number) {
    if (!journal->written && !journal->replayed) return MPIDATA_SUCCESS;
    const mpidata_slot *slot = slots->slots[number];
    uint64_t hash = hash_sample(slots, slot);
    long long simulation = *slot->simulation, step = *slot->step;
    if (journal->written) (void)fprintf(journal->written, "s %lld %lld %016" PRIx64 "\n", simulation, step, hash);
    if (!journal->replayed) return MPIDATA_SUCCESS;
    mpidata_cancelled *cancelled = journal->n_cancelled ? cancelled_one(journal, simulation) : NULL;
    if (cancelled) cancelled->left--;
    if (hash == journal->next.hash) return advance(journal);
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "Simulation %lld, step %lld has other values than in the replayed run, %s. %s",
                         simulation, step, journal->plan->replay, FIX);
}

int mpidata_journal_cancel(mpidata_journal *journal, int64_t simulation) {
    if (journal->written) (void)fprintf(journal->written, "%c %lld\n", MPIDATA_JOURNAL_CANCEL, (long long)simulation);
    return mpidata_journal_flush(journal);
}

int mpidata_journal_note(mpidata_journal *journal, int kind, int64_t count) {
    if (journal->written) (void)fprintf(journal->written, count ? "%c %lld\n" : "%c\n", kind, (long long)count);
    if (!journal->replayed) return MPIDATA_SUCCESS;
    if (kind == MPIDATA_JOURNAL_DRAW && count != journal->next.count)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Batches have %lld samples, but %lld in the replayed run, %s. %s",
                             (long long)count, (long long)journal->next.count, journal->plan->replay, FIX);
    journal->draws += kind == MPIDATA_JOURNAL_DRAW;
    return advance(journal);
}

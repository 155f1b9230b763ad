#include "journal/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
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

static void header(const mpidata_plan *plan, int trainer, char *text, size_t size) {
    (void)snprintf(text, size, "mpidata-journal 1 trainer %d of %d\n", trainer, plan->trainers);
}

static int damaged(const mpidata_journal *journal, int64_t line) {
    return mpidata_error(MPIDATA_ERR_ARGUMENT, "Line %lld of a journal of %s cannot be read. It cannot be replayed.",
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

/* Read the next entry. A last line that is not whole was being written when the run was killed. */
static int advance(mpidata_journal *journal) {
    char line[128];
    mpidata_journal_entry *next = &journal->next;
    memset(next, 0, sizeof *next);
    journal->since = mpidata_now();
    journal->line++;
    if (!fgets(line, sizeof line, journal->replayed) || !strchr(line, '\n'))
        return ferror(journal->replayed) || !feof(journal->replayed) ? damaged(journal, journal->line) : MPIDATA_SUCCESS;
    next->kind = line[0];
    int good = next->kind == MPIDATA_JOURNAL_SAMPLE ? parse_sample(journal, line, next)
               : next->kind == MPIDATA_JOURNAL_DRAW ? parse_draw(line, next)
                                                    : !strcmp(line, "e\n") || !strcmp(line, "o\n");
    return good ? MPIDATA_SUCCESS : damaged(journal, journal->line);
}

/* Find out how many steps each simulation has, where the file tells of all: it has come to its end. */
static int read_ends(mpidata_journal *journal) {
    char line[128];
    int whole = 0;
    const long begin = ftell(journal->replayed);
    mpidata_journal_entry entry;
    journal->ends = calloc((size_t)journal->plan->simulations + 1, sizeof *journal->ends);
    if (!journal->ends) return mpidata_error(MPIDATA_ERR_MEMORY, "Out of memory for the journal of %s.", journal->plan->replay);
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

int mpidata_journal_open(mpidata_journal *journal, const mpidata_plan *plan, int trainer) {
    char mine[128], theirs[128];
    journal->plan = plan;
    header(plan, trainer, mine, sizeof mine);
    if (plan->journal) {
        MPIDATA_TRY(open_file(plan->run, trainer, "we", &journal->written));
        (void)fputs(mine, journal->written);
        MPIDATA_TRY(mpidata_journal_flush(journal));
    }
    if (!plan->replay) return MPIDATA_SUCCESS;
    MPIDATA_TRY(open_file(plan->replay, trainer, "re", &journal->replayed));
    journal->line = 1;
    if (!fgets(theirs, sizeof theirs, journal->replayed) || strcmp(mine, theirs)) return damaged(journal, 1);
    MPIDATA_TRY(read_ends(journal));
    return advance(journal);
}

void mpidata_journal_close(mpidata_journal *journal) {
    if (journal->written) (void)fclose(journal->written);
    if (journal->replayed) (void)fclose(journal->replayed);
    journal->written = journal->replayed = NULL;
    free(journal->ends);
    journal->ends = NULL;
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

/* Once for all samples with them. */
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
    if (hash == journal->next.hash) return advance(journal);
    return mpidata_error(MPIDATA_ERR_ARGUMENT,
                         "Simulation %lld, step %lld has other values than in the run that is replayed, %s. %s",
                         simulation, step, journal->plan->replay, FIX);
}

int mpidata_journal_note(mpidata_journal *journal, int kind, int64_t count) {
    if (journal->written) (void)fprintf(journal->written, count ? "%c %lld\n" : "%c\n", kind, (long long)count);
    if (!journal->replayed) return MPIDATA_SUCCESS;
    if (kind == MPIDATA_JOURNAL_DRAW && count != journal->next.count)
        return mpidata_error(MPIDATA_ERR_ARGUMENT, "Batches have %lld samples, but %lld in the run that is replayed, %s. %s",
                             (long long)count, (long long)journal->next.count, journal->plan->replay, FIX);
    journal->draws += kind == MPIDATA_JOURNAL_DRAW;
    return advance(journal);
}

/* The journal is read back entry by entry, changed bits are reported, and other files are refused. */
#define _POSIX_C_SOURCE 200809L
#include "journal/journal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "example_plan.h"

static char run[] = "/tmp/mpidata-journal-XXXXXX", file[128];
static mpidata_plan plan;
static mpidata_slots slots;

static int64_t sample(int64_t simulation, int64_t step, float value) {
    int64_t number = mpidata_slots_take(&slots, -1);
    const mpidata_slot *slot = slots.slots[number];
    memset(slot->page->memory, 0, slots.one.bytes);
    *slot->simulation = simulation;
    *slot->step = step;
    memcpy(mpidata_slot_field(&slots, slot, 0), &value, sizeof value);
    return number;
}

static void write_one(void) {
    mpidata_journal journal = {0};
    plan.journal = 1;
    CHECK(!mpidata_journal_open(&journal, &plan, 1));
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(3, 7, 1.5f)));
    CHECK(!mpidata_journal_note(&journal, MPIDATA_JOURNAL_DRAW, 4));
    CHECK(!mpidata_journal_note(&journal, MPIDATA_JOURNAL_END, 0));
    mpidata_journal_close(&journal);
    plan.journal = 0;
}

static void replay_it(void) {
    mpidata_journal journal = {0};
    CHECK(!mpidata_journal_open(&journal, &plan, 1));
    CHECK(journal.next.kind == MPIDATA_JOURNAL_SAMPLE && journal.next.simulation == 3 && journal.next.step == 7);
    CHECK(mpidata_journal_sample(&journal, &slots, sample(3, 7, 1.5000001f)) == MPIDATA_ERR_ARGUMENT);
    CHECK(strstr(mpidata_last_error(), "Simulation 3, step 7 has other values"));
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(3, 7, 1.5f)));
    CHECK(journal.next.kind == MPIDATA_JOURNAL_DRAW && journal.next.count == 4 && journal.draws == 0);
    CHECK(mpidata_journal_note(&journal, MPIDATA_JOURNAL_DRAW, 5) == MPIDATA_ERR_ARGUMENT);
    CHECK(!mpidata_journal_note(&journal, MPIDATA_JOURNAL_DRAW, 4));
    CHECK(journal.next.kind == MPIDATA_JOURNAL_END);
    CHECK(!mpidata_journal_note(&journal, MPIDATA_JOURNAL_END, 0));
    CHECK(journal.next.kind == MPIDATA_JOURNAL_STOPS);
    mpidata_journal_close(&journal);
}

/* A cancelled simulation is complete once its samples that came are in the buffer; no more of it is needed. */
static void what_was_cancelled(void) {
    mpidata_journal journal = {0};
    char *replay = plan.replay;
    plan.journal = 1;
    plan.replay = NULL;
    CHECK(!mpidata_journal_open(&journal, &plan, 1));
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(3, 7, 1)) && !mpidata_journal_cancel(&journal, 3));
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(2, 1, 1)) && !mpidata_journal_cancel(&journal, 4));
    CHECK(!mpidata_journal_note(&journal, MPIDATA_JOURNAL_END, 0));
    mpidata_journal_close(&journal);
    plan.journal = 0;
    plan.replay = replay;
    CHECK(!mpidata_journal_open(&journal, &plan, 1) && journal.unsaid == 2);
    CHECK(mpidata_journal_next_cancelled(&journal) == 4 && mpidata_journal_next_cancelled(&journal) == -1);
    CHECK(mpidata_journal_drops(&journal, 3, 8) && mpidata_journal_drops(&journal, 3, 0) && !mpidata_journal_drops(&journal, 3, 7));
    CHECK(mpidata_journal_drops(&journal, 4, 0) && !mpidata_journal_drops(&journal, 2, 9));
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(3, 7, 1)));
    CHECK(mpidata_journal_next_cancelled(&journal) == 3 && mpidata_journal_next_cancelled(&journal) == -1 && !journal.unsaid);
    CHECK(journal.next.kind == MPIDATA_JOURNAL_SAMPLE && journal.next.simulation == 2);
    CHECK(!mpidata_journal_sample(&journal, &slots, sample(2, 1, 1)) && journal.next.kind == MPIDATA_JOURNAL_END);
    mpidata_journal_close(&journal);
}

static int opened_with(const char *text) {
    mpidata_journal journal = {0};
    FILE *written = fopen(file, "w");
    CHECK(written && fputs(text, written) >= 0 && !fclose(written));
    int status = mpidata_journal_open(&journal, &plan, 1), kind = journal.next.kind;
    mpidata_journal_close(&journal);
    return status ? -1 : kind;
}

#define EARLIER "mpidata-journal 1 trainer 1 of 2\n"
#define HEADER "mpidata-journal 2 trainer 1 of 2\n"

static void refuse(void) {
    CHECK(opened_with(HEADER "s 9 0 00000000000000ff\n") == MPIDATA_JOURNAL_SAMPLE);
    CHECK(opened_with(HEADER "o\n") == MPIDATA_JOURNAL_OVER);
    CHECK(opened_with(HEADER "s 9 0 0000") == MPIDATA_JOURNAL_STOPS); /* it was killed here */
    const char *const bad[] = {"", "mpidata-journal 2 trainer 0 of 2\n", "mpidata-journal 3 trainer 1 of 2\n",
                               HEADER "s 10 0 ff\n", HEADER "s -1 0 ff\n", HEADER "s 0 -1 ff\n",
                               HEADER "s 0 99999999999999 ff\n", HEADER "s 0 0\n", HEADER "s 0 0 ff more\n",
                               HEADER "d 0\n", HEADER "d\n", HEADER "end\n", HEADER "x\n", HEADER "\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) CHECK(opened_with(bad[i]) == -1);
}

/* Only the reservoir evicted other samples in that version. */
static void of_an_earlier_version(void) {
    const int policy = plan.policy;
    plan.policy = MPIDATA_POLICY_FIRO;
    CHECK(opened_with(EARLIER "o\n") == MPIDATA_JOURNAL_OVER);
    plan.policy = MPIDATA_POLICY_RESERVOIR;
    CHECK(opened_with(HEADER "o\n") == MPIDATA_JOURNAL_OVER);
    CHECK(opened_with(EARLIER "o\n") == -1 && strstr(mpidata_last_error(), "by an earlier version of mpidata"));
    plan.policy = policy;
}

int main(void) {
    char folder[64];
    CHECK(mkdtemp(run));
    (void)snprintf(folder, sizeof folder, "%s/journal", run);
    (void)snprintf(file, sizeof file, "%s/trainer-0001", folder);
    CHECK(!mkdir(folder, 0700));
    CHECK(!mpidata_plan_parse(example_plan, &plan) && !mpidata_slots_open(&slots, &plan));
    free(plan.run);
    plan.run = strdup(run);
    write_one();
    plan.replay = strdup(run);
    replay_it();
    what_was_cancelled();
    refuse();
    of_an_earlier_version();
    (void)unlink(file);
    (void)rmdir(folder);
    (void)rmdir(run);
    mpidata_slots_close(&slots);
    mpidata_plan_free(&plan);
    return 0;
}

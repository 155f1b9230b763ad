/* Samples passed from one trainer to another arrive unchanged, and messages that are not samples are refused. */
#include "receive/giving/handed.h"

#include <string.h>

#include "check.h"
#include "wire/plan.h"

static const char text[] =
    "mpidata-plan 1\nrun /run\nfolder /folder\nworld 4\ntrainers 2\ngroups 1\nranks_per_group 1\nin_flight 4\nsimulations 10\n"
    "validation 0\npolicy fifo\ncapacity 100\ntail drop\nparameter alpha\nparameter beta\nlength nodes 0\nlength edges 9\n"
    "field box uint8 1 3\nfield xy float32 2 nodes 2\nfield ends int64 2 2 edges\nfield u float64 1 nodes\nfield mark int32 0\n"
    "index ends nodes 0\nconstant xy\noptional u\noptional mark\n";

enum { BOX, XY, ENDS, U, MARK, FIELDS };

static mpidata_plan plan;

static const uint8_t box[] = {1, 2, 3};
static const float xy[] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f};
static const int64_t ends[] = {0, 1, 2, 0};
static const double u[] = {7.0, 8.0, 9.0};
static const int32_t mark = 5;

/* A sample of 3 nodes and 2 edges, with or without u and mark. */
static mpidata_slot *fill(mpidata_slots *slots, int with_u, int with_mark) {
    const void *const fields[FIELDS] = {box, xy, ends, u, &mark};
    const int64_t number = mpidata_slots_take(slots, -1);
    CHECK(number >= 0);
    mpidata_slot *slot = slots->slots[number];
    int64_t numbers[8] = {3, 2};
    numbers[plan.fields[U].given] = with_u;
    numbers[plan.fields[MARK].given] = with_mark;
    slot->parameters[0] = 0.25;
    slot->parameters[1] = -1.0;
    *slot->time = 1.75;
    *slot->simulation = 4;
    *slot->step = 11;
    CHECK(!mpidata_slot_fill_constants(slots, slot, fields, numbers, 2, 3, 4));
    CHECK(!mpidata_slot_fill(slots, slot, fields, numbers));
    return slot;
}

static mpidata_slot *unpack(mpidata_slots *slots, const int64_t *message) {
    const int64_t number = mpidata_slots_take(slots, -1);
    CHECK(number >= 0 && !mpidata_handed_unpack(slots, message, slots->slots[number]));
    return slots->slots[number];
}

static void they_come_as_they_were(void) {
    mpidata_slots from, to;
    int64_t words, values[4];
    const mpidata_handed_head *head;
    CHECK(!mpidata_slots_open(&from, &plan) && !mpidata_slots_open(&to, &plan));
    const mpidata_slot *sent = fill(&from, 1, 0);
    int64_t *message = mpidata_handed_pack(&from, sent, &words);
    CHECK(message && !mpidata_handed_check(&plan, message, words, &head));
    CHECK(head->simulation == 4 && head->step == 11 && head->by_try == 3);
    const mpidata_slot *came = unpack(&to, message), *again = unpack(&to, message);
    CHECK(*came->time == 1.75 && *came->simulation == 4 && *came->step == 11);
    CHECK(came->parameters[0] == 0.25 && came->parameters[1] == -1.0);
    CHECK(!memcmp(came->parts.numbers, sent->parts.numbers, (size_t)plan.n_numbers * sizeof *came->parts.numbers));
    CHECK(came->parts.numbers[plan.fields[U].given] == 1 && came->parts.numbers[plan.fields[MARK].given] == 0);
    CHECK(!memcmp(mpidata_slot_field(&to, came, BOX), box, sizeof box));
    CHECK(!memcmp(came->constants->values[XY], xy, sizeof xy));
    mpidata_parts_join_field(&came->parts, &plan, ENDS, (char *)values);
    CHECK(!memcmp(values, ends, sizeof ends));
    mpidata_parts_join_field(&came->parts, &plan, U, (char *)values);
    CHECK(!memcmp(values, u, sizeof u));
    CHECK(came->constants == again->constants && came->constants != sent->constants && to.constants.n == 1);
    free(message);
    mpidata_slots_close(&from);
    mpidata_slots_close(&to);
}

/* A message with a changed word, too short or too long, is refused or is a sample. */
static void what_is_none_is_refused(void) {
    static const int64_t odd[] = {0, 1, -1, -2, 9, 10, 1000, INT32_MAX, (int64_t)1 << 36, INT64_MAX, INT64_MIN};
    mpidata_slots slots;
    int64_t words;
    int refused = 0;
    const mpidata_handed_head *head;
    CHECK(!mpidata_slots_open(&slots, &plan));
    int64_t *message = mpidata_handed_pack(&slots, fill(&slots, 1, 1), &words);
    for (int64_t at = 0; at < words; at++)
        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
            int64_t *changed = malloc((size_t)words * sizeof *changed); /* exact, for AddressSanitizer */
            CHECK(changed);
            memcpy(changed, message, (size_t)words * sizeof *changed);
            changed[at] = odd[i];
            const int64_t number = mpidata_slots_take(&slots, -1);
            CHECK(number >= 0);
            if (mpidata_handed_check(&plan, changed, words, &head))
                refused++;
            else
                (void)mpidata_handed_unpack(&slots, changed, slots.slots[number]); /* indices may be out of range */
            mpidata_slots_give_back(&slots, number);
            free(changed);
        }
    CHECK(refused > 40);
    for (int64_t length = 0; length < words + 3; length++) {
        int64_t *cut = calloc((size_t)length + 1, sizeof *cut);
        CHECK(cut);
        memcpy(cut, message, (size_t)(length < words ? length : words) * sizeof *cut);
        CHECK(!mpidata_handed_check(&plan, cut, length, &head) == (length == words));
        free(cut);
    }
    free(message);
    mpidata_slots_close(&slots);
}

static void the_last_word(void) {
    const mpidata_handed_head *head;
    int64_t *message = mpidata_handed_pack_no_more();
    CHECK(message && !mpidata_handed_check(&plan, message, MPIDATA_HANDED_NO_MORE_WORDS, &head) && head->simulation == -1);
    CHECK(mpidata_handed_check(&plan, message, MPIDATA_HANDED_NO_MORE_WORDS - 1, &head));
    free(message);
}

int main(void) {
    CHECK(!mpidata_plan_parse(text, &plan));
    CHECK(plan.fields[XY].per_simulation && plan.fields[U].given >= 0);
    they_come_as_they_were();
    what_is_none_is_refused();
    the_last_word();
    mpidata_plan_free(&plan);
    return 0;
}

/* Pages of slots have the layout of a batch, and free pages are used again as a whole. */
#include "buffer/slots.h"

#include <stdint.h>
#include <string.h>

#include "check.h"
#include "example_plan.h"

enum { BATCH = 4 };

static mpidata_plan plan; /* float32 4 x 6, float64, uint8 2 x 3 x 4; 2 parameters */
static mpidata_slots slots;

static const mpidata_slot *at(int64_t number) { return slots.slots[number]; }

static void take_page(int64_t ahead, int64_t numbers[BATCH]) {
    for (int i = 0; i < BATCH; i++) {
        numbers[i] = mpidata_slots_take(&slots, ahead + i);
        CHECK(numbers[i] == numbers[0] + i && at(numbers[i])->page == at(numbers[0])->page);
        CHECK(at(numbers[i])->page->layout == &slots.batch && at(numbers[i])->index == i);
    }
}

static void give_back(const int64_t numbers[BATCH]) {
    for (int i = 0; i < BATCH; i++) mpidata_slots_give_back(&slots, numbers[i]);
}

static void one_by_one(void) {
    int64_t first = mpidata_slots_take(&slots, -1), second = mpidata_slots_take(&slots, 0);
    CHECK(first >= 0 && second >= 0 && first != second && at(first)->page != at(second)->page);
    for (int f = 0; f < plan.n_fields; f++) CHECK((uintptr_t)mpidata_slot_field(&slots, at(first), f) % 64 == 0);
    memset(at(first)->page->memory, 0xee, slots.one.bytes);
    memset(at(second)->page->memory, 0xdd, slots.one.bytes);
    CHECK(((unsigned char *)at(first)->page->memory)[slots.one.bytes - 1] == 0xee);
    mpidata_slots_give_back(&slots, first);
    mpidata_slots_give_back(&slots, second);
    CHECK(mpidata_slots_take(&slots, 0) == second && mpidata_slots_take(&slots, 0) == first);
    mpidata_slots_give_back(&slots, first);
    mpidata_slots_give_back(&slots, second);
}

static void layout(void) {
    int64_t page[BATCH];
    take_page(0, page);
    const char *memory = at(page[0])->page->memory;
    size_t after = 0;
    for (int f = 0; f < plan.n_fields; f++) {
        size_t bytes = (size_t)plan.fields[f].elements * plan.fields[f].element_size;
        CHECK(mpidata_slot_field(&slots, at(page[0]), f) == memory + after);
        for (int i = 1; i < BATCH; i++)
            CHECK(mpidata_slot_field(&slots, at(page[i]), f) == memory + after + (size_t)i * bytes);
        after += (BATCH * bytes + 63) & ~(size_t)63;
    }
    const mpidata_slot *last = at(page[BATCH - 1]);
    CHECK((const char *)at(page[0])->parameters == memory + after && last->parameters == at(page[0])->parameters + 6);
    CHECK(at(page[0])->time == at(page[0])->parameters + 8 && last->time == at(page[0])->time + 3);
    CHECK((void *)at(page[0])->step == (void *)(at(page[0])->time + 4) && last->step == at(page[0])->step + 3);
    CHECK(at(page[0])->simulation == at(page[0])->step + 4);
    CHECK((const char *)(last->simulation + 1) == memory + slots.batch.bytes);
    give_back(page);
}

static void pages_begin_where_batches_do(void) {
    int64_t page[BATCH], single = mpidata_slots_take(&slots, 3);
    CHECK(at(single)->page->layout == &slots.one);
    take_page(8, page);
    CHECK(at(mpidata_slots_take(&slots, 13))->page->layout == &slots.one);
    give_back(page);
}

static void a_page_is_used_again_as_a_whole(void) {
    int64_t first[BATCH], second[BATCH], third[BATCH];
    take_page(0, first);
    take_page(4, second);
    for (int i = 1; i < BATCH; i++) mpidata_slots_give_back(&slots, first[i]);
    take_page(8, third);
    CHECK(third[0] != first[0] && third[0] != second[0]);
    mpidata_slot *pinned = slots.slots[first[0]];
    pinned->pins = 2;
    mpidata_slots_give_back(&slots, first[0]);
    mpidata_slots_unpin(&slots, first[0]);
    int64_t fourth[BATCH], again[BATCH];
    take_page(0, fourth);
    CHECK(fourth[0] != first[0]);
    mpidata_slots_unpin(&slots, first[0]);
    take_page(0, again);
    CHECK(again[0] == first[0]);
}

/* A slot dropped while its page is being filled does not free the page. */
static void dropped_in_the_middle(void) {
    int64_t first = mpidata_slots_take(&slots, 0);
    mpidata_slots_give_back(&slots, first);
    int64_t second = mpidata_slots_take(&slots, 0);
    CHECK(second == first + 1 && at(second)->page == at(first)->page);
    for (int i = 2; i < BATCH; i++) (void)mpidata_slots_take(&slots, i);
    int64_t next = mpidata_slots_take(&slots, 0);
    CHECK(at(next)->page != at(first)->page);
}

int main(void) {
    CHECK(mpidata_plan_parse(example_plan, &plan) == MPIDATA_SUCCESS);
    CHECK(mpidata_slots_open(&slots, &plan) == 0);
    one_by_one();
    CHECK(mpidata_slots_batch(&slots, BATCH) == 0);
    layout();
    pages_begin_where_batches_do();
    a_page_is_used_again_as_a_whole();
    dropped_in_the_middle();
    mpidata_slots_close(&slots);
    mpidata_plan_free(&plan);
    return 0;
}

#include "python/constants.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/deadlines.h"
#include "buffer/copy.h"
#include "dtypes/convert.h"
#include "job/run_files.h"
#include "python/structures.h"
#include "contents/contents.h"
#include "question/description.h"
#include "wire/messages.h"
#include "wire/moments.h"
#include "wire/wire.h"

#define STATUS(name) {"status", #name, NULL, MPIDATA_##name, 0},
#define NUMBER(name) {"number", #name, NULL, MPIDATA_##name, 0},
#define TEXT(name) {"text", #name, MPIDATA_##name, 0, 0},
#define DTYPE(in_c, name, type, kind, in_mpi, moments) {"dtype", #name, kind, MPIDATA_##in_c, sizeof(type)},
#define HAS_STATISTICS(in_c, name, type, kind, in_mpi, moments) {"has_statistics", #name, NULL, MPIDATA_MOMENTS_##moments != 0, 0},
#define CONVERSION(from_c, to_c, from, to) {"conversion", #from, #to, 0, 0},

#define MEMBER(structure, field) (((structure *)0)->field)
#define WHOLE(structure) {#structure, "", NULL, 0, sizeof(structure)},
#define OF_KIND(structure, field, kind) \
    {#structure, #field, kind, offsetof(structure, field), sizeof MEMBER(structure, field)},
#define POINTER(structure, field) OF_KIND(structure, field, "P")
/* An array is treated as a pointer here, with the kind of its elements. */
#define FIELD(structure, field)                                                                                        \
    OF_KIND(structure, field, _Generic(MEMBER(structure, field),                                                       \
            int32_t: "i", uint32_t: "I", int64_t: "q", uint64_t: "Q", double: "d",                                     \
            int64_t *: "q", uint64_t *: "Q", char *: "c", const int64_t *: "*q",                          \
            mpidata_statistics: "mpidata_statistics", mpidata_usage: "mpidata_usage"))

static const mpidata_constant constants[] = {
    MPIDATA_DTYPES(DTYPE)
    MPIDATA_DTYPES(HAS_STATISTICS)
    MPIDATA_CONVERSIONS(CONVERSION)
    STATUS(SUCCESS) STATUS(END) STATUS(ERR_ORDER) STATUS(ERR_ARGUMENT) STATUS(ERR_FIELD) STATUS(ERR_SHAPE)
    STATUS(ERR_DTYPE) STATUS(ERR_BLOCK) STATUS(ERR_PARAMETER) STATUS(ERR_JOB) STATUS(ERR_MPI) STATUS(ERR_MEMORY)
    STATUS(ERR_WIRE) STATUS(ERR_AGAIN) STATUS(CHECKPOINT) STATUS(ERR_DIED) STATUS(MEET) STATUS(CANCELLED) STATUS(ERR_DEVICE)
    NUMBER(MAX_NDIM) NUMBER(MAX_TEXT) NUMBER(NAME_MAX) NUMBER(ITEM_MAX) NUMBER(PLAN_CHANNELS) NUMBER(WHOLE_FIELD) NUMBER(NO_STATISTICS) NUMBER(STEPS_MAX)
    NUMBER(ROLE_SCHEDULER) NUMBER(ROLE_TRAINER) NUMBER(ROLE_SOLVER) NUMBER(ROLE_LOADER) NUMBER(ROLE_SERVER) NUMBER(ROLE_INFERENCE)
    NUMBER(ROLE_LEARNER) NUMBER(ROLE_MATE)
    NUMBER(QUESTION_MAGIC) NUMBER(PARCEL_QUESTION) NUMBER(PUBLISHED_NEWER)
    NUMBER(EVENT_NEXT) NUMBER(EVENT_FINALIZED) NUMBER(EVENT_HELD) NUMBER(EVENT_STATUS) NUMBER(EVENT_REPORT)
    NUMBER(EVENT_STOP) NUMBER(EVENT_GOODBYE) NUMBER(EVENT_ERROR) NUMBER(EVENT_CHECKPOINT_WANTED)
    NUMBER(EVENT_CHECKPOINT_WRITTEN) NUMBER(EVENT_DIED) NUMBER(EVENT_RECORD_STOPPED) NUMBER(EVENT_LOSSES)
    NUMBER(EVENT_READY) NUMBER(EVENT_LACKS) NUMBER(EVENT_ADOPTED) NUMBER(EVENT_CANCEL)
    NUMBER(ANSWER_READY) NUMBER(ANSWER_BUSY) NUMBER(ANSWER_JOINED) NUMBER(ANSWER_FAILED)
    NUMBER(GIVEN_UP) NUMBER(TRY_FAILED) NUMBER(WRITE_FAILED) NUMBER(LOOP_OVER)
    NUMBER(PLACE_BUFFER) NUMBER(PLACE_WAITING) NUMBER(PLACE_RETIRED) NUMBER(PLACE_VALIDATION) NUMBER(PLACE_NONE)
    NUMBER(LOADER_LOST) NUMBER(LOADER_JOINED) NUMBER(LOADER_RETIRES) NUMBER(LOADER_RESTS)
    NUMBER(AFTER_ERROR_MS) NUMBER(STATUS_EVERY_MS) NUMBER(LOOK_EVERY_MS) NUMBER(AFTER_OVER_MS) NUMBER(FINALIZE_MS)
    NUMBER(PMIX_SENDS_MS) NUMBER(ABORT_MS) NUMBER(SAY_HELD_UP_MS) NUMBER(BEFORE_DEATH_MS) NUMBER(DYING_MS)
    NUMBER(PIECE_SMALL) NUMBER(BLOCK_SMALL) NUMBER(ALONG_MAX) NUMBER(BLOCK_ANYWHERE) NUMBER(BUNDLE_MAX) NUMBER(BUNDLE_WORTH)
    NUMBER(BLOCKS_MAX) NUMBER(BOUNDARY) NUMBER(PAST_CACHE_WORTH) NUMBER(COPY_LARGE) NUMBER(CACHE_UNKNOWN)
    NUMBER(HUGE_PAGE) NUMBER(LARGE)
    TEXT(RUN_PLAN) TEXT(RUN_CASE) TEXT(RUN_EXITS) TEXT(RUN_LATE) TEXT(RUN_ALIVE) TEXT(VANISHED) TEXT(RUN_LOGS)
    TEXT(RUN_IDLE) TEXT(RUN_HOSTS) TEXT(RUN_JOURNAL) TEXT(RUN_OVER) TEXT(RUN_SUMMARY) TEXT(RUN_GIVEN_UP) TEXT(RUN_WAITING)
    TEXT(JOINS) TEXT(TRAINS) TEXT(CARRIED_MARK) TEXT(CARRIED_GROUP)
    WHOLE(mpidata_statistics)
    FIELD(mpidata_statistics, received) FIELD(mpidata_statistics, validation) FIELD(mpidata_statistics, duplicates)
    FIELD(mpidata_statistics, drawn) FIELD(mpidata_statistics, fill) FIELD(mpidata_statistics, capacity)
    FIELD(mpidata_statistics, bytes) FIELD(mpidata_statistics, windows)
    WHOLE(mpidata_snapshot)
    FIELD(mpidata_snapshot, number) FIELD(mpidata_snapshot, batch) FIELD(mpidata_snapshot, batches_of_all)
    FIELD(mpidata_snapshot, count) FIELD(mpidata_snapshot, steps) FIELD(mpidata_snapshot, unseen)
    FIELD(mpidata_snapshot, next_retired) FIELD(mpidata_snapshot, capacity) FIELD(mpidata_snapshot, added)
    FIELD(mpidata_snapshot, random) FIELD(mpidata_snapshot, ledger_words) FIELD(mpidata_snapshot, statistics)
    WHOLE(mpidata_record_figures)
    FIELD(mpidata_record_figures, queued) FIELD(mpidata_record_figures, written)
    FIELD(mpidata_record_figures, skipped) FIELD(mpidata_record_figures, slowed_s)
    WHOLE(mpidata_taken)
    POINTER(mpidata_taken, parcel) FIELD(mpidata_taken, peer) FIELD(mpidata_taken, news) FIELD(mpidata_taken, dataset)
    FIELD(mpidata_taken, kind) FIELD(mpidata_taken, status) FIELD(mpidata_taken, more) FIELD(mpidata_taken, number)
    FIELD(mpidata_taken, n_parts) FIELD(mpidata_taken, offsets) FIELD(mpidata_taken, sizes)
    POINTER(mpidata_taken, memory) FIELD(mpidata_taken, bytes) FIELD(mpidata_taken, at)
    WHOLE(mpidata_array)
    POINTER(mpidata_array, name) POINTER(mpidata_array, values) FIELD(mpidata_array, dtype) FIELD(mpidata_array, ndim)
    FIELD(mpidata_array, shape)
    WHOLE(mpidata_contents)
    FIELD(mpidata_contents, magic) FIELD(mpidata_contents, described) FIELD(mpidata_contents, version)
    FIELD(mpidata_contents, n) FIELD(mpidata_contents, bytes)
    WHOLE(mpidata_published_array)
    FIELD(mpidata_published_array, name) FIELD(mpidata_published_array, dtype) FIELD(mpidata_published_array, ndim)
    FIELD(mpidata_published_array, shape) FIELD(mpidata_published_array, at)
    WHOLE(mpidata_description)
    FIELD(mpidata_description, magic) FIELD(mpidata_description, n_in) FIELD(mpidata_description, n_out)
    FIELD(mpidata_description, unused) FIELD(mpidata_description, rows)
    WHOLE(mpidata_described)
    FIELD(mpidata_described, name) FIELD(mpidata_described, dtype) FIELD(mpidata_described, ndim)
    FIELD(mpidata_described, shape)
    WHOLE(mpidata_usage)
    FIELD(mpidata_usage, memory_kb) FIELD(mpidata_usage, cpu_us)
    WHOLE(mpidata_event)
    FIELD(mpidata_event, kind) FIELD(mpidata_event, role) FIELD(mpidata_event, index) FIELD(mpidata_event, rank)
    FIELD(mpidata_event, closed.simulation) FIELD(mpidata_event, closed.steps) FIELD(mpidata_event, closed.next_us)
    FIELD(mpidata_event, closed.start_us) FIELD(mpidata_event, closed.room_us) FIELD(mpidata_event, closed.total_us)
    FIELD(mpidata_event, closed.usage) FIELD(mpidata_event, closed.failed) FIELD(mpidata_event, held.simulation)
    FIELD(mpidata_event, held.by_try) FIELD(mpidata_event, status.statistics) FIELD(mpidata_event, status.starved)
    FIELD(mpidata_event, status.full) FIELD(mpidata_event, status.ended) FIELD(mpidata_event, status.all_drawn)
    FIELD(mpidata_event, status.waited_us) FIELD(mpidata_event, status.asks_us) FIELD(mpidata_event, status.idle)
    FIELD(mpidata_event, status.usage) FIELD(mpidata_event, report.bytes)
    FIELD(mpidata_event, stop.failed) FIELD(mpidata_event, lacks.simulation) FIELD(mpidata_event, adopted.changes)
    FIELD(mpidata_event, wanted.batch) FIELD(mpidata_event, written.number) FIELD(mpidata_event, written.batch)
    FIELD(mpidata_event, written.bytes) FIELD(mpidata_event, written.failed) FIELD(mpidata_event, died.rank_in_group)
    FIELD(mpidata_event, losses.count) FIELD(mpidata_event, ready.role) FIELD(mpidata_event, ready.group)
    FIELD(mpidata_event, ready.answer) FIELD(mpidata_event, cancel.count)
    FIELD(mpidata_event, text)
    WHOLE(mpidata_losses)
    FIELD(mpidata_losses, simulation) FIELD(mpidata_losses, count) FIELD(mpidata_losses, not_finite)
    FIELD(mpidata_losses, sum) FIELD(mpidata_losses, max) FIELD(mpidata_losses, last) FIELD(mpidata_losses, excess)
    FIELD(mpidata_losses, difficulty)
    WHOLE(mpidata_moments)
    FIELD(mpidata_moments, count) FIELD(mpidata_moments, mean) FIELD(mpidata_moments, m2)
    FIELD(mpidata_moments, least) FIELD(mpidata_moments, greatest) FIELD(mpidata_moments, not_finite)
    {NULL, NULL, NULL, 0, 0},
};

const mpidata_constant *mpidata_constants(void) { return constants; }

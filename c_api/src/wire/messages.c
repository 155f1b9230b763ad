#include "wire/messages.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

_Static_assert(MPIDATA_LOSSES_MAX * sizeof(mpidata_losses) < sizeof((mpidata_event){0}.text), "losses have its room");

enum { REPORT_HEAD = sizeof(int64_t) + sizeof(double), REPORT_NAME_MAX = 127 };

int mpidata_reports_add(mpidata_event *event, const char *name, int64_t batch, double value) {
    size_t length = strnlen(name, REPORT_NAME_MAX), at = (size_t)event->report.bytes;
    if (at + REPORT_HEAD + length + 1 >= sizeof event->text) return 0;
    memcpy(event->text + at, &batch, sizeof batch);
    memcpy(event->text + at + sizeof batch, &value, sizeof value);
    memcpy(event->text + at + REPORT_HEAD, name, length);
    event->text[at + REPORT_HEAD + length] = '\0';
    event->report.bytes += (int32_t)(REPORT_HEAD + length + 1);
    return 1;
}

size_t mpidata_event_bytes(const mpidata_event *event) {
    if (event->kind == MPIDATA_EVENT_REPORT) return offsetof(mpidata_event, text) + (size_t)event->report.bytes;
    if (event->kind == MPIDATA_EVENT_LOSSES)
        return offsetof(mpidata_event, text) + (size_t)event->losses.count * sizeof(mpidata_losses);
    if (event->kind == MPIDATA_EVENT_CANCEL) return offsetof(mpidata_event, text) + (size_t)event->cancel.count * sizeof(int64_t);
    return offsetof(mpidata_event, text) + strnlen(event->text, sizeof event->text - 1) + 1;
}

/* Whether a lost rank of this role can be replaced by another one. */
static int is_replaced(int role) {
    return role == MPIDATA_ROLE_SOLVER || role == MPIDATA_ROLE_LOADER || role == MPIDATA_ROLE_INFERENCE || role == MPIDATA_ROLE_LEARNER;
}

static int may_send(int role, int kind) {
    switch (kind) {
    case MPIDATA_EVENT_NEXT:
    case MPIDATA_EVENT_FINALIZED:
        return is_replaced(role);
    case MPIDATA_EVENT_ERROR: return role != MPIDATA_ROLE_SCHEDULER;
    case MPIDATA_EVENT_DIED: return 0; /* the scheduler's own */
    default: return role == MPIDATA_ROLE_TRAINER && kind >= MPIDATA_EVENT_NEXT && kind <= MPIDATA_EVENT_CANCEL;
    }
}

static int in_range(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

static int usage_fits(const mpidata_usage *usage) { return usage->memory_kb >= 0 && usage->cpu_us >= 0; }

/* Whether no part is longer than the total time. */
static int times_fit(const mpidata_event *event) {
    int64_t all = event->closed.total_us, rest = all;
    const int64_t parts[] = {event->closed.next_us, event->closed.start_us, event->closed.room_us};
    if (!in_range(all, 0, INT64_MAX / 4)) return 0;
    for (int i = 0; i < 3; rest -= parts[i++])
        if (!in_range(parts[i], 0, rest)) return 0;
    return 1;
}

static int losses_fit(const mpidata_event *event, int bytes, int64_t last) {
    int n = event->losses.count;
    if (n < 1 || n > MPIDATA_LOSSES_MAX || (size_t)bytes != mpidata_event_bytes(event)) return 0;
    for (int i = 0; i < n; i++) {
        mpidata_losses of;
        memcpy(&of, event->text + (size_t)i * sizeof of, sizeof of);
        if (!in_range(of.simulation, 0, last) || !in_range(of.count, 0, INT64_MAX / 4)) return 0;
        if (!in_range(of.not_finite, of.count ? 0 : 1, INT64_MAX / 4)) return 0;
        if (!isfinite(of.sum) || !isfinite(of.max) || !isfinite(of.last)) return 0;
        if (!isfinite(of.excess) || of.excess < 0 || !isfinite(of.difficulty)) return 0;
    }
    return 1;
}

static int reports_fit(const mpidata_event *event, int bytes) {
    int n = event->report.bytes;
    if (n < 1 || n >= (int)sizeof event->text || (size_t)bytes != mpidata_event_bytes(event)) return 0;
    for (int at = 0; at < n;) {
        int64_t batch;
        if (n - at <= REPORT_HEAD) return 0;
        memcpy(&batch, event->text + at, sizeof batch);
        const char *end = memchr(event->text + at + REPORT_HEAD, 0, (size_t)(n - at - REPORT_HEAD));
        if (!end || batch < 0) return 0;
        at = (int)(end + 1 - event->text);
    }
    return 1;
}

static int cancel_fits(const mpidata_event *event, int bytes, int64_t last) {
    int n = event->cancel.count;
    if (n < 1 || n > MPIDATA_CANCEL_MAX || (size_t)bytes != mpidata_event_bytes(event)) return 0;
    for (int i = 0; i < n; i++) {
        int64_t simulation;
        memcpy(&simulation, event->text + (size_t)i * sizeof simulation, sizeof simulation);
        if (!in_range(simulation, 0, last)) return 0;
    }
    return 1;
}

static int spawned_fits(int role, int group) {
    return is_replaced(role) && in_range(group, 0, INT_MAX - 1);
}

int mpidata_event_fits(const mpidata_plan *plan, mpidata_event *event, int bytes, int role) {
    int64_t last = plan->simulations + plan->validation - 1;
    event->text[sizeof event->text - 1] = '\0'; /* reports, losses and ids end before it */
    if (bytes <= (int)offsetof(mpidata_event, text) || !may_send(role, event->kind)) return 0;
    switch (event->kind) {
    case MPIDATA_EVENT_NEXT:
    case MPIDATA_EVENT_FINALIZED:
        return in_range(event->closed.simulation, -1, last) && in_range(event->closed.steps, 0, MPIDATA_STEPS_MAX) &&
               times_fit(event) && usage_fits(&event->closed.usage);
    case MPIDATA_EVENT_HELD:
        return in_range(event->held.simulation, -1, last) && in_range(event->held.by_try, 0, MPIDATA_STEPS_MAX);
    case MPIDATA_EVENT_STATUS:
        return event->status.waited_us >= 0 && event->status.asks_us >= 0 && usage_fits(&event->status.usage);
    case MPIDATA_EVENT_CHECKPOINT_WRITTEN: return event->written.number > 0 && event->written.bytes >= 0;
    case MPIDATA_EVENT_REPORT: return reports_fit(event, bytes);
    case MPIDATA_EVENT_LOSSES: return losses_fit(event, bytes, last);
    case MPIDATA_EVENT_CANCEL: return cancel_fits(event, bytes, last);
    case MPIDATA_EVENT_READY:
        return spawned_fits(event->ready.role, event->ready.group) &&
               in_range(event->ready.answer, MPIDATA_ANSWER_READY, MPIDATA_ANSWER_FAILED);
    case MPIDATA_EVENT_LACKS: return in_range(event->lacks.simulation, 0, last);
    case MPIDATA_EVENT_ADOPTED: return in_range(event->adopted.changes, 1, mpidata_plan_most_changes(plan));
    default: return 1;
    }
}

static int order_fits(const mpidata_plan *plan, const mpidata_order *order) {
    switch (order->kind) {
    case MPIDATA_ORDER_EXPECT:
        return mpidata_plan_has(plan, order->expect.simulation) && in_range(order->expect.steps, 0, MPIDATA_STEPS_MAX);
    case MPIDATA_ORDER_TRAINERS: return order->trainers.number > 0 && in_range(order->trainers.count, 0, plan->trainers);
    case MPIDATA_ORDER_RELIEVE: return in_range(order->relieve.samples, 0, INT64_MAX / 4);
    case MPIDATA_ORDER_JOIN:
    case MPIDATA_ORDER_LOST:
    case MPIDATA_ORDER_GONE:
    case MPIDATA_ORDER_SERVES:
    case MPIDATA_ORDER_RETIRES:
    case MPIDATA_ORDER_RESTS:
    case MPIDATA_ORDER_PREPARE:
    case MPIDATA_ORDER_DISMISS: {
        int of_loader = order->kind >= MPIDATA_ORDER_SERVES && order->kind <= MPIDATA_ORDER_RESTS;
        if (!memchr(order->of_group.at, 0, sizeof order->of_group.at)) return 0;
        if (!in_range(order->of_group.members, 0, plan->trainers)) return 0;
        if (!in_range(order->of_group.place, 0, order->of_group.members ? order->of_group.members - 1 : 0)) return 0;
        if (of_loader && order->of_group.role != MPIDATA_ROLE_LOADER) return 0;
        return spawned_fits(order->of_group.role, order->of_group.group);
    }
    case MPIDATA_ORDER_TRAINER_LOST:
    case MPIDATA_ORDER_TRAINER_JOINED:
    case MPIDATA_ORDER_HANDS_OVER: return in_range(order->of_trainer.trainer, 0, plan->trainers - 1);
    case MPIDATA_ORDER_CANCEL:
        return mpidata_plan_has(plan, order->cancel.simulation) && order->cancel.simulation < plan->simulations &&
               in_range(order->cancel.group, -1, INT_MAX - 1) && in_range(order->cancel.closed, 0, 1);
    default: return order->kind >= MPIDATA_ORDER_EXPECT && order->kind <= MPIDATA_ORDER_PREPARE;
    }
}

int mpidata_order_check(const mpidata_plan *plan, const mpidata_order *order, int bytes) {
    if (bytes == (int)sizeof *order && order_fits(plan, order)) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "The scheduler sent an order (%d, %d bytes) that does not fit the job.",
                         bytes < (int)sizeof *order ? 0 : (int)order->kind, bytes);
}

int mpidata_ask_fits(const mpidata_ask *ask, int bytes) {
    return bytes == (int)sizeof *ask && ask->version >= 0 && (ask->waits == 0 || ask->waits == 1);
}

size_t mpidata_task_bytes(const mpidata_plan *plan) {
    const size_t changes = plan->trainers_at_least ? (1 + (size_t)mpidata_plan_most_changes(plan)) * sizeof(int32_t) : 0;
    return sizeof(mpidata_task) + (size_t)plan->n_parameters * sizeof(double) + changes;
}

int32_t *mpidata_task_changes(const mpidata_plan *plan, mpidata_task *task) {
    return (int32_t *)(task->parameters + plan->n_parameters);
}

int mpidata_task_fits(const mpidata_plan *plan, const mpidata_task *task, int bytes) {
    const size_t head = sizeof *task, whole = mpidata_task_bytes(plan);
    const size_t needed = bytes >= (int)head && task->kind == MPIDATA_TASK_NO_MORE ? head : whole;
    if (bytes >= (int)head && (size_t)bytes >= needed) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "The scheduler sent a task of %d bytes, of which %zu are missing.", bytes,
                         bytes < 0 ? needed : needed - (size_t)bytes);
}

/* Each trainer leaves at most once, and each spare joins at most once, before it leaves; known changes come first. */
static int changes_fit(const mpidata_plan *plan, const mpidata_task *task) {
    const int32_t *changes = (const int32_t *)(task->parameters + plan->n_parameters);
    int left = 0, joined = 0;
    if (!plan->trainers_at_least) return 1;
    if (!in_range(*changes, plan->n_changes, mpidata_plan_most_changes(plan))) return 0;
    for (int i = 1; i <= *changes; i++) {
        const int trainer = mpidata_change_trainer(changes[i]), joins = mpidata_change_joins(changes[i]);
        if (!in_range(trainer, joins ? plan->trainers - plan->trainer_spares : 0, plan->trainers - 1)) return 0;
        left += !joins;
        joined += joins;
        if (i <= plan->n_changes) {
            const mpidata_change *known = &plan->changes[i - 1];
            if (trainer != known->trainer || joins != known->joins) return 0;
        }
        for (int before = 1; before < i; before++)
            if (changes[before] == changes[i] || (joins && changes[before] == trainer)) return 0;
    }
    return left < plan->trainers && joined <= plan->trainer_spares;
}

int mpidata_task_check(const mpidata_plan *plan, const mpidata_task *task) {
    int runs = task->kind == MPIDATA_TASK_RUN && mpidata_plan_has(plan, task->simulation) &&
               task->validation == (task->simulation >= plan->simulations) && task->by_try > 0 && changes_fit(plan, task);
    if (runs || task->kind == MPIDATA_TASK_NO_MORE) return MPIDATA_SUCCESS;
    return mpidata_error(MPIDATA_ERR_WIRE, "The scheduler sent a task (%d, simulation %lld) that does not fit the job.",
                         (int)task->kind, (long long)task->simulation);
}

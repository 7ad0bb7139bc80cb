/* Live counters as one line of JSON, see docs/top.md. */
#define _GNU_SOURCE
#include "runtime/record/live.h"
#include "runtime/record/tracker.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define LIVE_VERSION 1

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* A list or an object that lacks something, because there was no memory, is none. */
static json_t *checked(json_t *value, bool failed)
{
    if (failed) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static json_t *kinds_json(const struct live_sample *sample)
{
    static const char *const names[LIVE_KINDS] = {
        "unknown", "parameter", "optimizer", "gradient", "activation", "workspace", "input"};
    json_t *kinds = json_object();
    bool failed = false;

    for (size_t i = 0; i < LIVE_KINDS; i++) {
        failed |= json_object_set_new(kinds, names[i], number(sample->kind_bytes[i])) != 0;
    }
    return checked(kinds, failed);
}

static json_t *times_json(const struct live_sample *sample)
{
    json_t *times = json_array();
    bool failed = false;

    for (size_t i = 0; i < sample->time_count; i++) {
        failed |= json_array_append_new(times, number(sample->times_ns[i])) != 0;
    }
    return checked(times, failed);
}

static json_t *stalls_json(const struct live_sample *sample)
{
    json_t *stalls = json_array();
    bool failed = false;

    for (size_t i = 0; i < sample->stall_count; i++) {
        const struct live_stall *stall = &sample->stalls[i];
        json_t *access = stall->access == UINT64_MAX ? json_null() : number(stall->access);

        failed |= json_array_append_new(stalls, json_pack("{s:o,s:s,s:s,s:o}", "access", access,
                                                          "op", stall->op, "replay", stall->replay,
                                                          "wait_ns", number(stall->wait_ns))) != 0;
    }
    return checked(stalls, failed);
}

/* The newest report as in a report file, without its lists. */
static json_t *report_of(const struct live_sample *sample)
{
    capu_report report = sample->report;

    if (sample->published_ns == 0) {
        return json_null();
    }
    report.label = sample->label;
    report.floor_op = sample->floor_op;
    report.plan_error = sample->plan_error;
    return report_json_counters(&report);
}

static json_t *context_json(struct live *live, uint64_t now_ns)
{
    const struct live_subject *subject = &live->subject;
    const struct live_sample *sample = live_newest(live);
    uint64_t since = sample->published_ns != 0 ? sample->published_ns : now_ns;
    uint64_t budget_bytes =
        sample->published_ns != 0 ? sample->report.budget_bytes : subject->budget_bytes;

    return json_pack(
        "{s:o,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "context",
        number(live->number), "device", subject->device, "mode", report_mode_name(subject->mode),
        "planner", subject->planner, "budget_bytes", number(budget_bytes), "d2h_bytes_per_s",
        number(subject->d2h_bytes_per_s), "h2d_bytes_per_s", number(subject->h2d_bytes_per_s),
        "held_bytes", number(sample->held_bytes), "age_ns",
        sample->published_ns != 0 ? number(now_ns > since ? now_ns - since : 0) : json_null(),
        "live_bytes", kinds_json(sample), "times_ns", times_json(sample), "stalls_iteration",
        number(sample->stalls_iteration), "stalls", stalls_json(sample), "report",
        report_of(sample));
}

/* The name of a program is any bytes; what is not plain ASCII becomes a question mark. */
static void program_name(char name[LIVE_NAME_BYTES])
{
    size_t length = 0;

    for (const char *from = program_invocation_short_name;
         *from != '\0' && length < LIVE_NAME_BYTES - 1; from++) {
        name[length++] = *from >= ' ' && *from <= '~' ? *from : '?';
    }
    name[length] = '\0';
}

char *live_json(struct live *first, uint64_t now_ns)
{
    char name[LIVE_NAME_BYTES];
    json_t *contexts = json_array();
    json_t *line;
    bool failed = contexts == NULL;
    char *text = NULL;

    for (struct live *live = first; live != NULL && !failed; live = live->next) {
        failed = json_array_append_new(contexts, context_json(live, now_ns)) != 0;
    }
    program_name(name);
    line = json_pack("{s:s,s:i,s:I,s:s,s:o}", "type", "top", "version", LIVE_VERSION, "pid",
                     (json_int_t)getpid(), "program", name, "contexts", checked(contexts, failed));
    if (line != NULL) {
        text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    }
    json_decref(line);
    return text;
}

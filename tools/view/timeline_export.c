/* Views as a trace for Perfetto, see timeline_export.h. */
#include "tools/view/timeline_export.h"

#include "tools/output/output.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>

/* Tracks of a process, in their order. Their numbers: see track_of. */
enum track {
    TRACK_PROCESS = 1,
    TRACK_ITERATIONS,
    TRACK_COMPUTE,
    TRACK_REPLAYS,
    TRACK_OUT,
    TRACK_IN,
    TRACK_HOST,
    TRACK_BUDGET,
    TRACK_HELD,
    TRACK_UNLIMITED,
    TRACK_ON_HOST,
    TRACK_KINDS, /* one per kind */
    TRACK_ROWS = TRACK_KINDS + VIEW_KIND_COUNT
};

static const char *const track_names[] = {
    [TRACK_ITERATIONS] = "iterations",
    [TRACK_COMPUTE] = "compute",
    [TRACK_REPLAYS] = "replays",
    [TRACK_OUT] = "out",
    [TRACK_IN] = "in",
    [TRACK_HOST] = "host",
    [TRACK_BUDGET] = "budget",
    [TRACK_HELD] = "device memory",
    [TRACK_UNLIMITED] = "unlimited run",
    [TRACK_ON_HOST] = "on host",
};

/* The processes share no numbers. Rows beyond the first of a kind come after all other tracks. */
static uint64_t track_of(enum view_source source, uint64_t track)
{
    return (uint64_t)(source + 1) << 48 | track;
}

static uint64_t moment(const struct timeline_export *export, uint64_t begin_ns, int64_t ns)
{
    int64_t at = (int64_t)(export->origin_ns + begin_ns) + ns;

    return at > 0 ? (uint64_t)at : 0;
}

static void describe_tracks(struct timeline_export *export, enum view_source source)
{
    struct perfetto *trace = &export->trace;
    uint64_t process = track_of(source, TRACK_PROCESS);

    if (export->is_described[source]) {
        return;
    }
    export->is_described[source] = true;
    perfetto_process(trace, process, (int32_t)source + 1, view_source_name(source));
    for (int track = TRACK_ITERATIONS; track <= TRACK_HOST; track++) {
        perfetto_track(trace, track_of(source, (uint64_t)track), process, track_names[track],
                       track);
    }
    for (int track = TRACK_BUDGET; track <= TRACK_ON_HOST; track++) {
        perfetto_counter(trace, track_of(source, (uint64_t)track), process, track_names[track],
                         track);
    }
}

/* "swap-out w1": as device/marks.h names ranges. Valid until the next call. */
static const char *slice_name(struct timeline_export *export, const char *kind, const char *name)
{
    export->name.length = 0;
    if (export->trace.status == CAPU_OK) {
        export->trace.status = string_buffer_format(&export->name, "%s %s", kind, name);
    }
    return export->trace.status == CAPU_OK ? export->name.data : "";
}

/* The first row that is free from then on, a new one if there is none. */
static uint64_t row_for(struct timeline_export *export, enum view_source source,
                        enum timeline_row_kind kind, uint64_t begin_ns, uint64_t end_ns)
{
    static const enum track tracks[TIMELINE_ROW_KINDS] = {[TIMELINE_COMPUTE] = TRACK_COMPUTE,
                                                          [TIMELINE_REPLAYS] = TRACK_REPLAYS,
                                                          [TIMELINE_OUT] = TRACK_OUT,
                                                          [TIMELINE_IN] = TRACK_IN,
                                                          [TIMELINE_HOST] = TRACK_HOST};
    struct timeline_rows *rows = &export->rows[source][kind];
    uint64_t track;
    size_t row = 0;

    while (row < rows->count && rows->ends_ns[row] > begin_ns) {
        row++;
    }
    track = track_of(source, row == 0 ? (uint64_t)tracks[kind]
                                      : TRACK_ROWS + row * TIMELINE_ROW_KINDS + (uint64_t)kind);
    if (row == rows->count) {
        if (!array_reserve(&rows->ends_ns, &rows->capacity, rows->count + 1,
                           sizeof(*rows->ends_ns))) {
            export->trace.status = CAPU_NO_HOST_MEMORY;
            return track;
        }
        rows->count++;
        if (row > 0) {
            perfetto_track(&export->trace, track, track_of(source, TRACK_PROCESS),
                           track_names[tracks[kind]], tracks[kind]);
        }
    }
    rows->ends_ns[row] = end_ns;
    return track;
}

/* The flow of a move; 0: it has only one end in this iteration. */
static uint64_t flow_of(const struct timeline_export *export, const struct view *view,
                        uint32_t move)
{
    if (move == VIEW_NONE || view->moves[move].back_op == VIEW_NONE ||
        (!view->moves[move].has_left && view->moves[move].copy_in == VIEW_NONE)) {
        return 0;
    }
    return export->flows + move + 1;
}

static void add_op(struct timeline_export *export, const struct view *view, uint64_t begin_ns,
                   const struct view_op *op, const uint64_t *flows, size_t flow_count)
{
    uint64_t begin = moment(export, begin_ns, op->begin_ns);
    uint64_t end = moment(export, begin_ns, op->end_ns);
    enum timeline_row_kind kind = op->is_replay ? TIMELINE_REPLAYS : TIMELINE_COMPUTE;
    size_t notes = 2;
    struct perfetto_slice slice = {
        .track = row_for(export, view->source, kind, begin, end),
        .begin_ns = begin,
        .end_ns = end,
        .category = op->is_replay ? "replay" : "op",
        .name = op->is_replay ? slice_name(export, "replay", op->name) : op->name,
        .flows = flows,
        .flow_count = flow_count,
        .ends_flows = !op->is_replay,
        .notes = {{.name = "op", .number = op->number}, {.name = "wait_ns", .number = op->wait_ns}},
    };

    if (op->wait_ns > 0) {
        slice.notes[notes++] =
            (struct perfetto_note){.name = "waited_for", .text = view_wait_name(op->wait)};
    }
    if (op->waited_ns > 0) {
        slice.notes[notes++] =
            (struct perfetto_note){.name = "waited_for_others_ns", .number = op->waited_ns};
    }
    if (op->segment[0] != '\0') {
        slice.notes[notes++] = (struct perfetto_note){.name = "segment", .text = op->segment};
    }
    perfetto_slice(&export->trace, &slice);
}

static int by_begin(const void *left, const void *right)
{
    const struct view_stay *a = *(const struct view_stay *const *)left;
    const struct view_stay *b = *(const struct view_stay *const *)right;

    return a->begin_ns != b->begin_ns ? (a->begin_ns < b->begin_ns ? -1 : 1)
           : a->tensor != b->tensor   ? (a->tensor < b->tensor ? -1 : 1)
                                      : 0;
}

static void add_copies(struct timeline_export *export, const struct view *view, uint64_t begin_ns)
{
    for (uint32_t i = 0; i < view->copy_count; i++) {
        const struct view_copy *copy = &view->copies[i];
        const char *kind = copy->direction == VIEW_OUT ? "swap-out" : "swap-in";
        uint64_t begin = moment(export, begin_ns, copy->begin_ns);
        uint64_t end = moment(export, begin_ns, copy->end_ns);
        uint64_t flow = flow_of(export, view, copy->move);
        struct perfetto_slice slice = {
            .track = row_for(export, view->source,
                             copy->direction == VIEW_OUT ? TIMELINE_OUT : TIMELINE_IN, begin, end),
            .begin_ns = begin,
            .end_ns = end,
            .category = kind,
            .name = slice_name(export, kind, view->tensors[copy->tensor].name),
            .flows = &flow,
            .flow_count = flow != 0,
            .notes = {{.name = "bytes", .number = copy->bytes},
                      {.name = "issued_before_op", .number = copy->issue}},
        };

        if (copy->wait_ns > 0) {
            slice.notes[2] =
                (struct perfetto_note){.name = "waited_for", .text = view_wait_name(copy->wait)};
        }
        perfetto_slice(&export->trace, &slice);
    }
}

/* Evictions without a copy take no time, and are where their memory became free. */
static void add_drops(struct timeline_export *export, const struct view *view, uint64_t begin_ns)
{
    for (uint32_t i = 0; i < view->move_count; i++) {
        const struct view_move *move = &view->moves[i];
        uint64_t flow = flow_of(export, view, i);
        struct perfetto_slice slice = {
            .track = track_of(view->source, TRACK_OUT),
            .begin_ns = moment(export, begin_ns, move->left_ns),
            .category = "drop",
            .is_instant = true,
            .flows = &flow,
            .flow_count = flow != 0,
            .notes = {{.name = "method", .text = view_method_name(move->method)}},
        };

        if (move->has_left && move->copy_out == VIEW_NONE) {
            slice.name = slice_name(export, "drop", view->tensors[move->tensor].name);
            perfetto_slice(&export->trace, &slice);
        }
    }
}

/* The op or replay that a flow reaches: first the replay, if any, then the back-access. */
static uint32_t reached_by(const struct view *view, const struct view_move *move, bool is_first)
{
    return is_first ? move->replay : view->op_of_number[move->back_op];
}

static void add_ops(struct timeline_export *export, const struct view *view, uint64_t begin_ns)
{
    uint32_t *first = calloc((size_t)view->op_count + 2, sizeof(*first));
    uint64_t *flows = malloc(((size_t)view->move_count * 2 + 1) * sizeof(*flows));

    if (first == NULL || flows == NULL) {
        export->trace.status = CAPU_NO_HOST_MEMORY;
        free(first);
        free(flows);
        return;
    }
    /* Sorted by op: counted, one place further than in the end, and then put in place. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < view->move_count * 2; k++) {
            uint64_t flow = flow_of(export, view, k / 2);
            uint32_t op = flow != 0 ? reached_by(view, &view->moves[k / 2], k % 2 == 0) : VIEW_NONE;

            if (op != VIEW_NONE && pass == 0) {
                first[op + 2]++;
            } else if (op != VIEW_NONE) {
                flows[first[op + 1]++] = flow;
            }
        }
        for (uint32_t i = 1; pass == 0 && i <= view->op_count; i++) {
            first[i + 1] += first[i];
        }
    }
    for (uint32_t i = 0; i < view->op_count; i++) {
        add_op(export, view, begin_ns, &view->ops[i], flows + first[i], first[i + 1] - first[i]);
    }
    free(first);
    free(flows);
}

/* Tensors while their contents are on the host only, and their bytes. */
static void add_host(struct timeline_export *export, const struct view *view, uint64_t begin_ns)
{
    const struct view_stay **stays = malloc(((size_t)view->stay_count + 1) * sizeof(*stays));
    size_t count = 0;

    if (stays == NULL) {
        export->trace.status = CAPU_NO_HOST_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        if (view->stays[i].state == VIEW_ON_HOST) {
            stays[count++] = &view->stays[i];
        }
    }
    qsort(stays, count, sizeof(*stays), by_begin);
    for (size_t i = 0; i < count; i++) {
        const struct view_tensor *tensor = &view->tensors[stays[i]->tensor];
        uint64_t begin = moment(export, begin_ns, stays[i]->begin_ns);
        uint64_t end = moment(export, begin_ns, stays[i]->end_ns);

        perfetto_slice(&export->trace,
                       &(struct perfetto_slice){
                           .track = row_for(export, view->source, TIMELINE_HOST, begin, end),
                           .begin_ns = begin,
                           .end_ns = end,
                           .category = "host",
                           .name = tensor->name,
                           .notes = {{.name = "bytes", .number = tensor->bytes}},
                       });
    }
    free(stays);
}

static void add_count(struct timeline_export *export, const struct view *view, uint64_t begin_ns,
                      uint64_t track, int64_t ns, uint64_t value)
{
    perfetto_count(&export->trace, track_of(view->source, track), moment(export, begin_ns, ns),
                   value);
}

struct change {
    int64_t ns;
    int64_t bytes;
};

static int by_change_time(const void *left, const void *right)
{
    int64_t a = ((const struct change *)left)->ns;
    int64_t b = ((const struct change *)right)->ns;

    return a < b ? -1 : a > b;
}

static void count_on_host(struct timeline_export *export, const struct view *view,
                          uint64_t begin_ns)
{
    struct change *changes = malloc(((size_t)view->stay_count * 2 + 1) * sizeof(*changes));
    size_t changed = 0;
    uint64_t bytes = 0;

    if (changes == NULL) {
        export->trace.status = CAPU_NO_HOST_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < view->stay_count; i++) {
        const struct view_stay *stay = &view->stays[i];
        int64_t each = (int64_t)view->tensors[stay->tensor].bytes;

        if (stay->state == VIEW_ON_HOST) {
            changes[changed++] = (struct change){stay->begin_ns, each};
            changes[changed++] = (struct change){stay->end_ns, -each};
        }
    }
    qsort(changes, changed, sizeof(*changes), by_change_time);
    if (changed == 0 || changes[0].ns > 0) {
        add_count(export, view, begin_ns, TRACK_ON_HOST, 0, 0);
    }
    for (size_t i = 0; i < changed; i++) {
        bytes += (uint64_t)changes[i].bytes;
        if (i + 1 == changed || changes[i + 1].ns != changes[i].ns) {
            add_count(export, view, begin_ns, TRACK_ON_HOST, changes[i].ns, bytes);
        }
    }
    free(changes);
}

/* A kind that no tensor has needs no track. */
static void describe_kinds(struct timeline_export *export, const struct view *view)
{
    for (uint32_t t = 0; t < view->tensor_count; t++) {
        const struct view_tensor *tensor = &view->tensors[t];
        uint64_t track = TRACK_KINDS + (uint64_t)tensor->kind;

        if (tensor->held_bytes > 0 && !export->has_kind[view->source][tensor->kind]) {
            export->has_kind[view->source][tensor->kind] = true;
            perfetto_counter(&export->trace, track_of(view->source, track),
                             track_of(view->source, TRACK_PROCESS), view_kind_name(tensor->kind),
                             (int32_t)track);
        }
    }
}

static void add_counters(struct timeline_export *export, const struct view *view, uint64_t begin_ns)
{
    describe_kinds(export, view);
    add_count(export, view, begin_ns, TRACK_BUDGET, 0, view->budget_bytes);
    for (uint32_t i = 0; i < view->sample_count; i++) {
        const struct view_sample *sample = &view->samples[i];

        add_count(export, view, begin_ns, TRACK_HELD, sample->begin_ns, sample->held_bytes);
        for (uint64_t kind = 0; kind < VIEW_KIND_COUNT; kind++) {
            if (export->has_kind[view->source][kind] &&
                (i == 0 || sample->by_kind[kind] != sample[-1].by_kind[kind])) {
                add_count(export, view, begin_ns, TRACK_KINDS + kind, sample->begin_ns,
                          sample->by_kind[kind]);
            }
        }
    }
    for (uint32_t i = 0; i < view->op_count; i++) {
        if (!view->ops[i].is_replay) {
            add_count(export, view, begin_ns, TRACK_UNLIMITED, view->ops[i].begin_ns,
                      view->ops[i].unlimited_bytes);
        }
    }
    count_on_host(export, view, begin_ns);
}

static void add_iteration(struct timeline_export *export, enum view_source source,
                          const char *label, uint64_t number, const char *mode, uint64_t begin_ns,
                          uint64_t time_ns)
{
    struct perfetto_slice slice = {
        .track = track_of(source, TRACK_ITERATIONS),
        .begin_ns = moment(export, begin_ns, 0),
        .end_ns = moment(export, begin_ns, (int64_t)time_ns),
        .category = "iteration",
        .name = slice_name(export, "iteration", label),
        .notes = {{.name = "mode", .text = mode}, {.name = "number", .number = number}},
    };

    describe_tracks(export, source);
    perfetto_slice(&export->trace, &slice);
}

static void find_origin(struct timeline_export *export, const struct view *view)
{
    int64_t earliest = 0;

    for (uint32_t i = 0; i < view->copy_count; i++) {
        earliest = view->copies[i].begin_ns < earliest ? view->copies[i].begin_ns : earliest;
    }
    export->has_origin = true;
    export->origin_ns = (uint64_t)-earliest;
}

void timeline_export_view(struct timeline_export *export, const struct view *view,
                          uint64_t begin_ns)
{
    if (!export->has_origin) {
        find_origin(export, view);
    }
    describe_tracks(export, view->source);
    if (view->source == VIEW_PLANNED) {
        add_iteration(export, VIEW_PLANNED, view->trace_name, view->iteration, view->mode, begin_ns,
                      view->time_ns);
    }
    add_copies(export, view, begin_ns);
    add_drops(export, view, begin_ns);
    add_ops(export, view, begin_ns);
    add_host(export, view, begin_ns);
    add_counters(export, view, begin_ns);
    export->flows += view->move_count;
}

void timeline_export_iteration(struct timeline_export *export, uint64_t number, const char *label,
                               const char *mode, uint64_t begin_ns, uint64_t time_ns)
{
    add_iteration(export, VIEW_MEASURED, label, number, mode, begin_ns, time_ns);
}

void timeline_export_discard(struct timeline_export *export)
{
    struct string_buffer text;

    (void)perfetto_finish(&export->trace, &text);
    string_buffer_finish(&text);
    string_buffer_finish(&export->name);
    for (size_t source = 0; source < 2; source++) {
        for (size_t kind = 0; kind < TIMELINE_ROW_KINDS; kind++) {
            free(export->rows[source][kind].ends_ns);
        }
    }
    *export = (struct timeline_export){0};
}

bool timeline_export_write(struct timeline_export *export, const char *path)
{
    struct string_buffer text;
    bool is_fine = perfetto_finish(&export->trace, &text) == CAPU_OK;

    if (is_fine) {
        is_fine = output_write(path, &text);
    } else {
        say("out of memory for the timeline");
    }
    string_buffer_finish(&text);
    timeline_export_discard(export);
    return is_fine;
}

/* One function per kind of change. Each names it, makes its trace, and hands both to
 * measure_variant(). */
#include "tools/predict/advice.h"

#include "base/printable.h"
#include "tools/output/output.h"
#include "tools/output/progress.h"
#include "tools/predict/predict.h"
#include "tools/predict/variant.h"

#include "policy/bound/bound_iteration.h"
#include "policy/model/timeline.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Gains below this share of the ideal are not worth a change. */
#define GAIN_MIN 1e-3
/* Splitting an op is worth it in any case if the floor falls to this share. */
#define FLOOR_SHARE 0.95
/* Groups of ops that are tried one by one. */
#define GROUPS_MAX 3

struct advising {
    struct advice_list *list;
    const struct subject *subject;
    uint64_t budget;
    enum plan_effort effort;
    uint64_t floor_bytes; /* what a split has to lower */
    bool *chosen;         /* per op */
    uint64_t *held;       /* per op: bytes that it wrote and that are alive at the peak */
};

/* Plans for a trace and a machine; keeps the text if that saves time, or lowers the floor where
   that counts, else releases it. A change for which there is no plan does not help. */
static capu_status measure_index(struct advising *advising, const struct trace_index *trace_index,
                                 const struct machine *machine, uint64_t budget,
                                 struct string_buffer *text)
{
    struct advice_list *list = advising->list;
    struct advice *items = realloc(list->items, (list->count + 1) * sizeof(*items));
    struct advice advice = {.text = *text,
                            .is_program = trace_index->trace != &advising->subject->trace,
                            .peak_bytes = trace_index->peak_bytes,
                            .floor_bytes = trace_index->floor_bytes};
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (items != NULL) {
        list->items = items;
        status = predict_iteration(&planners[0], trace_index, machine, budget, advising->effort,
                                   &advice.iteration_ns, NULL);
    }
    /* A search that was stopped says too little about the change. */
    if (status == CAPU_OK && !progress_should_stop(NULL)) {
        advice.gain_ns = (int64_t)list->iteration_ns - (int64_t)advice.iteration_ns;
        if ((advice.gain_ns > 0 && (double)advice.gain_ns >= GAIN_MIN * (double)list->ideal_ns) ||
            (double)advice.floor_bytes < FLOOR_SHARE * (double)advising->floor_bytes) {
            advising->floor_bytes =
                advising->floor_bytes > 0 ? advice.floor_bytes : advising->floor_bytes;
            list->items[list->count++] = advice;
            *text = (struct string_buffer){0};
        }
    }
    string_buffer_finish(text);
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* The same for a variant, which is released. */
static capu_status measure_variant(struct advising *advising, struct trace *variant,
                                   struct string_buffer *text)
{
    const struct subject *subject = advising->subject;
    struct trace_index trace_index;
    capu_status status =
        trace_index_init(&trace_index, variant, subject->trace_index.page_bytes, NULL);

    if (status == CAPU_OK) {
        status = measure_index(advising, &trace_index, &subject->machine, advising->budget, text);
        trace_index_finish(&trace_index);
    } else {
        string_buffer_finish(text);
    }
    trace_finish(variant);
    return status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
}

/* The next two tenths of the peak. */
static capu_status try_budgets(struct advising *advising)
{
    const struct trace_index *trace_index = &advising->subject->trace_index;
    uint64_t tenth = trace_index->peak_bytes / 10;
    capu_status status = CAPU_OK;
    char size[32];

    for (uint64_t i = 1; status == CAPU_OK && i <= 2 && tenth > 0; i++) {
        uint64_t step = advising->budget / tenth + i;
        uint64_t budget = step < 10 ? step * tenth : trace_index->peak_bytes;
        struct string_buffer text = {0};

        if (budget <= advising->budget || (step > 10 && i > 1)) {
            break;
        }
        status = string_buffer_format(&text, "set a budget of %s, %" PRIu64 " %% of the peak",
                                      human_bytes(budget, size), step < 10 ? step * 10 : 100);
        if (status == CAPU_OK) {
            status =
                measure_index(advising, trace_index, &advising->subject->machine, budget, &text);
        }
    }
    return status;
}

static capu_status try_link(struct advising *advising)
{
    struct machine machine = advising->subject->machine;
    struct string_buffer text = {0};
    capu_status status;

    if (machine.d2h_bytes_per_s > TRACE_RATE_MAX / 2 ||
        machine.h2d_bytes_per_s > TRACE_RATE_MAX / 2) {
        return CAPU_OK;
    }
    machine.d2h_bytes_per_s *= 2;
    machine.h2d_bytes_per_s *= 2;
    status = string_buffer_format(&text, "use a link to the host that is twice as fast");
    return status == CAPU_OK ? measure_index(advising, &advising->subject->trace_index, &machine,
                                             advising->budget, &text)
                             : status;
}

/* Smaller pages waste less of the tensors' ends. Only where pages count. */
static capu_status try_pages(struct advising *advising)
{
    const struct subject *subject = advising->subject;
    capu_status status = CAPU_OK;

    for (uint64_t page = subject->trace_index.page_bytes / 4; status == CAPU_OK && page >= 4096;
         page /= 4) {
        struct trace_index trace_index;
        struct string_buffer text = {0};

        status =
            string_buffer_format(&text, "use pages of %" PRIu64 " KiB (page_bytes)", page / 1024);
        if (status == CAPU_OK) {
            status = trace_index_init(&trace_index, &subject->trace, page, NULL);
        }
        if (status == CAPU_OK) {
            status =
                measure_index(advising, &trace_index, &subject->machine, advising->budget, &text);
            trace_index_finish(&trace_index);
        }
    }
    return status;
}

static capu_status try_early_updates(struct advising *advising)
{
    const struct trace *trace = &advising->subject->trace;
    struct string_buffer text = {0};
    struct trace variant;
    uint32_t moved = 0;
    size_t before = advising->list->count;
    capu_status status = variant_early_updates(trace, &variant, &moved);

    if (status == CAPU_OK && moved > 0) {
        status = string_buffer_format(
            &text,
            "update each parameter directly after its gradient is complete: %" PRIu32
            " step%s of the optimizer move%s up",
            moved, moved > 1 ? "s" : "", moved > 1 ? "" : "s");
        if (status == CAPU_OK) {
            status = measure_variant(advising, &variant, &text);
            variant = (struct trace){0};
        }
    }
    trace_finish(&variant);
    if (status == CAPU_OK && advising->list->count > before &&
        advising->list->items[before].gain_ns > 0) {
        status = string_buffer_format(&advising->list->causes,
                                      "the updates are at the end: until then gradients take room "
                                      "and optimizer state has to wait\n");
    }
    return status;
}

static bool can_become_replayable(const struct trace *trace, uint32_t op)
{
    const struct trace_op *candidate = &trace->ops[op];
    uint64_t written = 0;
    uint64_t updated = 0;

    if (candidate->replayable || variant_is_update(trace, op)) {
        return false;
    }
    for (uint32_t i = candidate->read_count; i < trace_operand_count(candidate); i++) {
        const struct trace_tensor *tensor = &trace->tensors[trace->operands[candidate->first + i]];

        if (tensor->kind == CAPU_INPUT ||
            tensor->persistent != (i >= candidate->read_count + candidate->write_count)) {
            return false;
        }
        *(i < candidate->read_count + candidate->write_count ? &written : &updated) +=
            tensor->bytes;
    }
    return written > 0 && updated <= written / 100;
}

/* The same name but for numbers, as the layers of a network have. */
static bool is_alike(const char *left, const char *right)
{
    for (;;) {
        while (isdigit((unsigned char)*left)) {
            left++;
        }
        while (isdigit((unsigned char)*right)) {
            right++;
        }
        if (*left != *right || *left == '\0') {
            return *left == *right;
        }
        left++;
        right++;
    }
}

static void find_held(struct advising *advising)
{
    const struct trace *trace = &advising->subject->trace;
    const struct trace_index *trace_index = &advising->subject->trace_index;

    for (uint32_t k = 0; k < trace_index->peak_op; k++) {
        const struct trace_op *op = &trace->ops[k];

        for (uint32_t i = 0; i < op->write_count && can_become_replayable(trace, k); i++) {
            uint32_t t = trace_writes(trace, op)[i];

            if (trace_index->op[trace_index->first[t + 1] - 1] > trace_index->peak_op) {
                advising->held[k] += trace_index->rounded[t];
            }
        }
    }
}

/* Of the groups that are left, the one that holds most: chooses its ops, returns one of them. */
static uint32_t choose_group(struct advising *advising, uint32_t *count, uint64_t *bytes)
{
    const struct trace *trace = &advising->subject->trace;
    uint32_t best = TRACE_INDEX_NONE;

    *bytes = 0;
    for (uint32_t k = 0; k < trace->op_count; k++) {
        uint64_t sum = 0;

        for (uint32_t other = k; advising->held[k] > 0 && other < trace->op_count; other++) {
            sum += advising->held[other] > 0 &&
                           is_alike(trace_op_name(trace, k), trace_op_name(trace, other))
                       ? advising->held[other]
                       : 0;
        }
        if (sum > *bytes) {
            best = k;
            *bytes = sum;
        }
    }
    *count = 0;
    for (uint32_t k = 0; k < trace->op_count; k++) {
        advising->chosen[k] = best != TRACE_INDEX_NONE && advising->held[k] > 0 &&
                              is_alike(trace_op_name(trace, best), trace_op_name(trace, k));
        *count += advising->chosen[k];
    }
    return best;
}

static capu_status try_replayable(struct advising *advising)
{
    const struct trace *trace = &advising->subject->trace;
    capu_status status = CAPU_OK;

    find_held(advising);
    for (uint32_t group = 0; status == CAPU_OK && group < GROUPS_MAX; group++) {
        struct string_buffer text = {0};
        struct trace variant;
        char name[PRINTABLE_BYTES];
        uint64_t bytes;
        uint32_t count;
        uint32_t op = choose_group(advising, &count, &bytes);

        if (bytes < advising->budget / 100) {
            break;
        }
        status = string_buffer_format(
            &text, "make op %s%s replayable (%" PRIu32 " op%s%s)",
            printable(trace_op_name(trace, op), name), count > 1 ? " and those like it" : "", count,
            count > 1 ? "s" : "",
            trace->ops[op].update_count > 0 ? ", with a replay function without the updates" : "");
        if (status == CAPU_OK) {
            status = variant_replayable(trace, advising->chosen, &variant);
        }
        if (status == CAPU_OK) {
            status = measure_variant(advising, &variant, &text);
        }
        string_buffer_finish(&text);
        for (uint32_t k = 0; k < trace->op_count; k++) {
            advising->held[k] = advising->chosen[k] ? 0 : advising->held[k];
        }
    }
    return status;
}

static capu_status try_split(struct advising *advising)
{
    const struct subject *subject = advising->subject;
    uint32_t op = subject->trace_index.floor_op;
    uint64_t op_bytes = subject->trace_index.floor_bytes;
    char name[PRINTABLE_BYTES];
    char size[32];
    capu_status status = CAPU_OK;

    if (subject->trace.op_count == 0) {
        return CAPU_OK;
    }
    (void)printable(trace_op_name(&subject->trace, op), name);
    advising->floor_bytes = op_bytes;
    for (uint32_t parts = 2; status == CAPU_OK && parts <= 4; parts *= 2) {
        struct string_buffer text = {0};
        struct trace variant;

        status = variant_split(&subject->trace, op, parts, &variant);
        if (status == CAPU_OK) {
            status = string_buffer_format(&text, "split op %" PRIu32 " (%s) into %" PRIu32 " parts",
                                          op, name, parts);
            if (status == CAPU_OK) {
                status = measure_variant(advising, &variant, &text);
            } else {
                trace_finish(&variant);
            }
        }
    }
    advising->floor_bytes = 0;
    if (status == CAPU_OK && op_bytes > advising->budget / 10 * 7) {
        status = string_buffer_format(&advising->list->causes,
                                      "op %" PRIu32 " (%s) alone needs %s of the budget\n", op,
                                      name, human_bytes(op_bytes, size));
    }
    return status;
}

static capu_status try_rounds(struct advising *advising)
{
    const struct trace *trace = &advising->subject->trace;
    capu_status status = CAPU_OK;

    for (uint32_t rounds = 2; status == CAPU_OK && rounds <= 4; rounds *= 2) {
        struct string_buffer text = {0};
        struct trace variant;

        if (trace->batch > 0 && trace->batch % rounds != 0) {
            break;
        }
        status = variant_rounds(trace, rounds, &variant);
        if (status == CAPU_OK) {
            status = string_buffer_format(&text,
                                          "run %" PRIu32 " micro-batches of 1/%" PRIu32
                                          " and add up their gradients (ops scaled down)",
                                          rounds, rounds);
            if (status == CAPU_OK) {
                status = measure_variant(advising, &variant, &text);
            } else {
                trace_finish(&variant);
            }
        }
    }
    return status;
}

static int compare_advice(const void *a, const void *b)
{
    const struct advice *left = a;
    const struct advice *right = b;

    if (left->gain_ns != right->gain_ns) {
        return left->gain_ns > right->gain_ns ? -1 : 1;
    }
    return strcmp(left->text.data, right->text.data);
}

/* A stretch in which a link hardly ever pauses. */
struct stretch {
    uint64_t begin;
    uint64_t end;
};

static struct stretch longest_stretch(const struct timeline *timeline, enum timeline_engine engine)
{
    uint64_t pause_most = timeline->ideal_ns / 200;
    struct stretch longest = {0};
    struct stretch current = {0};

    for (uint32_t i = 0; i < timeline->record_count; i++) {
        const struct timeline_record *record = &timeline->records[i];

        if (record->engine != engine) {
            continue;
        }
        if (current.end == 0 || record->span.start > current.end + pause_most) {
            current.begin = record->span.start;
        }
        current.end = record->span.end;
        if (current.end - current.begin > longest.end - longest.begin) {
            longest = current;
        }
    }
    return longest;
}

/* A line if compute waits for a link that carries copies without a pause. */
static capu_status find_saturation(struct advising *advising, const struct timeline *timeline,
                                   enum timeline_engine engine)
{
    const struct trace *trace = &advising->subject->trace;
    struct stretch stretch = longest_stretch(timeline, engine);
    uint32_t first = TRACE_INDEX_NONE;
    uint32_t last = 0;
    uint64_t waited_ns = 0;
    char names[2][PRINTABLE_BYTES];
    char times[2][32];

    for (uint32_t i = 0; i < timeline->record_count; i++) {
        const struct timeline_record *record = &timeline->records[i];

        if (record->engine == ENGINE_COMPUTE && record->item.kind == ACTION_OP &&
            record->span.end > stretch.begin && record->span.start <= stretch.end) {
            first = first == TRACE_INDEX_NONE ? record->item.subject : first;
            last = record->item.subject;
            waited_ns += record->span.start - record->span.idle_from;
        }
    }
    if (first == TRACE_INDEX_NONE || stretch.end - stretch.begin < timeline->iteration_ns / 10 ||
        (double)waited_ns < 10.0 * GAIN_MIN * (double)timeline->ideal_ns) {
        return CAPU_OK;
    }
    return string_buffer_format(
        &advising->list->causes,
        "the link is saturated from op %" PRIu32 " (%s) to op %" PRIu32
        " (%s): copies %s take %s without a pause, and ops wait %s\n",
        first, printable(trace_op_name(trace, first), names[0]), last,
        printable(trace_op_name(trace, last), names[1]), engine == ENGINE_D2H ? "out" : "back",
        human_ns(stretch.end - stretch.begin, times[0]), human_ns(waited_ns, times[1]));
}

/* The present plan. */
static capu_status measure_present(struct advising *advising, struct error_text *error)
{
    const struct subject *subject = advising->subject;
    struct planner_request request = {.trace_index = &subject->trace_index,
                                      .machine = &subject->machine,
                                      .budget_bytes = advising->budget,
                                      .host_bytes = UINT64_MAX,
                                      .effort = advising->effort,
                                      .should_stop = progress_should_stop};
    struct timeline timeline;
    struct program program;
    struct plan plan;
    capu_status status = planner_run_program(&planners[0], &request, &plan, &program, error);

    if (status != CAPU_OK) {
        return status;
    }
    status = timeline_of(&timeline, &program, &subject->machine, true, error);
    program_finish(&program);
    plan_finish(&plan);
    if (status == CAPU_OK) {
        advising->list->iteration_ns = timeline.iteration_ns;
        advising->list->ideal_ns = timeline.ideal_ns;
        advising->list->bound_ns =
            bound_iteration(&subject->trace_index, &subject->machine, advising->budget);
        status = find_saturation(advising, &timeline, ENGINE_D2H);
    }
    if (status == CAPU_OK) {
        status = find_saturation(advising, &timeline, ENGINE_H2D);
    }
    timeline_finish(&timeline);
    return status;
}

capu_status advice_find(struct advice_list *list, const struct subject *subject, uint64_t budget,
                        enum plan_effort effort, struct error_text *error)
{
    static capu_status (*const kinds[])(struct advising *) = {
        try_budgets, try_link, try_pages, try_early_updates, try_replayable, try_split, try_rounds};
    const size_t kind_count = sizeof(kinds) / sizeof(kinds[0]);
    struct advising advising = {.list = list,
                                .subject = subject,
                                .budget = budget,
                                .effort = effort,
                                .chosen = calloc((size_t)subject->trace.op_count + 1, sizeof(bool)),
                                .held =
                                    calloc((size_t)subject->trace.op_count + 1, sizeof(uint64_t))};
    capu_status status = CAPU_NO_HOST_MEMORY;

    *list = (struct advice_list){0};
    progress_begin("advising", kind_count + 1, 0.0);
    if (advising.chosen != NULL && advising.held != NULL) {
        status = measure_present(&advising, error);
    }
    for (size_t i = 0; status == CAPU_OK && i < kind_count && !progress_should_stop(NULL); i++) {
        progress_step();
        status = kinds[i](&advising);
        /* A variant that is beyond the limits of traces is none. */
        status = status == CAPU_NO_HOST_MEMORY ? status : CAPU_OK;
    }
    list->is_stopped = progress_end();
    free(advising.chosen);
    free(advising.held);
    if (status != CAPU_OK) {
        advice_finish(list);
    } else if (list->count > 0) { /* qsort takes no NULL */
        qsort(list->items, list->count, sizeof(*list->items), compare_advice);
    }
    return status;
}

void advice_finish(struct advice_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        string_buffer_finish(&list->items[i].text);
    }
    free(list->items);
    string_buffer_finish(&list->causes);
    *list = (struct advice_list){0};
}

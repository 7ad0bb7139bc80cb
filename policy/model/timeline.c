/*
 * The execution model over four iterations: a visitor of the walk over the program, which knows
 * what takes memory and what is copied. Linear in the items of the program.
 */
#include "policy/model/timeline.h"

#include "base/assert.h"
#include "policy/model/program.h"
#include "policy/model/validate.h"

#include <stdlib.h>
#include <string.h>

#define ITERATIONS 4

struct run {
    const struct program *program;
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct plan *plan;
    const struct placement *placement;
    struct clock clock;
    struct program_walk walk;
    uint64_t alloc_ns;     /* of the item at hand: when the memory that it takes is usable */
    bool has_copied;       /* the item at hand has made a copy to the host */
    uint64_t *page_usable; /* per page: from when; placed plans only */
    uint64_t held;
    uint64_t cutoff_ns; /* 0: none */
    struct timeline *timeline;
    bool is_last;
    const uint8_t *layer_starts; /* per op; NULL: not coupled */
    uint64_t copies_ns;          /* coupled: when copies issued before the current layer end */
};

static bool is_pooled(const struct run *run, uint32_t tensor)
{
    return run->trace_index->rounded[tensor] > 0 &&
           (run->plan->place_count == 0 || placement_count(run->placement, tensor) > 0);
}

static uint64_t allocate_tensor(struct run *run, uint32_t tensor)
{
    uint64_t latest = 0;

    if (!is_pooled(run, tensor)) {
        return 0;
    }
    run->held += run->trace_index->rounded[tensor];
    if (run->held > run->timeline->peak_bytes) {
        run->timeline->peak_bytes = run->held;
    }
    if (run->plan->place_count == 0) {
        return clock_take(&run->clock, run->trace_index->rounded[tensor]);
    }
    for (uint32_t i = 0; i < placement_count(run->placement, tensor); i++) {
        uint64_t usable = run->page_usable[placement_page(run->placement, tensor, i)];

        latest = usable > latest ? usable : latest;
    }
    return latest;
}

static capu_status give_back(struct run *run, uint32_t tensor, uint64_t usable_ns)
{
    if (!is_pooled(run, tensor)) {
        return CAPU_OK;
    }
    run->held -= run->trace_index->rounded[tensor];
    if (run->plan->place_count == 0) {
        return clock_give(&run->clock, run->trace_index->rounded[tensor], usable_ns);
    }
    for (uint32_t i = 0; i < placement_count(run->placement, tensor); i++) {
        run->page_usable[placement_page(run->placement, tensor, i)] = usable_ns;
    }
    return CAPU_OK;
}

static void record(struct run *run, const struct item *item, enum timeline_engine engine,
                   struct clock_span span)
{
    struct timeline *timeline = run->timeline;

    if (run->is_last && timeline->records != NULL) {
        timeline->records[timeline->record_count++] = (struct timeline_record){
            .item = *item, .engine = engine, .span = span, .held_bytes = run->held};
    }
}

/* Coupled: a layer's start waits for the copies issued before the layer before it began. */
static void start_layer(struct run *run)
{
    struct clock *clock = &run->clock;

    clock->compute = clock->compute > run->copies_ns ? clock->compute : run->copies_ns;
    run->copies_ns = clock->d2h > clock->h2d ? clock->d2h : clock->h2d;
}

static capu_status take_memory(void *user, const struct item *item, uint32_t tensor)
{
    struct run *run = user;
    uint64_t usable = allocate_tensor(run, tensor);

    run->alloc_ns = usable > run->alloc_ns ? usable : run->alloc_ns;
    run->clock.tensors[tensor].is_fresh = item_is_run(item);
    return CAPU_OK;
}

static capu_status copy_out(void *user, const struct item *item, uint32_t tensor)
{
    struct run *run = user;
    struct clock_span span = item->kind == ACTION_SAVE ? clock_save(&run->clock, tensor)
                                                       : clock_evict(&run->clock, tensor);

    record(run, item, ENGINE_D2H, span);
    run->has_copied = true;
    if (run->is_last) {
        run->timeline->evicted_bytes += run->trace->tensors[tensor].bytes;
    }
    return CAPU_OK;
}

static capu_status give_memory(void *user, const struct item *item, uint32_t tensor)
{
    struct run *run = user;
    uint64_t usable;

    if (run->has_copied) {
        return give_back(run, tensor, run->clock.tensors[tensor].host);
    }
    usable = clock_usable(&run->clock, tensor);
    record(run, item, ENGINE_NONE,
           (struct clock_span){.start = usable, .end = usable, .idle_from = usable});
    return give_back(run, tensor, usable);
}

static const struct program_visitor visitor = {
    .take = take_memory, .copy_out = copy_out, .give = give_memory};

/* What takes the time of an engine after its memory has been taken: an op, or a copy back. */
static void occupy(struct run *run, const struct item *item)
{
    struct timeline *timeline = run->timeline;
    uint32_t subject = item->subject;

    if (item_is_run(item)) {
        record(run, item, ENGINE_COMPUTE,
               clock_op(&run->clock, run->trace, subject, run->alloc_ns));
        if (run->is_last && item->kind == ACTION_REPLAY) {
            timeline->replay_ns += run->trace->ops[subject].ns;
        }
    } else if (item->kind == ACTION_PREFETCH) {
        record(run, item, ENGINE_H2D, clock_prefetch(&run->clock, subject, run->alloc_ns));
        if (run->is_last) {
            timeline->prefetched_bytes += run->trace->tensors[subject].bytes;
        }
    }
}

static capu_status run_item(struct run *run, const struct item *item)
{
    capu_status status;

    if (run->layer_starts != NULL && item_is_run(item) && run->layer_starts[item->subject] != 0) {
        start_layer(run);
    }
    run->alloc_ns = 0;
    run->has_copied = false;
    status = program_walk_item(&run->walk, &visitor, run, item);
    occupy(run, item);
    return status;
}

static capu_status run_init(struct run *run, const struct machine *machine)
{
    const struct plan *plan = run->plan;
    capu_status status = clock_init(&run->clock, run->trace, machine);

    if (status == CAPU_OK) {
        status = program_walk_init(&run->walk, run->program);
    }
    if (status != CAPU_OK) {
        return status;
    }
    run->page_usable = calloc((size_t)run->placement->page_count + 1, sizeof(*run->page_usable));
    if (run->page_usable == NULL) {
        return CAPU_NO_HOST_MEMORY;
    }
    run->held = plan->fixed_bytes;
    for (uint32_t t = 0; t < run->trace->tensor_count; t++) {
        run->held += program_walk_is_resident(&run->walk, t) && is_pooled(run, t)
                         ? run->trace_index->rounded[t]
                         : 0;
    }
    run->timeline->peak_bytes = run->held;
    clock_reset(&run->clock, plan->budget_bytes - run->held);
    return CAPU_OK;
}

static void run_finish(struct run *run)
{
    program_walk_finish(&run->walk);
    free(run->page_usable);
    clock_finish(&run->clock);
}

static capu_status run_iterations(struct run *run, struct error_text *error)
{
    struct timeline *timeline = run->timeline;
    capu_status status = CAPU_OK;

    for (int iteration = 0; status == CAPU_OK && iteration < ITERATIONS; iteration++) {
        run->is_last = iteration == ITERATIONS - 1;
        timeline->begin_ns = run->clock.compute;
        if (run->is_last && timeline->at_begin != NULL) {
            memcpy(timeline->at_begin, run->clock.tensors,
                   run->trace->tensor_count * sizeof(*timeline->at_begin));
        }
        for (uint32_t i = 0; status == CAPU_OK && i < run->program->count; i++) {
            status = run_item(run, &run->program->items[i]);
            if (run->clock.compute > CLOCK_NS_MAX || run->clock.d2h > CLOCK_NS_MAX ||
                run->clock.h2d > CLOCK_NS_MAX) {
                return error_text_set(error, CAPU_TOO_LARGE, "an iteration beyond 2^62 ns");
            }
        }
        program_walk_turn(&run->walk, &visitor, run);
        /* The second iteration begins in nearly the state of all later ones. */
        if (iteration == 1 && run->cutoff_ns > 0 &&
            run->clock.compute - timeline->begin_ns >= run->cutoff_ns + run->cutoff_ns / 256) {
            timeline->iteration_ns = UINT64_MAX;
            return status;
        }
    }
    timeline->iteration_ns = run->clock.compute - timeline->begin_ns;
    timeline->ideal_ns = run->trace->total_ns;
    timeline->budget_bytes = run->plan->budget_bytes;
    timeline->stall_ns = timeline->iteration_ns - timeline->ideal_ns - timeline->replay_ns;
    return status;
}

static capu_status run_all(struct run *run, const struct machine *machine, bool with_records,
                           struct error_text *error)
{
    struct timeline *timeline = run->timeline;
    const struct trace *trace = run->trace;
    capu_status status;

    ASSERT_EXPENSIVE(validate_is_sound(run->trace_index, run->plan));
    *timeline = (struct timeline){0};
    if (machine == NULL && !trace->has_machine) {
        return error_text_set(error, CAPU_INVALID, "the trace names no machine");
    }
    status = run_init(run, machine != NULL ? machine : &trace->machine);
    if (status == CAPU_OK && with_records) {
        timeline->records = malloc(((size_t)run->program->count + 1) * sizeof(*timeline->records));
        timeline->at_begin =
            malloc(((size_t)run->trace->tensor_count + 1) * sizeof(*timeline->at_begin));
        status =
            timeline->records != NULL && timeline->at_begin != NULL ? CAPU_OK : CAPU_NO_HOST_MEMORY;
    }
    if (status == CAPU_OK) {
        status = run_iterations(run, error);
    }
    run_finish(run);
    if (status != CAPU_OK) {
        timeline_finish(timeline);
    }
    return status;
}

static struct run run_of(const struct program *program, struct timeline *timeline)
{
    return (struct run){.program = program,
                        .trace_index = program->trace_index,
                        .trace = program->trace_index->trace,
                        .plan = program->plan,
                        .placement = &program->placement,
                        .timeline = timeline};
}

capu_status timeline_of(struct timeline *timeline, const struct program *program,
                        const struct machine *machine, bool with_records, struct error_text *error)
{
    struct run run = run_of(program, timeline);

    return run_all(&run, machine, with_records, error);
}

capu_status timeline_of_coupled(struct timeline *timeline, const struct program *program,
                                const struct machine *machine, const uint8_t *layer_starts,
                                struct error_text *error)
{
    struct run run = run_of(program, timeline);

    run.layer_starts = layer_starts;
    return run_all(&run, machine, false, error);
}

capu_status timeline_init(struct timeline *timeline, const struct trace_index *trace_index,
                          const struct plan *plan, const struct machine *machine, bool with_records,
                          struct error_text *error)
{
    struct program program;
    capu_status status = program_init(&program, trace_index, plan, NULL);

    *timeline = (struct timeline){0};
    if (status == CAPU_OK) {
        status = timeline_of(timeline, &program, machine, with_records, error);
    }
    program_finish(&program);
    return status;
}

capu_status timeline_time(const struct program *program, const struct machine *machine,
                          uint64_t cutoff_ns, uint64_t *ns)
{
    struct timeline timeline = {0};
    struct run run = run_of(program, &timeline);
    capu_status status;

    ASSERT(machine != NULL);
    ASSERT_EXPENSIVE(validate_is_sound(program->trace_index, program->plan));
    run.cutoff_ns = cutoff_ns;
    status = run_init(&run, machine);
    if (status == CAPU_OK) {
        status = run_iterations(&run, NULL);
    }
    run_finish(&run);
    *ns = status == CAPU_OK ? timeline.iteration_ns : UINT64_MAX;
    return status;
}

void timeline_finish(struct timeline *timeline)
{
    free(timeline->records);
    free(timeline->at_begin);
    *timeline = (struct timeline){0};
}

double timeline_overhead(const struct timeline *timeline)
{
    return timeline->ideal_ns == 0
               ? 0.0
               : (double)timeline->iteration_ns / (double)timeline->ideal_ns - 1.0;
}

/* Rates for links that slow each other down. */

/* The shares settle quickly: slower copies overlap a little more. */
enum { ROUNDS = 3 };

/* The next copy of a direction, from a record on; record_count: there is none. */
static uint32_t next_copy(const struct timeline *timeline, enum timeline_engine engine,
                          uint32_t from)
{
    while (from < timeline->record_count && timeline->records[from].engine != engine) {
        from++;
    }
    return from;
}

/* How long a direction is busy. */
static int64_t busy_ns(const struct timeline *timeline, enum timeline_engine engine)
{
    int64_t ns = 0;

    for (uint32_t i = next_copy(timeline, engine, 0); i < timeline->record_count;
         i = next_copy(timeline, engine, i + 1)) {
        ns += (int64_t)(timeline->records[i].span.end - timeline->records[i].span.start);
    }
    return ns;
}

/* How long both are, if the copies back are moved by `shift_ns`. Spans of one engine are in order.
 */
static int64_t overlap_ns(const struct timeline *timeline, int64_t shift_ns)
{
    uint32_t out = next_copy(timeline, ENGINE_D2H, 0);
    uint32_t in = next_copy(timeline, ENGINE_H2D, 0);
    int64_t ns = 0;

    while (out < timeline->record_count && in < timeline->record_count) {
        const struct clock_span *one = &timeline->records[out].span;
        const struct clock_span *other = &timeline->records[in].span;
        int64_t other_start = (int64_t)other->start + shift_ns;
        int64_t other_end = (int64_t)other->end + shift_ns;
        int64_t start = (int64_t)one->start > other_start ? (int64_t)one->start : other_start;
        int64_t end = (int64_t)one->end < other_end ? (int64_t)one->end : other_end;

        ns += end > start ? end - start : 0;
        if ((int64_t)one->end < other_end) {
            out = next_copy(timeline, ENGINE_D2H, out + 1);
        } else {
            in = next_copy(timeline, ENGINE_H2D, in + 1);
        }
    }
    return ns;
}

/* A direction that is not known to be slower keeps its rate. */
static uint64_t mean_rate(uint64_t solo, uint64_t duplex, double share)
{
    uint64_t lost = duplex != 0 && duplex < solo ? (uint64_t)((double)(solo - duplex) * share) : 0;

    return solo - lost;
}

bool duplex_matters(const struct duplex *duplex, const struct machine *solo)
{
    return (duplex->d2h_bytes_per_s != 0 && duplex->d2h_bytes_per_s < solo->d2h_bytes_per_s) ||
           (duplex->h2d_bytes_per_s != 0 && duplex->h2d_bytes_per_s < solo->h2d_bytes_per_s);
}

static double share_of(int64_t both_ns, int64_t ns)
{
    return ns <= 0 ? 0.0 : both_ns >= ns ? 1.0 : (double)both_ns / (double)ns;
}

capu_status duplex_rates(const struct program *program, const struct machine *solo,
                         const struct duplex *duplex, struct machine *machine,
                         struct error_text *error)
{
    capu_status status = CAPU_OK;

    *machine = *solo;
    for (int round = 0; round < ROUNDS && status == CAPU_OK && duplex_matters(duplex, solo);
         round++) {
        struct timeline timeline;

        status = timeline_of(&timeline, program, machine, true, error);
        if (status == CAPU_OK) {
            /* The iteration before has copies that reach into this one, and so on. */
            int64_t period = (int64_t)timeline.iteration_ns;
            int64_t both = overlap_ns(&timeline, 0) + overlap_ns(&timeline, period) +
                           overlap_ns(&timeline, -period);

            machine->d2h_bytes_per_s = mean_rate(solo->d2h_bytes_per_s, duplex->d2h_bytes_per_s,
                                                 share_of(both, busy_ns(&timeline, ENGINE_D2H)));
            machine->h2d_bytes_per_s = mean_rate(solo->h2d_bytes_per_s, duplex->h2d_bytes_per_s,
                                                 share_of(both, busy_ns(&timeline, ENGINE_H2D)));
            timeline_finish(&timeline);
        }
    }
    return status;
}

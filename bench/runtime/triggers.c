/*
 * What moving the in-triggers of a plan gains if copies arrive late. Plans are made for links that
 * are faster than the actual ones, as on a busy machine, and timed by the execution model. They are
 * compared with the same plan with every prefetch begun as early as the pages it needs allow, in
 * the same order, so that none can arrive later because of it; and with a plan made for the actual
 * links. It uses networks of the zoo, which need no files. Times are in percent over those of the
 * ops.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include "models/zoo.h"
#include "policy/model/program.h"
#include "policy/model/timeline.h"
#include "policy/model/validate.h"
#include "policy/search/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES ((uint64_t)2 << 20)

/* How much longer copies take than the plan assumes: links have 4/5 of the rate. */
enum { LONGER_PERCENT = 25 };

struct result {
    unsigned prefetches;
    unsigned movable; /* by at least one op */
    double as_made;   /* percent over the ideal */
    double moved;
    double remade;
};

/* For each prefetch of the program, in its order, the first op before which its pages are free. */
static void find_earliest(const struct program *program, uint32_t *earliest)
{
    const struct placement *placement = &program->placement;
    uint32_t *free_at = calloc((size_t)placement->page_count + 1, sizeof(*free_at));
    uint32_t next = 0; /* the next op */
    uint32_t found = 0;

    bench_expect(free_at != NULL, "no memory");
    for (uint32_t i = 0; i < program->count; i++) {
        const struct item *item = &program->items[i];

        if (item->kind == ACTION_OP) {
            next = item->subject + 1;
        } else if (item->kind == ACTION_PREFETCH) {
            earliest[found] = 0;
            for (uint32_t p = 0; p < placement_count(placement, item->subject); p++) {
                uint32_t at = free_at[placement_page(placement, item->subject, p)];

                earliest[found] = at > earliest[found] ? at : earliest[found];
            }
            found++;
        } else if (item->kind == ACTION_EVICT || item->kind == ACTION_DROP ||
                   item->kind == ACTION_RELEASE) {
            for (uint32_t p = 0; p < placement_count(placement, item->subject); p++) {
                free_at[placement_page(placement, item->subject, p)] = next;
            }
        }
    }
    free(free_at);
}

static void copy_action(const struct plan *from, const struct plan_action *action, struct plan *to)
{
    if (action->kind != ACTION_RECOMPUTE) {
        bench_expect(plan_add(to, action->kind, action->tensor, action->point) == CAPU_OK, "copy");
        return;
    }
    bench_expect(plan_add_recompute(to, action->point) == CAPU_OK, "copy");
    for (uint32_t r = action->first; r < action->first + action->count; r++) {
        const struct plan_replay *replay = &from->replays[r];

        bench_expect(plan_add_replay(to, replay->op) == CAPU_OK, "copy");
        for (uint32_t d = 0; d < replay->drop_count; d++) {
            bench_expect(plan_add_drop(to, from->drops[replay->first_drop + d]) == CAPU_OK, "copy");
        }
    }
}

/* The plan with its prefetches moved; those that move come last at their new points. They are in
   the order of the program, which is that of their points. */
static void move_prefetches(const struct plan *from, const struct program *program,
                            const uint32_t *earliest, struct plan *to, struct result *result)
{
    bool *is_moved = calloc((size_t)from->action_count + 1, sizeof(*is_moved));
    uint32_t *points = calloc((size_t)from->action_count + 1, sizeof(*points));
    uint32_t last = 0; /* no prefetch overtakes the previous one */
    uint32_t found = 0;

    bench_expect(is_moved != NULL && points != NULL, "no memory");
    for (uint32_t op = 0; op < program->trace_index->trace->op_count; op++) {
        for (uint32_t i = 0; i < from->action_count; i++) {
            const struct plan_action *action = &from->actions[i];

            if (action->kind != ACTION_PREFETCH || action->point != op) {
                continue;
            }
            last = earliest[found] > last ? earliest[found] : last;
            last = last > op ? op : last;
            is_moved[i] = last < op;
            points[i] = last;
            result->movable += is_moved[i];
            found++;
        }
    }
    result->prefetches = found;
    for (uint32_t i = 0; i < from->action_count; i++) {
        if (!is_moved[i]) {
            copy_action(from, &from->actions[i], to);
        }
    }
    for (uint32_t op = 0; op < program->trace_index->trace->op_count; op++) {
        for (uint32_t i = 0; i < from->action_count; i++) {
            if (is_moved[i] && from->actions[i].point == op) {
                struct plan_action action = from->actions[i];

                action.point = points[i];
                copy_action(from, &action, to);
            }
        }
    }
    for (uint32_t i = 0; i < from->place_count; i++) {
        const struct plan_place *place = &from->places[i];

        bench_expect(plan_add_place(to, place->tensor) == CAPU_OK, "copy");
        for (uint32_t r = place->first; r < place->first + place->count; r++) {
            bench_expect(plan_add_run(to, from->runs[r].first, from->runs[r].count) == CAPU_OK,
                         "copy");
        }
    }
    free(points);
    free(is_moved);
}

/* Percent over the time of the ops, on the machine of the trace. */
static double over(const struct trace_index *trace_index, const struct plan *plan)
{
    struct error_text error = {""};
    struct program program;
    uint64_t ns;

    if (validate_program(&program, trace_index, plan, &error) != CAPU_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(EXIT_FAILURE);
    }
    bench_expect(timeline_time(&program, &trace_index->trace->machine, 0, &ns) == CAPU_OK,
                 "timing a plan");
    program_finish(&program);
    return ((double)ns / (double)trace_index->trace->total_ns - 1) * 100;
}

/* False: there is no plan for this budget. */
static bool measure(const struct trace_index *trace_index, unsigned percent, struct result *result)
{
    struct machine promised = trace_index->trace->machine;
    struct planner_request request = {.trace_index = trace_index,
                                      .machine = &promised,
                                      .budget_bytes = trace_index->peak_bytes / 100 * percent,
                                      .host_bytes = UINT64_MAX,
                                      .effort = EFFORT_QUICK,
                                      .place = true};
    struct plan plan = {0};
    struct plan moved = {0};
    struct plan remade = {0};
    struct program program;
    uint32_t *earliest;

    promised.d2h_bytes_per_s += promised.d2h_bytes_per_s / 100 * LONGER_PERCENT;
    promised.h2d_bytes_per_s += promised.h2d_bytes_per_s / 100 * LONGER_PERCENT;
    *result = (struct result){0};
    if (planner_run_program(&planners[0], &request, &plan, &program, NULL) != CAPU_OK) {
        return false;
    }
    request.machine = NULL;
    bench_expect(planner_run(&planners[0], &request, &remade, NULL) == CAPU_OK, "a second plan");
    earliest = calloc((size_t)program.count + 1, sizeof(*earliest));
    bench_expect(earliest != NULL, "no memory");
    find_earliest(&program, earliest);
    bench_expect(plan_init(&moved, plan.trace, plan.budget_bytes, plan.page_bytes) == CAPU_OK,
                 "no memory");
    moved.fixed_bytes = plan.fixed_bytes;
    moved.host_bytes = plan.host_bytes;
    move_prefetches(&plan, &program, earliest, &moved, result);
    result->as_made = over(trace_index, &plan);
    result->moved = over(trace_index, &moved);
    result->remade = over(trace_index, &remade);
    free(earliest);
    program_finish(&program);
    plan_finish(&moved);
    plan_finish(&remade);
    plan_finish(&plan);
    return true;
}

static void print(const char *name, unsigned percent, const struct result *result, bool wants_json)
{
    if (wants_json) {
        printf("{\"bench\":\"triggers\",\"model\":\"%s\",\"budget_percent\":%u,\"longer_percent\":"
               "%d,\"prefetches\":%u,\"movable\":%u,\"as_made_percent\":%.2f,\"moved_percent\":"
               "%.2f,\"remade_percent\":%.2f}\n",
               name, percent, LONGER_PERCENT, result->prefetches, result->movable, result->as_made,
               result->moved, result->remade);
    } else {
        printf("%-12s %4u %% %10u %8u %9.1f %% %7.1f %% %7.1f %%\n", name, percent,
               result->prefetches, result->movable, result->as_made, result->moved, result->remade);
    }
}

int main(int count, char **arguments)
{
    static const unsigned percents[] = {80, 60, 50};
    bool wants_json = bench_wants_json(
        count, arguments, "bench_triggers [--json]: moving late prefetches against new plans\n");
    struct hardware hardware;
    uint64_t count_of_models = 0;

    bench_expect(hardware_load(&hardware, "p100", NULL) == CAPU_OK, "the machine");
    if (!wants_json) {
        printf("copies take %d %% longer than planned; overhead over the time of the ops\n%-12s "
               "%6s %10s %8s "
               "%11s %9s %9s\n",
               LONGER_PERCENT, "model", "budget", "prefetches", "movable", "as made", "moved",
               "remade");
    }
    for (const struct zoo_model *model = zoo_models; model->name != NULL; model++) {
        count_of_models++;
    }
    progress_begin("measuring", count_of_models * (sizeof(percents) / sizeof(percents[0])), 0.0);
    for (const struct zoo_model *model = zoo_models;
         model->name != NULL && !progress_should_stop(NULL); model++) {
        struct zoo_options options = {.batch = 32};
        struct error_text error = {""};
        struct trace trace;
        struct trace_index trace_index;

        bench_expect(zoo_build(model, &options, &hardware, &trace, NULL, &error) == CAPU_OK,
                     model->name);
        bench_expect(trace_index_init(&trace_index, &trace, PAGE_BYTES, &error) == CAPU_OK,
                     model->name);
        for (size_t k = 0;
             k < sizeof(percents) / sizeof(percents[0]) && !progress_should_stop(NULL); k++) {
            struct result result;
            bool is_worth_it = measure(&trace_index, percents[k], &result) && result.prefetches > 0;

            progress_step();
            progress_clear();
            if (is_worth_it) {
                print(model->name, percents[k], &result, wants_json);
            }
        }
        trace_index_finish(&trace_index);
        trace_finish(&trace);
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}

/* The states of the table of order, see order_states.h. */
#include "tests/api/order/order_states.h"

#include "runtime/api/context.h"
#include "runtime/residency/free_list.h"
#include "tests/support/adaptor_fault.h"

#include <stdlib.h>

/* Without training: SUBJECT is what is brought into a state, and OTHERS fill the budget with it.
   BIG needs the pages of two. */
enum {
    SUBJECT = 1,
    OTHERS = 2,
    OTHER_COUNT = 4,
    SPARE = OTHERS + OTHER_COUNT,
    BIG,
    PIECE = BIG + 3
};

enum { BUDGET_PAGES = (OTHER_COUNT + 1) * ITEM_PAGES + 1, TRAINING_PAGES = 7 * ITEM_PAGES + 1 };

static void start(struct world *world, struct rig_options options)
{
    options.budget_pages = BUDGET_PAGES;
    world_init(world, options);
    for (size_t i = SUBJECT; i <= SPARE; i++) {
        world_add(world, ITEM_BYTES, false);
    }
    world_add(world, PAGES(2 * ITEM_PAGES), false);
    world->other = OTHERS + 1;
}

static void use(struct world *world, size_t item, capu_role role)
{
    world_run(world, "set up", &(struct use){item, (uint32_t)role, 0, 0}, 1);
}

static void fill_budget(struct world *world)
{
    for (size_t i = OTHERS; i < OTHERS + OTHER_COUNT; i++) {
        use(world, i, CAPU_WRITE);
    }
}

static void undefined(struct world *world)
{
    start(world, (struct rig_options){0});
    fill_budget(world);
}

static void zero(struct world *world)
{
    undefined(world);
    RIG_OK(&world->rig, world_zero(world, SUBJECT, 0, ITEM_BYTES));
}

static void written(struct world *world)
{
    start(world, (struct rig_options){0});
    use(world, SUBJECT, CAPU_WRITE);
    fill_budget(world);
}

static void mapped_zero(struct world *world)
{
    written(world);
    RIG_OK(&world->rig, world_zero(world, SUBJECT, 0, ITEM_BYTES));
}

static void mapped_undefined(struct world *world)
{
    start(world, (struct rig_options){0});
    use(world, SUBJECT, CAPU_SCRATCH);
    fill_budget(world);
}

static void evicted(struct world *world)
{
    written(world);
    use(world, SPARE, CAPU_WRITE);
}

static void read_back(struct world *world)
{
    evicted(world);
    use(world, SUBJECT, CAPU_READ);
}

/* BIG needs the pages of two tensors. The first one goes. There is no host memory for the next one,
   so the op fails before it waits for the first one's pages. */
static void squeeze(struct world *world)
{
    ck_assert_int_eq(world_try_run(world, "big", &(struct use){BIG, CAPU_WRITE, 0, 0}, 1, false),
                     CAPU_HOST_OVER_BUDGET);
}

static void leaving(struct world *world)
{
    start(world, (struct rig_options){.host_budget_bytes = PAGES(ITEM_PAGES)});
    use(world, SUBJECT, CAPU_WRITE);
    fill_budget(world);
    squeeze(world);
}

static void taken_back(struct world *world)
{
    leaving(world);
    use(world, SUBJECT, CAPU_READ);
}

static void leaving_undefined(struct world *world)
{
    start(world, (struct rig_options){.host_budget_bytes = PAGES(1)});
    use(world, SUBJECT, CAPU_SCRATCH);
    fill_budget(world);
    squeeze(world);
}

static void leaving_zero(struct world *world)
{
    start(world, (struct rig_options){.host_budget_bytes = PAGES(1)});
    use(world, SUBJECT, CAPU_WRITE);
    RIG_OK(&world->rig, world_zero(world, SUBJECT, 0, ITEM_BYTES));
    fill_budget(world);
    squeeze(world);
}

/* The pages are there, and the copy back could not be enqueued. */
static void not_back(struct world *world)
{
    const struct adaptor_fault_plan plan = {
        .slot = ADAPTOR_COPY_IN, .call = 1, .status = CAPU_NO_HOST_MEMORY};

    start(world,
          (struct rig_options){.has_faults = true, .host_budget_bytes = PAGES(2 * ITEM_PAGES)});
    use(world, SUBJECT, CAPU_WRITE);
    fill_budget(world);
    use(world, SPARE, CAPU_WRITE);
    adaptor_fault_arm(world->rig.faults, &plan);
    ck_assert_int_eq(
        world_try_run(world, "read", &(struct use){SUBJECT, CAPU_READ, 0, 0}, 1, false),
        CAPU_NO_HOST_MEMORY);
    adaptor_fault_arm(world->rig.faults, NULL);
}

/* Its neighbours share pages with it. They stay resident, since those pages do. */
static void divide(struct world *world)
{
    static const size_t sizes[] = {13000, 13000, 10768};
    size_t whole;
    unsigned char *home;

    start(world, (struct rig_options){0});
    RIG_OK(&world->rig, capu_free(world->rig.context, world->items[SUBJECT].address));
    world->items[SUBJECT].address = NULL;
    whole = world_add(world, sizes[0] + sizes[1] + sizes[2], false);
    use(world, whole, CAPU_WRITE);
    home = world->items[whole].address;
    RIG_OK(&world->rig, capu_split_list(world->rig.context, home, sizes, 3));
    world_divide(world, whole, sizes, 3);
    world->other = PIECE - 1;
}

static void shared(struct world *world)
{
    divide(world);
    use(world, PIECE, CAPU_UPDATE);
    use(world, OTHERS + 1, CAPU_WRITE);
}

static void shared_evicted(struct world *world)
{
    shared(world);
    fill_budget(world);
    use(world, SPARE, CAPU_WRITE);
}

static void shared_back(struct world *world)
{
    shared_evicted(world);
    use(world, PIECE, CAPU_READ);
}

/* Training with a plan. */

static void train(struct world *world, struct rig_options options, bool is_placed, bool shares)
{
    options.budget_pages = TRAINING_PAGES + (shares ? 2 : 0);
    options.mode = CAPU_MODE_GUIDED;
    options.wait_for_plan = true;
    options.planner = "lru";
    world_init(world, options);
    world_make_training(world, is_placed, shares);
    world->other = WORLD_SUM;
}

static void placed(struct world *world)
{
    train(world, (struct rig_options){0}, true, false);
}

static void unplaced(struct world *world)
{
    train(world, (struct rig_options){0}, false, false);
}

static void placed_strict(struct world *world)
{
    train(world, (struct rig_options){.strict = true}, true, false);
}

static void unplaced_strict(struct world *world)
{
    train(world, (struct rig_options){.strict = true}, false, false);
}

static void placed_shared(struct world *world)
{
    train(world, (struct rig_options){0}, true, true);
}

static void unplaced_shared(struct world *world)
{
    train(world, (struct rig_options){0}, false, true);
}

static void settled(struct world *world)
{
    placed(world);
    RIG_OK(&world->rig, capu_synchronize(world->rig.context));
}

/* An op that the plan does not know needs what is not there, so the plan is left. Others then need
   the pages, and the next iteration installs the plan again. */
static void left_and_evicted(struct world *world)
{
    size_t big;

    placed(world);
    use(world, WORLD_WEIGHT, CAPU_UPDATE);
    ck_assert_ptr_null(world->rig.context->guided.active);
    big = world_add(world, PAGES(TRAINING_PAGES - 1), true);
    use(world, big, CAPU_WRITE);
}

static void zero_table(struct world *world)
{
    RIG_OK(&world->rig, world_zero(world, WORLD_TABLE, 0, ITEM_BYTES));
}

static void zero_weight(struct world *world)
{
    RIG_OK(&world->rig, world_zero(world, WORLD_WEIGHT, 0, ITEM_BYTES));
}

static void zero_row(struct world *world)
{
    RIG_OK(&world->rig, world_zero(world, WORLD_ROW, 0, ITEM_BYTES));
}

/* As above, inside an iteration. */
static void leave(struct world *world)
{
    use(world, WORLD_SUM, CAPU_WRITE);
    ck_assert_ptr_null(world->rig.context->guided.active);
}

static void launch(struct world *world)
{
    placed(world);
    world_begin_capture(world);
    while (world_step(world)) {
    }
    world_end(world);
    RIG_OK(&world->rig, world_try_launch(world));
}

/* The copies that begin at the end of an iteration are under way. A launch has waited for its own.
 */
static void iterate(struct world *world)
{
    launch(world);
    world_iterate(world);
}

#define BETWEEN ORDER_BETWEEN
#define CAPTURED ORDER_CAPTURED
#define NOWHERE PAGES_NONE
#define OUT PAGES_PLACED_OUT

static const struct order_state passive_between[] = {
    {"undefined", undefined, BETWEEN, NULL, SUBJECT, NOWHERE, CONTENTS_UNDEFINED, false, false,
     ORDER_PLAIN},
    {"zero", zero, BETWEEN, NULL, SUBJECT, NOWHERE, CONTENTS_ZERO, false, false, ORDER_PLAIN},
    {"host", evicted, BETWEEN, NULL, SUBJECT, NOWHERE, CONTENTS_HOST, false, false, ORDER_PLAIN},
    {"own undef", mapped_undefined, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_UNDEFINED, false,
     false, ORDER_PLAIN},
    {"own zero", mapped_zero, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_ZERO, false, false,
     ORDER_PLAIN},
    {"own device", written, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"own host", not_back, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_HOST, false, false,
     ORDER_PLAIN},
    {"own both", read_back, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_BOTH, false, false,
     ORDER_PLAIN},
    {"own both out", taken_back, BETWEEN, NULL, SUBJECT, PAGES_OWN, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"leaving undef", leaving_undefined, BETWEEN, NULL, SUBJECT, PAGES_LEAVING, CONTENTS_UNDEFINED,
     false, false, ORDER_PLAIN},
    {"leaving zero", leaving_zero, BETWEEN, NULL, SUBJECT, PAGES_LEAVING, CONTENTS_ZERO, false,
     false, ORDER_PLAIN},
    {"leaving out", leaving, BETWEEN, NULL, SUBJECT, PAGES_LEAVING, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state passive_inside[] = {
    {"zero", zero, 0, NULL, SUBJECT, NOWHERE, CONTENTS_ZERO, false, false, ORDER_PLAIN},
    {"host", evicted, 0, NULL, SUBJECT, NOWHERE, CONTENTS_HOST, false, false, ORDER_PLAIN},
    {"own device", written, 0, NULL, SUBJECT, PAGES_OWN, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"own both out", taken_back, 0, NULL, SUBJECT, PAGES_OWN, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"leaving out", leaving, 0, NULL, SUBJECT, PAGES_LEAVING, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state pieces[] = {
    {"device", shared, BETWEEN, NULL, PIECE, PAGES_OWN, CONTENTS_DEVICE, false, false, ORDER_PLAIN},
    {"host", shared_evicted, BETWEEN, NULL, PIECE, NOWHERE, CONTENTS_HOST, false, false,
     ORDER_PLAIN},
    {"both", shared_back, BETWEEN, NULL, PIECE, PAGES_OWN, CONTENTS_BOTH, false, false,
     ORDER_PLAIN},
    {"device, inside", shared, 0, NULL, PIECE, PAGES_OWN, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"host, inside", shared_evicted, 0, NULL, PIECE, NOWHERE, CONTENTS_HOST, false, false,
     ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state placed_between[] = {
    {"device", placed, BETWEEN, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"undef", placed, BETWEEN, NULL, WORLD_SCRATCH, PAGES_PLACED, CONTENTS_UNDEFINED, false, false,
     ORDER_PLAIN},
    {"both, in", placed, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"both, out", placed, BETWEEN, NULL, WORLD_MOMENT, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"zero, in", placed, BETWEEN, zero_table, WORLD_TABLE, PAGES_PLACED, CONTENTS_ZERO, true, false,
     ORDER_PLAIN},
    {"host", settled, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, false, ORDER_PLAIN},
    {"host, out", placed, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, true,
     ORDER_PLAIN},
    {"zero, out", placed, BETWEEN, zero_weight, WORLD_WEIGHT, OUT, CONTENTS_ZERO, false, true,
     ORDER_PLAIN},
    {"lost", placed, BETWEEN, NULL, WORLD_MADE, OUT, CONTENTS_LOST, false, false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state placed_inside[] = {
    {"device", placed, 4, NULL, WORLD_END, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"undef", placed, 4, NULL, WORLD_SCRATCH, PAGES_PLACED, CONTENTS_UNDEFINED, false, false,
     ORDER_PLAIN},
    {"zero", placed, 1, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_ZERO, false, false, ORDER_PLAIN},
    {"both, in", placed, 0, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"both, in, out", placed, 6, NULL, WORLD_WEIGHT, PAGES_PLACED, CONTENTS_BOTH, true, true,
     ORDER_PLAIN},
    {"both, out", placed, 4, NULL, WORLD_USED, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"installed", left_and_evicted, 0, NULL, WORLD_ROW, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_ARRIVING},
    {"out undef", placed, 0, NULL, WORLD_MADE, OUT, CONTENTS_UNDEFINED, false, false, ORDER_PLAIN},
    {"out zero", placed, 0, zero_weight, WORLD_WEIGHT, OUT, CONTENTS_ZERO, false, true,
     ORDER_PLAIN},
    {"host", settled, 0, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, false, ORDER_PLAIN},
    {"host, out", placed, 5, NULL, WORLD_MOMENT, OUT, CONTENTS_HOST, false, true, ORDER_PLAIN},
    {"lost", placed, 5, NULL, WORLD_END, OUT, CONTENTS_LOST, false, false, ORDER_PLAIN},
    {"owed", placed, 3, NULL, WORLD_MADE, OUT, CONTENTS_OWED, false, false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state unplaced_between[] = {
    {"device", unplaced, BETWEEN, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"both, in", unplaced, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"both, out", unplaced, BETWEEN, NULL, WORLD_MOMENT, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"expected", unplaced, BETWEEN, NULL, WORLD_ROW, OUT, CONTENTS_HOST, false, false,
     ORDER_EXPECTED},
    {"expected zero", unplaced, BETWEEN, zero_row, WORLD_ROW, OUT, CONTENTS_ZERO, false, false,
     ORDER_EXPECTED},
    {"left, out", unplaced, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, true,
     ORDER_LEFT},
    {"left zero", unplaced, BETWEEN, zero_weight, WORLD_WEIGHT, OUT, CONTENTS_ZERO, false, true,
     ORDER_LEFT},
    {"left, lost", unplaced, BETWEEN, NULL, WORLD_MADE, OUT, CONTENTS_LOST, false, false,
     ORDER_LEFT},
    {"zero, in", unplaced, BETWEEN, zero_table, WORLD_TABLE, PAGES_PLACED, CONTENTS_ZERO, true,
     false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state unplaced_inside[] = {
    {"device", unplaced, 4, NULL, WORLD_END, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"zero", unplaced, 1, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_ZERO, false, false, ORDER_PLAIN},
    {"both, in", unplaced, 0, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"both, out", unplaced, 4, NULL, WORLD_USED, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"expected", unplaced, 0, NULL, WORLD_ROW, OUT, CONTENTS_HOST, false, false, ORDER_EXPECTED},
    {"left, out", unplaced, 5, NULL, WORLD_MOMENT, OUT, CONTENTS_HOST, false, true, ORDER_LEFT},
    {"left, undef", unplaced, 0, NULL, WORLD_MADE, OUT, CONTENTS_UNDEFINED, false, false,
     ORDER_LEFT},
    {"left, lost", unplaced, 5, NULL, WORLD_END, OUT, CONTENTS_LOST, false, false, ORDER_LEFT},
    {"left, owed", unplaced, 3, NULL, WORLD_MADE, OUT, CONTENTS_OWED, false, false, ORDER_LEFT},
    {"owed", unplaced, 5, NULL, WORLD_MADE, OUT, CONTENTS_OWED, false, false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state left[] = {
    {"device", placed, 4, leave, WORLD_END, PAGES_OWN, CONTENTS_DEVICE, false, false, ORDER_PLAIN},
    {"both", placed, 4, leave, WORLD_USED, PAGES_OWN, CONTENTS_BOTH, false, false, ORDER_PLAIN},
    {"host", placed, 4, leave, WORLD_WEIGHT, NOWHERE, CONTENTS_HOST, false, false, ORDER_PLAIN},
    {"undef", placed, 4, leave, WORLD_SCRATCH, PAGES_OWN, CONTENTS_UNDEFINED, false, false,
     ORDER_PLAIN},
    {"lost", placed, 8, leave, WORLD_END, NOWHERE, CONTENTS_LOST, false, false, ORDER_PLAIN},
    {"owed", unplaced, 5, leave, WORLD_MADE, NOWHERE, CONTENTS_OWED, false, false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state planned_pieces[] = {
    {"both, in, out", placed_shared, BETWEEN, NULL, WORLD_ROW, PAGES_PLACED, CONTENTS_BOTH, true,
     true, ORDER_PLAIN},
    {"in, out, inside", placed_shared, 0, NULL, WORLD_ROW, PAGES_PLACED, CONTENTS_BOTH, true, true,
     ORDER_PLAIN},
    {"host, out", placed_shared, 4, NULL, WORLD_ROW, OUT, CONTENTS_HOST, false, true, ORDER_PLAIN},
    {"expected", unplaced_shared, BETWEEN, NULL, WORLD_ROW, OUT, CONTENTS_HOST, false, false,
     ORDER_EXPECTED},
    {"left", unplaced_shared, 6, NULL, WORLD_ROW, OUT, CONTENTS_HOST, false, false, ORDER_LEFT},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state strict[] = {
    {"both, in", placed_strict, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true,
     false, ORDER_PLAIN},
    {"both, out", placed_strict, BETWEEN, NULL, WORLD_MOMENT, PAGES_PLACED, CONTENTS_BOTH, false,
     true, ORDER_PLAIN},
    {"host", placed_strict, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, false,
     ORDER_PLAIN},
    {"inside", placed_strict, 0, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"owed", placed_strict, 3, NULL, WORLD_MADE, OUT, CONTENTS_OWED, false, false, ORDER_PLAIN},
    {"no places", unplaced_strict, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true,
     false, ORDER_PLAIN},
    {"no places, inside", unplaced_strict, 0, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true,
     false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state captured[] = {
    {"undef", placed, CAPTURED + 4, NULL, WORLD_SCRATCH, PAGES_PLACED, CONTENTS_UNDEFINED, false,
     false, ORDER_PLAIN},
    {"device", placed, CAPTURED + 4, NULL, WORLD_END, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"zero", placed, CAPTURED + 1, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_ZERO, false, false,
     ORDER_PLAIN},
    {"both, in", placed, CAPTURED + 6, NULL, WORLD_WEIGHT, PAGES_PLACED, CONTENTS_BOTH, true, true,
     ORDER_PLAIN},
    {"both, out", placed, CAPTURED + 4, NULL, WORLD_USED, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"host, out", placed, CAPTURED + 5, NULL, WORLD_MOMENT, OUT, CONTENTS_HOST, false, true,
     ORDER_PLAIN},
    {"owed", placed, CAPTURED + 3, NULL, WORLD_MADE, OUT, CONTENTS_OWED, false, false, ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state launched[] = {
    {"device", launch, BETWEEN, NULL, WORLD_SUM, PAGES_PLACED, CONTENTS_DEVICE, false, false,
     ORDER_PLAIN},
    {"both", launch, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, false, false,
     ORDER_PLAIN},
    {"host, out", launch, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, true,
     ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

static const struct order_state iterated[] = {
    {"both, in", iterate, BETWEEN, NULL, WORLD_TABLE, PAGES_PLACED, CONTENTS_BOTH, true, false,
     ORDER_PLAIN},
    {"both, out", iterate, BETWEEN, NULL, WORLD_MOMENT, PAGES_PLACED, CONTENTS_BOTH, false, true,
     ORDER_PLAIN},
    {"host, out", iterate, BETWEEN, NULL, WORLD_WEIGHT, OUT, CONTENTS_HOST, false, true,
     ORDER_PLAIN},
    {NULL, NULL, 0, NULL, 0, 0, 0, false, false, 0},
};

const struct order_table order_tables[] = {
    {"Without a plan, between iterations", passive_between, ORDER_ANY_DEVICE},
    {"Without a plan, inside an iteration", passive_inside, ORDER_ANY_DEVICE},
    {"Pieces that share pages with their neighbours, without a plan", pieces, ORDER_ANY_DEVICE},
    {"With a plan, between iterations", placed_between, ORDER_ANY_DEVICE},
    {"With a plan, inside an iteration", placed_inside, ORDER_ANY_DEVICE},
    {"With a plan without places, between iterations", unplaced_between, ORDER_ANY_DEVICE},
    {"With a plan without places, inside an iteration", unplaced_inside, ORDER_ANY_DEVICE},
    {"After an iteration has left its plan", left, ORDER_ANY_DEVICE},
    {"Pieces that share pages with their neighbours, with a plan", planned_pieces,
     ORDER_ANY_DEVICE},
    {"In strict mode, with a plan", strict, ORDER_CUDA},
    {"In strict mode, with a plan, on host", strict, ORDER_HOST},
    {"While an iteration is captured", captured, ORDER_CUDA},
    {"After a graph was launched", launched, ORDER_CUDA},
    {"After another iteration of the same plan", iterated, ORDER_CUDA},
    {NULL, NULL, ORDER_ANY_DEVICE},
};

static uint64_t last(const struct world *world, const struct lane *lane,
                     const struct tensor *tensor)
{
    return adaptor_order_last(world->rig.order, lane->stream, tensor->span);
}

static void check_copies(const struct world *world, const struct order_state *state,
                         const struct tensor *tensor)
{
    const capu_context *context = world->rig.context;
    bool comes = !adaptor_order_is_after(world->rig.order, context->lanes.compute.stream,
                                         context->lanes.h2d.stream,
                                         last(world, &context->lanes.h2d, tensor));
    bool goes = !adaptor_order_is_after(world->rig.order, NULL, context->lanes.d2h.stream,
                                        last(world, &context->lanes.d2h, tensor));

    ck_assert_msg(comes == state->comes && goes == state->goes, "comes %d, goes %d", comes, goes);
    ck_assert_msg(!comes || !lane_has_passed(tensor->ready), "its copy back is not noted");
    ck_assert_msg(!goes || !lane_has_passed(tensor->left), "its copy out is not noted");
}

static enum order_more more_of(const capu_context *context, const struct tensor *tensor)
{
    if (!tensor_is_placed(tensor)) {
        return ORDER_PLAIN;
    }
    if (free_list_is_used(&context->residency)) {
        return free_list_is_expected(&context->residency, tensor)             ? ORDER_EXPECTED
               : free_list_has_left(&context->residency, tensor->guide_index) ? ORDER_LEFT
                                                                              : ORDER_PLAIN;
    }
    return context->guided.binding.tensors[tensor->guide_index].is_arriving ? ORDER_ARRIVING
                                                                            : ORDER_PLAIN;
}

void order_state_reach(struct world *world, const struct order_state *state)
{
    const struct tensor *tensor;

    state->reach(world);
    if (state->steps >= ORDER_CAPTURED) {
        world_begin_capture(world);
    } else if (state->steps != ORDER_BETWEEN) {
        world_begin(world);
    }
    for (int i = 0; i < state->steps % ORDER_CAPTURED; i++) {
        ck_assert(world_step(world));
    }
    if (state->then != NULL) {
        state->then(world);
    }
    tensor = world_tensor(world, state->item);
    ck_assert_int_eq(tensor->state.pages, state->pages);
    ck_assert_int_eq(tensor->state.contents, state->contents);
    check_copies(world, state, tensor);
    ck_assert_int_eq(more_of(world->rig.context, tensor), state->more);
    for (size_t i = 0; i < world->count; i++) {
        if (world->items[i].address != NULL) {
            world->items[i].may_be_lost = world_tensor(world, i)->state.contents == CONTENTS_LOST;
        }
    }
    rig_check(&world->rig);
}

/* While a tensor holds pages, its contents are lost or on the host only during a call: the call
   that maps it for them brings or makes them, or takes the pages away again. On the host only they
   also stay if the copy back could not be enqueued; then it holds pages of its own. */
void order_states_check(const struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        const struct tensor *tensor;

        if (world->items[i].address == NULL) {
            continue;
        }
        tensor = world_tensor(world, i);
        ck_assert(!tensor_is_mapped(tensor) || !tensor_is_lost(tensor));
        ck_assert(!tensor_is_mapped(tensor) || tensor->state.contents != CONTENTS_HOST ||
                  (tensor->state.pages == PAGES_OWN && world->rig.faults != NULL));
    }
}

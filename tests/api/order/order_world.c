/* The program of the tests of order, see order_world.h. */
#include "tests/api/order/order_world.h"

#include "tests/api/hand_plan.h"

#include "runtime/api/context.h"
#include "runtime/guide/plan_entry.h"

#include <stdlib.h>

/* The ops of a training iteration. All but the first of its calls are ops: it makes SUM zero, which
   FILL then does, as an op of its own, when ADD adds to it. */
enum { MAKE, USE, WORK, MOVE, FILL, ADD, BACK, END };

static const struct {
    const char *name;
    struct use uses[3];
    size_t count;
} steps[] = {
    {"zero", {{WORLD_SUM, CAPU_WRITE, 0, 0}}, 1},
    {"make", {{WORLD_TABLE, CAPU_READ, 0, 0}, {WORLD_MADE, CAPU_WRITE, 0, 0}}, 2},
    {"use",
     {{WORLD_MADE, CAPU_READ, 0, 0},
      {WORLD_WEIGHT, CAPU_READ, 0, 0},
      {WORLD_USED, CAPU_WRITE, 0, 0}},
     3},
    {"work",
     {{WORLD_USED, CAPU_READ, 0, 0},
      {WORLD_SCRATCH, CAPU_SCRATCH, 0, 0},
      {WORLD_END, CAPU_WRITE, 0, 0}},
     3},
    {"move", {{WORLD_END, CAPU_READ, 0, 0}, {WORLD_MOMENT, CAPU_UPDATE, 0, 0}}, 2},
    {"add",
     {{WORLD_USED, CAPU_READ, 0, 0}, {WORLD_SUM, CAPU_UPDATE, 0, 0}, {WORLD_ROW, CAPU_READ, 0, 0}},
     3},
    {"back", {{WORLD_MADE, CAPU_READ, 0, 0}, {WORLD_WEIGHT, CAPU_UPDATE, 0, 0}}, 2},
    {"end",
     {{WORLD_SUM, CAPU_READ, 0, 0},
      {WORLD_MOMENT, CAPU_UPDATE, 0, 0},
      {WORLD_SCRATCH, CAPU_SCRATCH, 0, 0}},
     3},
};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* In the plan, tensors have the numbers of their first accesses. */
enum { TABLE, MADE, WEIGHT, USED, SCRATCH, LAST, MOMENT, SUM, ROW };

/* TABLE and ROW come back before the iteration ends: their copies are under way between iterations,
   or ROW waits for pages. ROW leaves again without a use: another tensor gets its pages while the
   copy may be under way. MOMENT is copied out between iterations, and WEIGHT evicted. MADE is
   recomputed. */
static const struct hand_action plan[] = {
    {ACTION_EVICT, TABLE, MAKE, 0},       {ACTION_EVICT, MOMENT, MAKE, 0},
    {ACTION_EVICT, ROW, MAKE, 0},         {ACTION_PREFETCH, WEIGHT, USE, 0},
    {ACTION_DROP, MADE, USE, 0},          {ACTION_EVICT, WEIGHT, USE, 0},
    {ACTION_SAVE, USED, WORK, 0},         {ACTION_PREFETCH, MOMENT, MOVE, 0},
    {ACTION_EVICT, USED, MOVE, 0},        {ACTION_EVICT, MOMENT, MOVE, 0},
    {ACTION_PREFETCH, USED, ADD, 0},      {ACTION_PREFETCH, ROW, ADD, 0},
    {ACTION_PREFETCH, WEIGHT, ADD, 0},    {ACTION_EVICT, ROW, ADD, 0},
    {ACTION_PREFETCH, MOMENT, BACK, 0},   {ACTION_PREFETCH, TABLE, BACK, 0},
    {ACTION_RECOMPUTE, MADE, BACK, MAKE}, {ACTION_EVICT, TABLE, BACK, 0},
    {ACTION_EVICT, WEIGHT, BACK, 0},      {ACTION_PREFETCH, TABLE, END, 0},
    {ACTION_PREFETCH, ROW, END, 0},       {ACTION_SAVE, MOMENT, END, 0},
};

enum { PATIENCE = 100 }; /* iterations, until one can be captured */

static capu_status run_and_wait(capu_stream stream, const void *arguments)
{
    (void)capu_run_waited(1000);
    return mixing_run(stream, arguments);
}

static size_t ranges_of(const struct device_work *work, struct adaptor_order_range *ranges,
                        size_t most)
{
    const struct mixing *mixing = work->arguments;
    size_t count = 0;

    for (size_t i = 0; work->run == run_and_wait && i < mixing->count && i < most; i++) {
        const struct mixing_operand *operand = &mixing->operands[i];

        ranges[count++] = (struct adaptor_order_range){operand->address, operand->bytes,
                                                       .is_written = operand->role != CAPU_READ};
    }
    return count;
}

void world_init(struct world *world, struct rig_options options)
{
    options.is_late = true;
    options.link_bytes_per_s = RIG_FAST_LINK;
    if (options.host_budget_bytes == 0) {
        options.host_budget_bytes = PAGES(64); /* more would be pinned for nothing */
    }
    *world = (struct world){.seed = 1};
    rig_init(&world->rig, &options);
    rig_ranges = ranges_of;
    world_add(world, SMALL_BYTES, false);
    world_run(world, "init", &(struct use){WORLD_SMALL, CAPU_WRITE, 0, 0}, 1);
}

size_t world_add(struct world *world, uint64_t bytes, bool is_transient)
{
    struct item *item = &world->items[world->count];

    ck_assert_uint_lt(world->count, ITEM_MOST);
    *item = (struct item){.address = step_malloc(&world->rig, bytes),
                          .plain = calloc(1, bytes),
                          .bytes = bytes,
                          .is_transient = is_transient};
    ck_assert_ptr_nonnull(item->plain);
    item->home = item->address;
    RIG_OK(&world->rig, CAPU_DESCRIBE(world->rig.context, item->address, .name = "item",
                                      .lifetime = is_transient ? CAPU_TRANSIENT : CAPU_PERSISTENT));
    return world->count++;
}

void world_divide(struct world *world, size_t item, const size_t *sizes, size_t count)
{
    struct item whole = world->items[item];
    uint64_t from = 0;

    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_lt(world->count, ITEM_MOST);
        world->items[world->count] = whole;
        world->items[world->count].address = whole.address + from;
        world->items[world->count].plain = whole.plain + from;
        world->items[world->count].bytes = sizes[i];
        world->items[world->count++].is_piece = true;
        from += sizes[i];
    }
    world->items[item].address = NULL;
    world->items[item].home = NULL;
    world->items[item].is_defined = false;
}

struct tensor *world_tensor(const struct world *world, size_t item)
{
    return tensors_find(&world->rig.context->memory.tensors, world->items[item].address);
}

/* The op with its operands on the device, or on plain memory. */
static struct mixing mixing_of(const struct world *world, const struct use *uses, size_t count,
                               bool is_plain)
{
    struct mixing mixing = {.seed = world->seed, .count = count};

    for (size_t i = 0; i < count; i++) {
        const struct item *item = &world->items[uses[i].item];

        mixing.operands[i] = (struct mixing_operand){
            .address = (is_plain ? item->plain : item->address) + uses[i].from,
            .bytes = uses[i].bytes != 0 ? uses[i].bytes : item->bytes,
            .role = uses[i].role,
            .written_percent = 50};
    }
    return mixing;
}

/* The op on plain memory. */
static void run_plain(struct world *world, const struct use *uses, size_t count)
{
    struct mixing mixing = mixing_of(world, uses, count, true);

    for (size_t i = 0; i < count; i++) {
        struct mixing_operand *operand = &mixing.operands[i];

        if (operand->role == CAPU_WRITE_REST_ZERO) {
            memset(operand->address, 0, operand->bytes);
        }
    }
    mixing_run(NULL, &mixing);
    for (size_t i = 0; i < count; i++) {
        if (uses[i].role != CAPU_READ) {
            world->items[uses[i].item].is_defined = uses[i].role != CAPU_SCRATCH;
            world->items[uses[i].item].may_be_lost = false;
        }
    }
    world->seed++;
}

capu_status world_try_run(struct world *world, const char *name, const struct use *uses,
                          size_t count, bool waits)
{
    struct mixing mixing = mixing_of(world, uses, count, false);
    capu_operand operands[MIXING_OPERANDS];
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = waits ? run_and_wait : mixing_run,
                  .arguments = &mixing,
                  .argument_bytes = sizeof(mixing),
                  .operands = operands,
                  .operand_count = count,
                  .duration_ns = 1000};
    capu_status status;

    for (size_t i = 0; i < count; i++) {
        const struct mixing_operand *operand = &mixing.operands[i];

        operands[i] = capu_operand_of(operand->address, operand->bytes, (capu_role)operand->role);
    }
    status = capu_run(world->rig.context, &op);
    if (status == CAPU_OK) {
        run_plain(world, uses, count);
    }
    return status;
}

void world_run(struct world *world, const char *name, const struct use *uses, size_t count)
{
    RIG_OK(&world->rig, world_try_run(world, name, uses, count, false));
}

capu_status world_zero(struct world *world, size_t item, uint64_t from, uint64_t bytes)
{
    struct item *zeroed = &world->items[item];
    capu_status status = capu_zero(world->rig.context, zeroed->address + from, bytes);

    if (status == CAPU_OK) {
        memset(zeroed->plain + from, 0, bytes != 0 ? bytes : zeroed->bytes - from);
        zeroed->may_be_lost = zeroed->may_be_lost && bytes != 0;
        zeroed->is_defined = true;
    }
    return status;
}

void world_fill(struct world *world, unsigned char *to, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(world->seed + i * 7);
    }
    world->seed++;
}

/* ROW becomes the second of three pieces. */
static void share_row(struct world *world)
{
    static const size_t sizes[] = {13000, 13000, 10768};
    struct item *row = &world->items[WORLD_ROW];
    size_t whole = world_add(world, sizes[0] + sizes[1] + sizes[2], false);
    struct item *second = &world->items[whole + 2];

    world_run(world, "init", &(struct use){whole, CAPU_WRITE, 0, 0}, 1);
    RIG_OK(&world->rig, capu_split_list(world->rig.context, world->items[whole].address, sizes, 3));
    world_divide(world, whole, sizes, 3);
    RIG_OK(&world->rig, capu_free(world->rig.context, row->address));
    free(row->plain);
    *row = *second;
    *second = (struct item){.is_piece = true};
}

void world_make_training(struct world *world, bool is_placed, bool shares)
{
    for (size_t i = WORLD_TABLE; i <= WORLD_SUM; i++) {
        bool is_transient = i == WORLD_MADE || i == WORLD_USED || i == WORLD_END;

        ck_assert_uint_eq(world_add(world, ITEM_BYTES, is_transient), i);
        if (!is_transient) {
            world_run(world, "init", &(struct use){i, CAPU_WRITE, 0, 0}, 1);
        }
    }
    if (shares) {
        share_row(world);
    }
    world->is_training = true;
    world_iterate(world);
    hand_plan_give(&world->rig, world->items[WORLD_SUM].address, plan,
                   sizeof(plan) / sizeof(plan[0]), is_placed);
    world_iterate(world);
    ck_assert_ptr_nonnull(world->rig.context->guided.active);
    ck_assert_int_eq(world->rig.context->guided.active->guide->is_unplaced, !is_placed);
}

static void forget_transients(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        world->items[i].is_defined = world->items[i].is_defined && !world->items[i].is_transient;
    }
}

void world_begin(struct world *world)
{
    RIG_OK(&world->rig, capu_iteration_begin(world->rig.context, "train"));
    world->step = 0;
    forget_transients(world);
}

bool world_step_uses(const struct world *world, size_t item)
{
    for (size_t i = 0; world->step < STEPS && i < steps[world->step].count; i++) {
        if (steps[world->step].uses[i].item == item) {
            return true;
        }
    }
    return false;
}

bool world_step(struct world *world)
{
    size_t step = world->step++;

    if (step >= STEPS) {
        return false;
    }
    for (size_t i = 0; i < steps[step].count; i++) {
        const struct item *item = &world->items[steps[step].uses[i].item];
        uint32_t role = steps[step].uses[i].role;

        if (item->address == NULL ||
            ((role == CAPU_READ || role == CAPU_UPDATE) && !item->is_defined)) {
            return true;
        }
    }
    if (step == 0) {
        RIG_OK(&world->rig, world_zero(world, WORLD_SUM, 0, ITEM_BYTES));
    } else {
        world_run(world, steps[step].name, steps[step].uses, steps[step].count);
    }
    return true;
}

void world_iterate(struct world *world)
{
    world_begin(world);
    while (world_step(world)) {
    }
    world_end(world);
}

void world_begin_capture(struct world *world)
{
    if (world->graph == NULL) {
        RIG_OK(&world->rig, capu_graph_create(world->rig.context, &world->graph));
    }
    for (size_t i = 0; i < PATIENCE; i++) {
        capu_status status = capu_graph_begin(world->graph, "train");

        if (status == CAPU_OK) {
            world->step = 0;
            world->is_capturing = true;
            world->captured_seed = world->seed;
            forget_transients(world);
            return;
        }
        ck_assert_int_eq(status, CAPU_NOT_READY);
        world_iterate(world);
    }
    ck_abort_msg("no iteration can be captured: %s", capu_last_error(world->rig.context));
}

capu_status world_try_launch(struct world *world)
{
    capu_status status = capu_graph_launch(world->graph);
    uint64_t seed = world->seed;

    if (status != CAPU_OK) {
        return status;
    }
    forget_transients(world);
    world->seed = world->captured_seed;
    memset(world->items[WORLD_SUM].plain, 0, ITEM_BYTES);
    for (size_t i = 1; i < STEPS; i++) {
        run_plain(world, steps[i].uses, steps[i].count);
    }
    world->seed = seed;
    return CAPU_OK;
}

void world_end(struct world *world)
{
    if (world->is_capturing) {
        capu_status status = capu_graph_end(world->graph);

        ck_assert(status == CAPU_OK || status == CAPU_NOT_READY);
        world->is_capturing = false;
    } else {
        RIG_OK(&world->rig, capu_iteration_end(world->rig.context));
    }
}

/* What a plan gave up for good may be gone: only the program knows that it is read after all. */
static void check_item(struct world *world, size_t number)
{
    const struct item *item = &world->items[number];
    static unsigned char bytes[2 * ITEM_BYTES];
    bool may_be_lost = item->may_be_lost;
    capu_status status;

    if (item->address == NULL || !item->is_defined) {
        return;
    }
    may_be_lost =
        may_be_lost || (item->is_transient && tensor_is_lost(world_tensor(world, number)));
    status = capu_download(world->rig.context, bytes, item->address, item->bytes, 0);
    if (status == CAPU_CONTENTS_LOST && may_be_lost) {
        return;
    }
    ck_assert_msg(status == CAPU_OK, "item %zu: %s", number, capu_last_error(world->rig.context));
    for (size_t i = 0; i < item->bytes; i++) {
        if (bytes[i] != item->plain[i]) {
            ck_abort_msg("item %zu: byte %zu is %u, not %u", number, i, bytes[i], item->plain[i]);
        }
    }
}

void world_check(struct world *world, size_t first, size_t count)
{
    if (world->download != NULL) {
        RIG_OK(&world->rig, capu_synchronize(world->rig.context));
        ck_assert_msg(memcmp(world->download, world->expected, world->download_bytes) == 0,
                      "a download has other bytes");
        free(world->download);
        free(world->expected);
        world->download = NULL;
    }
    for (size_t i = first; i < world->count && i < first + count; i++) {
        check_item(world, i);
    }
    rig_check(&world->rig);
}

void world_finish(struct world *world)
{
    for (size_t i = 0; i < world->count; i++) {
        if (!world->items[i].is_piece) {
            free(world->items[i].plain);
        }
    }
    capu_graph_destroy(world->graph);
    rig_finish(&world->rig);
}

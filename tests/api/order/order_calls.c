/* The calls of the table of order, see order_calls.h. */
#include "tests/api/order/order_calls.h"

#include <stdio.h>
#include <stdlib.h>

/* A part that shares pages with the rest, and lies within one page and the next. */
enum { PART_FROM = 100, PART_BYTES = 5000 };

static capu_status run_role(struct world *world, size_t item, capu_role role)
{
    return world_try_run(world, "call", &(struct use){item, role, 0, 0}, 1, false);
}

static capu_status run_read(struct world *world, size_t item)
{
    const struct use uses[] = {{item, CAPU_READ, 0, 0}, {WORLD_SMALL, CAPU_WRITE, 0, 0}};

    return world_try_run(world, "call", uses, 2, false);
}

static capu_status run_write(struct world *world, size_t item)
{
    return run_role(world, item, CAPU_WRITE);
}

static capu_status run_update(struct world *world, size_t item)
{
    return run_role(world, item, CAPU_UPDATE);
}

/* What is not written of an undefined tensor may contain anything: that is not compared. */
static capu_status run_write_part(struct world *world, size_t item)
{
    bool was_defined = world->items[item].is_defined;
    capu_status status = world_try_run(
        world, "call", &(struct use){item, CAPU_WRITE, PART_FROM, PART_BYTES}, 1, false);

    world->items[item].is_defined = was_defined;
    return status;
}

static capu_status run_write_rest_zero(struct world *world, size_t item)
{
    return run_role(world, item, CAPU_WRITE_REST_ZERO);
}

static capu_status run_scratch(struct world *world, size_t item)
{
    return run_role(world, item, CAPU_SCRATCH);
}

/* As the ops of capuchin/parallel.h: the host function waits, and has a workspace. */
static capu_status run_collective(struct world *world, size_t item)
{
    const struct use uses[] = {{item, CAPU_UPDATE, 0, 0}, {WORLD_SMALL, CAPU_SCRATCH, 0, 0}};
    capu_status status = world_try_run(world, "allreduce", uses, 2, true);

    return status;
}

static capu_status access_item(struct world *world, size_t item, capu_role role)
{
    struct item *accessed = &world->items[item];
    capu_operand operand = capu_operand_of(accessed->address, accessed->bytes, role);
    capu_op op = {.size = sizeof(op), .name = "own", .operands = &operand, .operand_count = 1};
    capu_status status = capu_access_begin(world->rig.context, &op);

    if (status != CAPU_OK) {
        return status;
    }
    if (!world->is_capturing) { /* the host does not touch what has not run */
        adaptor_order_touch(world->rig.order, accessed->address, accessed->bytes,
                            role != CAPU_READ);
        ck_assert_msg(memcmp(accessed->address, accessed->plain, accessed->bytes) == 0,
                      "the host sees other bytes");
        if (role != CAPU_READ) {
            world_fill(world, accessed->address, accessed->bytes);
            memcpy(accessed->plain, accessed->address, accessed->bytes);
        }
    }
    return capu_access_end(world->rig.context);
}

static capu_status access_read(struct world *world, size_t item)
{
    return access_item(world, item, CAPU_READ);
}

static capu_status access_update(struct world *world, size_t item)
{
    return access_item(world, item, CAPU_UPDATE);
}

static capu_status upload_bytes(struct world *world, size_t item, uint64_t from, uint64_t bytes,
                                bool discards)
{
    static unsigned char source[PAGES(2 * ITEM_PAGES)];
    unsigned char *to = world->items[item].address + from;
    capu_status status;

    world_fill(world, source, bytes);
    status = discards
                 ? capu_upload(world->rig.context, to, source, bytes, CAPU_TRANSFER_REST_UNDEFINED)
                 : capu_upload(world->rig.context, to, source, bytes, 0);
    if (status == CAPU_OK) {
        memcpy(world->items[item].plain + from, source, bytes);
    }
    memset(source, 0xee, bytes); /* it was the caller's again */
    return status;
}

static capu_status upload(struct world *world, size_t item)
{
    capu_status status = upload_bytes(world, item, 0, world->items[item].bytes, false);

    world->items[item].is_defined = world->items[item].is_defined || status == CAPU_OK;
    return status;
}

static capu_status upload_part(struct world *world, size_t item)
{
    return upload_bytes(world, item, PART_FROM, PART_BYTES, false);
}

static capu_status upload_discard(struct world *world, size_t item)
{
    capu_status status = upload_bytes(world, item, 0, world->items[item].bytes, true);

    world->items[item].is_defined = world->items[item].is_defined || status == CAPU_OK;
    return status;
}

static capu_status download_bytes(struct world *world, size_t item, uint64_t from, uint64_t bytes,
                                  bool waits)
{
    const struct item *read = &world->items[item];
    capu_status status;

    world->download = calloc(1, bytes);
    world->expected = malloc(bytes);
    world->download_bytes = bytes;
    ck_assert(world->download != NULL && world->expected != NULL);
    memcpy(world->expected, read->plain + from, bytes);
    status =
        waits ? capu_download(world->rig.context, world->download, read->address + from, bytes, 0)
              : capu_download(world->rig.context, world->download, read->address + from, bytes,
                              CAPU_TRANSFER_ASYNC);
    if (status != CAPU_OK) {
        memcpy(world->expected, world->download, bytes);
    } else if (waits) {
        ck_assert_msg(memcmp(world->download, world->expected, bytes) == 0,
                      "the download has other bytes");
    }
    return status;
}

static capu_status download(struct world *world, size_t item)
{
    return download_bytes(world, item, 0, world->items[item].bytes, true);
}

static capu_status download_part(struct world *world, size_t item)
{
    return download_bytes(world, item, PART_FROM, PART_BYTES, true);
}

static capu_status download_async(struct world *world, size_t item)
{
    return download_bytes(world, item, 0, world->items[item].bytes, false);
}

static capu_status copy(struct world *world, size_t to, uint64_t to_from, size_t from,
                        uint64_t from_from, uint64_t bytes)
{
    struct item *target = &world->items[to];
    const struct item *source = &world->items[from];
    capu_status status = capu_copy(world->rig.context, target->address + to_from,
                                   source->address + from_from, bytes);

    if (status == CAPU_OK) {
        memcpy(target->plain + to_from, source->plain + from_from, bytes);
        target->is_defined = target->is_defined || bytes == target->bytes;
    }
    return status;
}

static capu_status copy_from(struct world *world, size_t item)
{
    return copy(world, WORLD_SMALL, 0, item, PART_FROM, SMALL_BYTES);
}

static capu_status copy_to(struct world *world, size_t item)
{
    size_t other = item != world->other ? world->other : world->other - 1;
    uint64_t bytes = world->items[item].bytes < world->items[other].bytes
                         ? world->items[item].bytes
                         : world->items[other].bytes;

    return copy(world, item, 0, other, 0, bytes);
}

static capu_status copy_to_part(struct world *world, size_t item)
{
    return copy(world, item, PART_FROM, WORLD_SMALL, 0, SMALL_BYTES);
}

static capu_status zero(struct world *world, size_t item)
{
    return world_zero(world, item, 0, world->items[item].bytes);
}

static capu_status zero_part(struct world *world, size_t item)
{
    bool was_defined = world->items[item].is_defined;
    capu_status status = world_zero(world, item, PART_FROM, PART_BYTES);

    world->items[item].is_defined = was_defined;
    return status;
}

static capu_status zero_and_update(struct world *world, size_t item)
{
    capu_status status = zero(world, item);

    return status == CAPU_OK ? run_update(world, item) : status;
}

static capu_status split(struct world *world, size_t item)
{
    return capu_split(world->rig.context, world->items[item].address, PAGES(1) + 200);
}

/* The calls for allocations concern all items of one. */
static uint64_t allocated_bytes(const struct world *world, const void *home)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < world->count; i++) {
        bytes += world->items[i].home == home ? world->items[i].bytes : 0;
    }
    return bytes;
}

static capu_status lengthen(struct world *world, size_t item, uint64_t bytes)
{
    unsigned char *home = world->items[item].home;
    void *address;
    capu_status status =
        capu_realloc(world->rig.context, home, allocated_bytes(world, home) + bytes, &address);

    for (size_t i = 0; i < world->count && status == CAPU_OK; i++) {
        if (world->items[i].home == home) {
            world->items[i].address = (unsigned char *)address + (world->items[i].address - home);
            world->items[i].home = address;
            /* A transient's contents do not move between iterations, see capu_realloc. */
            world->items[i].is_defined =
                world->items[i].is_defined &&
                (address == (void *)home || world->rig.context->iteration.is_open ||
                 !world->items[i].is_transient);
        }
    }
    return status;
}

static capu_status realloc_in_place(struct world *world, size_t item)
{
    return lengthen(world, item, ITEM_SLACK);
}

static capu_status realloc_and_move(struct world *world, size_t item)
{
    return lengthen(world, item, PAGES(2));
}

static capu_status realloc_smaller(struct world *world, size_t item)
{
    void *address;
    capu_status status =
        capu_realloc(world->rig.context, world->items[item].home, PART_BYTES, &address);

    ck_assert(status != CAPU_OK || address == world->items[item].home);
    return status;
}

static capu_status free_item(struct world *world, size_t item)
{
    void *home = world->items[item].home;
    capu_status status = capu_free(world->rig.context, home);

    for (size_t i = 0; i < world->count && status == CAPU_OK; i++) {
        if (world->items[i].home == home) {
            world->items[i].address = NULL;
            world->items[i].home = NULL;
            world->items[i].is_defined = false;
        }
    }
    return status;
}

static capu_status free_and_allocate(struct world *world, size_t item)
{
    capu_status status = free_item(world, item);
    size_t fresh;

    if (status == CAPU_OK) {
        fresh = world_add(world, ITEM_BYTES, false);
        status = run_role(world, fresh, CAPU_WRITE);
    }
    return status;
}

static capu_status describe(struct world *world, size_t item)
{
    return CAPU_DESCRIBE(world->rig.context, world->items[item].address, .name = "again",
                         .lifetime =
                             world->items[item].is_transient ? CAPU_TRANSIENT : CAPU_PERSISTENT);
}

/* The calls that only look. */
static capu_status look(struct world *world, size_t item)
{
    capu_tensor_state state = {.size = sizeof(state)};
    capu_report report = CAPU_REPORT_INIT;
    FILE *file = fopen("/dev/null", "w");
    capu_status status = capu_report_get(world->rig.context, &report);

    ck_assert(status == CAPU_OK || status == CAPU_NOT_READY);
    ck_assert_ptr_nonnull(file);
    RIG_OK(&world->rig, capu_memory_print(world->rig.context, file));
    fclose(file);
    status = capu_tensor_query(world->rig.context, world->items[item].address, &state);
    ck_assert(status != CAPU_OK || state.is_defined == world->items[item].is_defined);
    return status;
}

static capu_status change_budget(struct world *world, size_t item)
{
    capu_status status = capu_budget_set(world->rig.context, PAGES(4 * ITEM_PAGES + 1));

    (void)item;
    return status == CAPU_OK ? capu_budget_set(world->rig.context, 0) : status;
}

static capu_status begin_or_end(struct world *world, size_t item)
{
    (void)item;
    if (world->rig.context->iteration.is_open) {
        world_end(world);
    } else if (world->graph != NULL) {
        return world_try_launch(world);
    } else {
        world_begin(world);
    }
    return CAPU_OK;
}

/* The program goes on until it uses the item, in the next iteration at the latest. */
static capu_status go_on(struct world *world, size_t item)
{
    if (!world->is_training) {
        return CAPU_UNSUPPORTED;
    }
    for (size_t i = 0; i < 3; i++) {
        bool is_used = false;

        if (!world->rig.context->iteration.is_open) {
            world_begin(world);
        }
        do {
            is_used = world_step_uses(world, item);
        } while (world_step(world) && !is_used);
        if (is_used) {
            return CAPU_OK;
        }
        world_end(world);
    }
    ck_abort_msg("item %zu is not used", item);
    return CAPU_OK;
}

static capu_status synchronize(struct world *world, size_t item)
{
    (void)item;
    return capu_synchronize(world->rig.context);
}

const struct order_call order_calls[] = {
    {"run: read", run_read},
    {"run: write", run_write},
    {"run: update", run_update},
    {"run: write a part", run_write_part},
    {"run: write, rest zero", run_write_rest_zero},
    {"run: scratch", run_scratch},
    {"run: collective", run_collective},
    {"access: read", access_read},
    {"access: update", access_update},
    {"upload", upload},
    {"upload a part", upload_part},
    {"upload, discard", upload_discard},
    {"download", download},
    {"download a part", download_part},
    {"download, async", download_async},
    {"copy from", copy_from},
    {"copy to", copy_to},
    {"copy to a part", copy_to_part},
    {"zero", zero},
    {"zero a part", zero_part},
    {"zero, then update", zero_and_update},
    {"split", split},
    {"realloc in place", realloc_in_place},
    {"realloc and move", realloc_and_move},
    {"realloc smaller", realloc_smaller},
    {"free", free_item},
    {"free, allocate", free_and_allocate},
    {"describe", describe},
    {"query, report, print", look},
    {"budget down and up", change_budget},
    {"begin, end, launch", begin_or_end},
    {"go on to its use", go_on},
    {"synchronize", synchronize},
    {NULL, NULL},
};

/*
 * Host arena: exact sizes, scattered blocks, waiting for positions, the budget, a failure of every
 * call, and a second thread that grows the arena. On the host device, with a gate that holds up the
 * streams.
 */
#include "allocator/host_arena.h"

#include "tests/support/adaptor_fault.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/unit/allocator/valid.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)

static struct device *new_device(void)
{
    const struct device_options options = {.memory_bytes = MIB, .page_bytes = 65536};
    struct device *host;
    struct device *device;

    ck_assert_int_eq(host_device_create(&options, &host, NULL, 0), CAPU_OK);
    ck_assert_int_eq(adaptor_fault_create(host, &device), CAPU_OK);
    return device;
}

static const struct lane_position past = {NULL, 0};

START_TEST(sizes_are_exact_and_the_budget_is_a_hard_limit)
{
    struct device *device = new_device();
    struct host_arena *arena;
    struct host_block block = {0};
    struct host_block rest = {0};

    ck_assert_int_eq(host_arena_create(device, MIB + 100, &arena), CAPU_OK);
    ck_assert_int_eq(host_arena_take(arena, 1, &block), CAPU_NOT_READY);
    ck_assert_int_eq(host_arena_take(arena, 0, &block), CAPU_INVALID);
    ck_assert_int_eq(host_arena_take(arena, UINT64_MAX, &block), CAPU_NOT_READY);
    ck_assert_int_eq(host_arena_grow(arena, UINT64_MAX), CAPU_HOST_OVER_BUDGET);
    ck_assert_int_eq(host_arena_grow(arena, MIB + 128), CAPU_HOST_OVER_BUDGET);
    ck_assert_int_eq(host_arena_grow(arena, 0), CAPU_INVALID);
    ck_assert_int_eq(host_arena_grow(arena, 10), CAPU_OK);
    ck_assert_uint_eq(host_arena_chunk_bytes(arena), MIB + 64); /* the usual chunk is larger */
    ck_assert_int_eq(host_arena_grow(arena, 1), CAPU_HOST_OVER_BUDGET);
    ck_assert_int_eq(host_arena_take(arena, 1000, &block), CAPU_OK);
    ck_assert_uint_eq(block.extent_count, 1);
    ck_assert_uint_eq(block.first.bytes, 1000);
    ck_assert_uint_eq((uintptr_t)block.first.address % 64, 0);
    ck_assert_uint_eq(host_arena_used_bytes(arena), 1024);
    ck_assert_int_eq(host_arena_take(arena, MIB + 64 - 1023, &rest), CAPU_NOT_READY);
    ck_assert_int_eq(host_arena_take(arena, MIB + 64 - 1024, &rest), CAPU_OK);
    CHECK_VALID(host_arena_validate, arena);
    host_arena_give(arena, &block, past);
    ck_assert_uint_eq(block.extent_count, 0);
    host_arena_give(arena, &rest, past);
    ck_assert_uint_eq(host_arena_used_bytes(arena), 0);
    CHECK_VALID(host_arena_validate, arena);
    host_arena_destroy(arena);
    host_arena_destroy(NULL);
    device_destroy(device);
}
END_TEST

/* What is left of the budget is too small for a block, but free memory elsewhere makes up for it.
 */
START_TEST(the_whole_budget_can_be_used)
{
    struct device *device = new_device();
    struct host_arena *arena;
    struct host_block large = {0};
    struct host_block block = {0};

    ck_assert_int_eq(host_arena_create(device, 40 * MIB, &arena), CAPU_OK);
    ck_assert_int_eq(host_arena_grow(arena, 36 * MIB), CAPU_OK);
    ck_assert_uint_eq(host_arena_chunk_bytes(arena), 36 * MIB);
    ck_assert_int_eq(host_arena_take(arena, 31 * MIB, &large), CAPU_OK);
    ck_assert_int_eq(host_arena_take(arena, 9 * MIB, &block), CAPU_NOT_READY);
    ck_assert_int_eq(host_arena_grow(arena, 9 * MIB + 1), CAPU_HOST_OVER_BUDGET);
    ck_assert_int_eq(host_arena_grow(arena, 9 * MIB), CAPU_OK);
    ck_assert_uint_eq(host_arena_chunk_bytes(arena), 40 * MIB);
    ck_assert_int_eq(host_arena_take(arena, 9 * MIB, &block), CAPU_OK);
    ck_assert_uint_eq(block.extent_count, 2);
    CHECK_VALID(host_arena_validate, arena);
    ck_assert_int_eq(host_arena_grow(arena, 1), CAPU_HOST_OVER_BUDGET);
    host_arena_destroy(arena);
    device_destroy(device);
}
END_TEST

static struct host_extent *extent_of(struct host_block *block, size_t index)
{
    return index == 0 ? &block->first : &block->more[index - 1];
}

static uint64_t block_bytes(struct host_block *block)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < block->extent_count; i++) {
        bytes += extent_of(block, i)->bytes;
    }
    return bytes;
}

START_TEST(a_block_can_use_scattered_bytes)
{
    struct device *device = new_device();
    struct host_arena *arena;
    struct host_block blocks[1024] = {{{NULL, 0}, NULL, 0}};
    struct host_block large;
    capu_status status;

    ck_assert_int_eq(host_arena_create(device, MIB, &arena), CAPU_OK);
    ck_assert_int_eq(host_arena_grow(arena, MIB), CAPU_OK);
    for (size_t i = 0; i < 1024; i++) {
        ck_assert_int_eq(host_arena_take(arena, 1024, &blocks[i]), CAPU_OK);
    }
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 1024; i += 2) {
            host_arena_give(arena, &blocks[i], past);
        }
        ck_assert_int_eq(host_arena_take(arena, MIB / 2 + 1, &large), CAPU_NOT_READY);
        ck_assert_int_eq(host_arena_take_whole(arena, 1025, &large), CAPU_NOT_READY);
        ck_assert_int_eq(host_arena_take_whole(arena, 1024, &large), CAPU_OK);
        ck_assert_uint_eq(large.extent_count, 1);
        host_arena_give(arena, &large, past);
        /* From the second round on, taking the block allocates nothing. */
        malloc_faults_arm(round == 0 ? UINT64_MAX : 1, true);
        status = host_arena_take(arena, MIB / 2 - 3, &large);
        malloc_faults_arm(0, false);
        ck_assert_int_eq(status, CAPU_OK);
        ck_assert_uint_eq(large.extent_count, 512);
        ck_assert_uint_eq(block_bytes(&large), MIB / 2 - 3);
        CHECK_VALID(host_arena_validate, arena);
        for (size_t i = 0; i < large.extent_count; i++) {
            struct host_extent *extent = extent_of(&large, i);

            memset(extent->address, 7, extent->bytes);
        }
        host_arena_give(arena, &large, past);
        for (size_t i = 0; i < 1024; i += 2) {
            ck_assert_int_eq(host_arena_take(arena, 1024, &blocks[i]), CAPU_OK);
        }
    }
    for (size_t i = 0; i < 1024; i += 2) {
        host_arena_give(arena, &blocks[i], past);
    }
    ck_assert_int_eq(host_arena_take(arena, MIB / 2, &large), CAPU_OK);
    host_arena_destroy(arena); /* while blocks are taken: the arena owns their lists */
    device_destroy(device);
}
END_TEST

static capu_status wait_at_gate(capu_stream stream, const void *arguments)
{
    atomic_bool *const *gate = arguments;

    (void)stream;
    while (!atomic_load(*gate)) {
        sched_yield();
    }
    return CAPU_OK;
}

/* Marks the lane after a gate that is closed. */
static struct lane_position mark_behind(struct lane *lane, atomic_bool *const *gate)
{
    const struct device_work work = {
        .name = "gate", .run = wait_at_gate, .arguments = gate, .duration_ns = 0};
    struct lane_position position;

    ck_assert_int_eq(device_run(lane->device, lane->stream, &work), CAPU_OK);
    ck_assert_int_eq(lane_mark(lane, &position), CAPU_OK);
    return position;
}

START_TEST(blocks_are_reused_after_their_positions)
{
    struct device *device = new_device();
    atomic_bool opened[2] = {false, false};
    atomic_bool *gates[2] = {&opened[0], &opened[1]};
    struct lane lanes[2];
    struct lane_position after[2];
    struct lane_position oldest;
    struct host_arena *arena;
    struct host_block blocks[2];
    struct host_block block;

    ck_assert_int_eq(host_arena_create(device, 2 * MIB, &arena), CAPU_OK);
    ck_assert_int_eq(host_arena_grow(arena, 2 * MIB), CAPU_OK);
    ck_assert(!host_arena_oldest(arena, &oldest));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(lane_init(&lanes[i], device, DEVICE_D2H, NULL, false), CAPU_OK);
        after[i] = mark_behind(&lanes[i], &gates[i]);
        ck_assert_int_eq(host_arena_take(arena, MIB, &blocks[i]), CAPU_OK);
    }
    host_arena_give(arena, &blocks[0], after[0]);
    host_arena_give(arena, &blocks[1], after[1]);
    ck_assert_uint_eq(host_arena_used_bytes(arena), 0);
    CHECK_VALID(host_arena_validate, arena);
    ck_assert_int_eq(host_arena_take(arena, 1, &block), CAPU_NOT_READY);
    ck_assert(host_arena_oldest(arena, &oldest));
    ck_assert_ptr_eq(oldest.lane, &lanes[0]);

    /* The newer position passes first; the other lane does not delay it. */
    atomic_store(&opened[1], true);
    ck_assert_int_eq(lane_wait(after[1]), CAPU_OK);
    ck_assert_int_eq(host_arena_take(arena, MIB + 1, &block), CAPU_NOT_READY);
    ck_assert_int_eq(host_arena_take(arena, MIB, &block), CAPU_OK);
    CHECK_VALID(host_arena_validate, arena);
    ck_assert(host_arena_oldest(arena, &oldest));
    ck_assert_ptr_eq(oldest.lane, &lanes[0]);
    host_arena_give(arena, &block, after[1]);

    atomic_store(&opened[0], true);
    ck_assert_int_eq(lane_wait(after[0]), CAPU_OK);
    /* Room that no take has collected yet: a caller that found none before must try again. */
    ck_assert(host_arena_oldest(arena, &oldest));
    ck_assert_ptr_eq(oldest.lane, &lanes[0]);
    ck_assert_int_eq(host_arena_take(arena, 2 * MIB, &block), CAPU_OK);
    ck_assert(!host_arena_oldest(arena, &oldest));
    CHECK_VALID(host_arena_validate, arena);
    lane_finish(&lanes[0]);
    lane_finish(&lanes[1]);
    host_arena_destroy(arena);
    device_destroy(device);
}
END_TEST

#define HELD 100

/* Each block is filled with its number, so that overlapping blocks are found. */
START_TEST(blocks_never_overlap)
{
    static struct host_block held[HELD];
    uint64_t state = seed_start("host_arena");
    struct device *device = new_device();
    struct host_arena *arena;
    struct lane lane;
    uint64_t used = 0;
    size_t scattered = 0;

    ck_assert_int_eq(lane_init(&lane, device, DEVICE_D2H, NULL, false), CAPU_OK);
    ck_assert_int_eq(host_arena_create(device, MIB, &arena), CAPU_OK);
    ck_assert_int_eq(host_arena_grow(arena, MIB / 2), CAPU_OK);
    for (int step = 0; step < 8000; step++) {
        size_t index = seed_below(&state, HELD);
        struct host_block *block = &held[index];
        uint64_t bytes = 1 + seed_below(&state, seed_below(&state, 4) == 0 ? 100000 : 9000);

        if (block->extent_count == 0) {
            capu_status status = host_arena_take(arena, bytes, block);

            ck_assert(status == CAPU_OK || status == CAPU_NOT_READY);
            if (status == CAPU_OK) {
                ck_assert_uint_eq(block_bytes(block), bytes);
                used += (bytes + 63) / 64 * 64;
                scattered += block->extent_count > 1;
            }
            for (size_t i = 0; i < block->extent_count; i++) {
                memset(extent_of(block, i)->address, (int)index, extent_of(block, i)->bytes);
            }
        } else {
            struct lane_position after;

            for (size_t i = 0; i < block->extent_count; i++) {
                const unsigned char *byte = extent_of(block, i)->address;
                uint64_t last = extent_of(block, i)->bytes - 1;

                ck_assert(byte[0] == index && byte[last / 2] == index && byte[last] == index);
            }
            used -= (block_bytes(block) + 63) / 64 * 64;
            ck_assert_int_eq(lane_mark(&lane, &after), CAPU_OK);
            host_arena_give(arena, block, after);
            if (seed_below(&state, 2) == 0) {
                ck_assert_int_eq(lane_wait(after), CAPU_OK);
                lane_retire(after);
            }
        }
        ck_assert_uint_eq(host_arena_used_bytes(arena), used);
        CHECK_VALID(host_arena_validate, arena);
    }
    ck_assert_uint_gt(scattered, 0);
    lane_finish(&lane);
    host_arena_destroy(arena);
    device_destroy(device);
}
END_TEST

/* Grows the arena to 32 MiB, fragments it, and takes a scattered block. */
static capu_status churn(struct device *device, struct host_arena **arena)
{
    struct host_block blocks[100];
    capu_status status = host_arena_create(device, 40 * MIB, arena);

    for (int i = 0; i < 8 && status == CAPU_OK; i++) {
        status = host_arena_grow(*arena, MIB); /* adds the usual 4 MiB */
    }
    for (size_t i = 0; i < 100 && status == CAPU_OK; i++) {
        status = host_arena_take(*arena, 32 * MIB / 100 / 64 * 64, &blocks[i]);
    }
    for (size_t i = 0; i < 100 && status == CAPU_OK; i += 2) {
        host_arena_give(*arena, &blocks[i], past);
    }
    if (status == CAPU_OK) {
        status = host_arena_take(*arena, 15 * MIB, &blocks[0]);
    }
    return status;
}

/* _i: bit 0: all later calls fail too; bit 1: host allocations fail instead of device calls. */
START_TEST(every_call_can_fail)
{
    bool is_lasting = (_i & 1) != 0;
    bool is_host = (_i & 2) != 0;
    uint64_t call = 1;
    uint64_t hits = 1;

    for (; hits > 0; call++) {
        struct device *device = new_device();
        struct host_arena *arena = NULL;
        struct host_block block;
        capu_status status;

        if (is_host) {
            malloc_faults_arm(call, is_lasting);
        } else {
            adaptor_fault_arm(device, &(struct adaptor_fault_plan){.slot = ADAPTOR_HOST_ALLOC,
                                                                   .call = call,
                                                                   .status = CAPU_DEVICE_FAILED,
                                                                   .is_lasting = is_lasting});
        }
        status = churn(device, &arena);
        malloc_faults_arm(0, false);
        hits = is_host ? malloc_faults_hits() : adaptor_fault_hits(device);
        adaptor_fault_arm(device, NULL);
        if (hits == 0) {
            ck_assert_int_eq(status, CAPU_OK);
        } else if (!is_host) {
            ck_assert_int_eq(status, CAPU_DEVICE_FAILED);
        } else {
            /* If the usual chunk cannot be allocated, a smaller one is tried, and later requests
               find less memory. */
            ck_assert(status == CAPU_NO_HOST_MEMORY || status == CAPU_NOT_READY);
        }
        if (arena != NULL) {
            const char *breach = "";

            ck_assert_msg(host_arena_validate(arena, &breach), "call %d: %s", (int)call, breach);
            if (host_arena_chunk_bytes(arena) < 8 * MIB) {
                ck_assert_int_eq(host_arena_grow(arena, 8 * MIB), CAPU_OK);
            }
            ck_assert_int_eq(host_arena_take(arena, 64, &block), CAPU_OK);
            CHECK_VALID(host_arena_validate, arena);
        }
        host_arena_destroy(arena);
        device_destroy(device);
    }
    ck_assert_uint_gt(call, is_host ? 10 : 2);
}
END_TEST

static void *grow_slowly(void *argument)
{
    struct host_arena *arena = argument;

    for (int i = 0; i < 200; i++) {
        /* The usual chunks use the budget up, so later growths fail. */
        capu_status status = host_arena_grow(arena, 65536);

        if (status != CAPU_OK && status != CAPU_HOST_OVER_BUDGET) {
            return arena;
        }
    }
    return NULL;
}

START_TEST(a_second_thread_can_grow_the_arena)
{
    struct device *device = new_device();
    struct host_arena *arena;
    struct host_block blocks[32] = {{{NULL, 0}, NULL, 0}};
    pthread_t thread;
    void *failed;
    size_t taken = 0;

    ck_assert_int_eq(host_arena_create(device, 64 * MIB, &arena), CAPU_OK);
    ck_assert_int_eq(pthread_create(&thread, NULL, grow_slowly, arena), 0);
    for (size_t step = 0; step < 20000 || taken < 1000; step++) {
        struct host_block *block = &blocks[step % 32];

        if (block->extent_count > 0) {
            host_arena_give(arena, block, past);
        } else if (host_arena_take(arena, 1 + step * 97 % 3000000, block) == CAPU_OK) {
            memset(block->first.address, 1, 1);
            taken++;
        }
        ck_assert_uint_le(host_arena_used_bytes(arena), host_arena_chunk_bytes(arena));
    }
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_assert_uint_eq(host_arena_chunk_bytes(arena), 64 * MIB);
    CHECK_VALID(host_arena_validate, arena);
    host_arena_destroy(arena);
    device_destroy(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host_arena");
    TCase *tcase = tcase_create("host_arena");

    tcase_add_test(tcase, sizes_are_exact_and_the_budget_is_a_hard_limit);
    tcase_add_test(tcase, the_whole_budget_can_be_used);
    tcase_add_test(tcase, a_block_can_use_scattered_bytes);
    tcase_add_test(tcase, blocks_are_reused_after_their_positions);
    tcase_add_test(tcase, blocks_never_overlap);
    tcase_add_loop_test(tcase, every_call_can_fail, 0, 4);
    tcase_add_test(tcase, a_second_thread_can_grow_the_arena);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

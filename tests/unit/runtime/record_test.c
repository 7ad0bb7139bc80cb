/* Records: what is packed comes back as it was given, in little memory. */
#include "runtime/iteration/record.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { OPS = 500, TENSORS = 40, MOST = 30, SITES = 300 };

static unsigned char memory[TENSORS * 64];

static capu_status run_first(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

static capu_status run_second(capu_stream stream, const void *arguments)
{
    return run_first(stream, arguments);
}

/* An op as it is given. */
struct given {
    struct call call;
    const char *segment;
    capu_operand operands[MOST];
    uint32_t tensors[MOST]; /* of its accesses */
    uint32_t roles[MOST];
    bool is_partial[MOST];
    size_t access_count;
};

static struct given given[OPS];

/* The tensor's entry, which the tracker makes at its first access. */
static void add_tensors(struct record *record)
{
    for (size_t i = 0; i < TENSORS; i++) {
        record->tensors[record->tensor_count++] =
            (struct record_tensor){.address = memory + i * 64, .tensor_bytes = 64};
    }
}

static void draw(struct given *op, uint64_t *state)
{
    static const char *const segments[] = {NULL, "forward", "backward"};

    *op = (struct given){
        .call = {.kind = seed_below(state, 2) == 0 ? CALL_RUN : CALL_COPY,
                 .name = segments[1 + seed_below(state, 2)],
                 .run = seed_below(state, 2) == 0 ? run_first : run_second,
                 .replay = seed_below(state, 4) == 0 ? run_second : NULL,
                 .key = seed_below(state, SITES),
                 .is_once = seed_below(state, 5) == 0,
                 .is_replayable = seed_below(state, 2) == 0,
                 .operands = op->operands,
                 .operand_count = seed_below(state, MOST)},
        .segment = segments[seed_below(state, 3)],
        .access_count = seed_below(state, MOST),
    };
    for (size_t i = 0; i < op->access_count; i++) {
        op->tensors[i] = (uint32_t)seed_below(state, TENSORS);
        op->roles[i] = 1 + (uint32_t)seed_below(state, 4);
        op->is_partial[i] = seed_below(state, 3) == 0;
    }
    for (size_t i = 0; i < op->call.operand_count; i++) {
        static const size_t sizes[] = {0, 64, 10};
        uint32_t tensor = i < op->access_count ? op->tensors[i] : 0;

        op->operands[i] =
            (capu_operand){.address = memory + tensor * 64 + (seed_below(state, 4) == 0 ? 8 : 0),
                           .bytes = sizes[seed_below(state, 3)],
                           .role = 1 + (uint32_t)seed_below(state, 5)};
    }
}

static void add(struct record *record, const struct given *op, bool is_replayable)
{
    ck_assert(record_reserve(record, 1, op->access_count, op->call.operand_count, 0));
    record_add_op(record, &op->call, op->segment)->is_replayable = is_replayable;
    for (size_t i = 0; i < op->access_count; i++) {
        record_add_access(record, op->tensors[i], op->roles[i]);
        if (op->is_partial[i]) {
            record_set_partial(record);
        }
    }
    record_add_operands(record, op->operands, op->call.operand_count);
}

static void expect(const struct record *record, size_t number, const struct given *op,
                   bool is_replayable)
{
    const struct record_op *found = &record->ops[number];
    struct call call = record_call(record, number);

    ck_assert_int_eq(found->is_replayable, is_replayable);
    ck_assert_ptr_eq(record->sites[found->site].segment, op->segment);
    ck_assert(call.name == op->call.name && call.run == op->call.run &&
              call.replay == op->call.replay && call.key == op->call.key);
    ck_assert(call.kind == op->call.kind && call.is_once == op->call.is_once &&
              call.is_replayable == op->call.is_replayable &&
              record->ops[number].is_once == op->call.is_once);
    ck_assert_uint_eq(record_access_count(record, number), op->access_count);
    ck_assert_uint_eq(record_operand_count(record, number), op->call.operand_count);
    for (size_t i = 0; i < op->access_count; i++) {
        record_access access = record->accesses[found->first_access + i];

        ck_assert_uint_eq(record_access_tensor(access), op->tensors[i]);
        ck_assert_uint_eq(record_access_role(access), op->roles[i]);
        ck_assert_int_eq(record_access_is_partial(access), op->is_partial[i]);
    }
    for (size_t i = 0; i < op->call.operand_count; i++) {
        capu_operand operand = record_operand(record, found->first_operand + i);

        ck_assert_ptr_eq(operand.address, op->operands[i].address);
        ck_assert_uint_eq(operand.bytes, op->operands[i].bytes);
        ck_assert_uint_eq(operand.role, op->operands[i].role);
        ck_assert_uint_eq(operand.reserved, 0);
    }
}

/* Twice, since a record is used again. */
START_TEST(ops_come_back_as_they_were_given)
{
    uint64_t state = seed_start("record");
    struct record *record = calloc(1, sizeof(*record));

    ck_assert_ptr_nonnull(record);
    for (size_t round = 0; round < 2; round++) {
        record_clear(record);
        ck_assert(record_reserve(record, 0, TENSORS, 0, 0));
        add_tensors(record);
        for (size_t i = 0; i < OPS; i++) {
            draw(&given[i], &state);
            add(record, &given[i], i % 3 == 0);
        }
        for (size_t i = 0; i < OPS; i++) {
            expect(record, i, &given[i], i % 3 == 0);
        }
        ck_assert_uint_gt(record->spelled_count, 0);
        ck_assert_uint_lt(record->spelled_count, record->operand_count);
    }
    record_finish(record);
    free(record);
}
END_TEST

/* An op of four whole tensors, one of which is new: the usual case. */
START_TEST(an_op_takes_at_most_128_bytes)
{
    struct record *record = calloc(1, sizeof(*record));

    ck_assert_ptr_nonnull(record);
    for (size_t i = 0; i < OPS; i++) {
        struct given op = {.call = {.name = "op", .run = run_first, .operand_count = 4},
                           .access_count = 4};

        ck_assert(record_reserve(record, 1, 5, 4, 0));
        record->tensors[record->tensor_count++] =
            (struct record_tensor){.address = memory + i, .tensor_bytes = 64};
        for (size_t k = 0; k < 4; k++) {
            op.tensors[k] = (uint32_t)(i >= k ? i - k : 0);
            op.operands[k] = (capu_operand){.address = memory + op.tensors[k], .role = CAPU_READ};
            op.roles[k] = CAPU_READ;
        }
        add(record, &op, true);
    }
    ck_assert_uint_eq(record->spelled_count, 0);
    ck_assert_uint_eq(record->site_count, 1);
    ck_assert_uint_le(record_bytes(record), OPS * 128 + sizeof(struct record_site));
    record_finish(record);
    free(record);
}
END_TEST

START_TEST(waits_are_found_by_op)
{
    struct record_wait waits[] = {{2, 20}, {3, 30}, {7, 70}};
    struct record record = {.waits = waits, .wait_count = 3};

    for (size_t op = 0; op < 10; op++) {
        ck_assert_uint_eq(record_wait_ns(&record, op), op == 2 || op == 3 || op == 7 ? op * 10 : 0);
    }
    record.wait_count = 0;
    ck_assert_uint_eq(record_wait_ns(&record, 0), 0);
}
END_TEST

START_TEST(marks_are_relative_to_the_beginning)
{
    struct lane lane = {0};
    struct record record = {.begin = {.lane = &lane, .sequence = UINT64_C(1) << 40}};
    struct lane_position position = {.lane = &lane, .sequence = (UINT64_C(1) << 40) + 5};

    ck_assert_uint_eq(record_position(&record, record_mark(&record, position)).sequence,
                      position.sequence);
    ck_assert_ptr_eq(record_position(&record, record_mark(&record, position)).lane, &lane);
    ck_assert_uint_gt(record_mark(&record, record.begin), 0);
    ck_assert_uint_eq(record_mark(&record, (struct lane_position){0}), 0);
    ck_assert_ptr_null(record_position(&record, 0).lane);
}
END_TEST

START_TEST(too_much_is_refused)
{
    struct record *record = calloc(1, sizeof(*record));
    uint64_t calls = 0;

    ck_assert_ptr_nonnull(record);
    ck_assert(!record_reserve(record, (size_t)1 << 31, 0, 0, 0));
    ck_assert(!record_reserve(record, 0, (size_t)1 << 31, 0, 0));
    ck_assert(!record_reserve(record, 0, 0, (size_t)1 << 31, 0));
    for (bool is_done = false; !is_done; calls++) {
        malloc_faults_arm(calls + 1, false);
        is_done = record_reserve(record, 10, 10, 10, 10);
        ck_assert_int_eq(is_done, malloc_faults_hits() == 0);
        malloc_faults_arm(0, false);
    }
    ck_assert_uint_gt(calls, 1);
    record_finish(record);
    free(record);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *cases = tcase_create("record");

    tcase_add_test(cases, ops_come_back_as_they_were_given);
    tcase_add_test(cases, an_op_takes_at_most_128_bytes);
    tcase_add_test(cases, waits_are_found_by_op);
    tcase_add_test(cases, marks_are_relative_to_the_beginning);
    tcase_add_test(cases, too_much_is_refused);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

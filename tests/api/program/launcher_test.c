/* Launchers: functions that CAPU_LAUNCHER and CAPU_WRAPPER make ops of. */
#include "capuchin/launcher.h"

#include "tests/api/steps.h"

#include <stdint.h>

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

struct shape {
    int rows;
    int columns;
};

static capu_stream seen_stream;

static CAPU_LAUNCHER(scale, (float *, out, writes), (const float *, in, reads),
                     (const float *, bias, reads), (float, factor, value))
{
    for (size_t i = 0; i < COUNT; i++) {
        out[i] = in[i] * factor + (bias != NULL ? bias[i] : 0.0f);
    }
}

/* Half of its operand is enough for it. */
static CAPU_LAUNCHER(fill_rows, (float *, out, updates, shape.rows *shape.columns),
                     (struct shape, shape, value), (float, value, value), (void *, stream, stream))
{
    seen_stream = stream;
    for (int i = 0; i < shape.rows * shape.columns; i++) {
        out[i] = value;
    }
}

static CAPU_LAUNCHER(product, (const char *, label, name), (int, layer, index),
                     (float *, out, writes), (const float *, in, reads))
{
    memcpy(out, in, BYTES);
}

static CAPU_LAUNCHER(numbered, (int, layer, index), (float *, out, writes_rest_zero),
                     (float *, sums, scratch))
{
    sums[0] = 1.0f;
    out[0] = sums[0];
}

/* As many arguments as there may be. */
static CAPU_LAUNCHER(add_all, (float *, out, writes), (int, a, value), (int, b, value),
                     (int, c, value), (int, d, value), (int, e, value), (int, f, value),
                     (int, g, value), (int, h, value), (int, i, value), (int, j, value),
                     (int, k, value), (int, l, value), (int, m, value), (int, n, value),
                     (int, o, value), (int, p, value), (int, q, value), (int, r, value),
                     (int, s, value), (int, t, value), (int, u, value), (int, v, value),
                     (int, w, value))
{
    int sum = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s + t + u;

    for (size_t at = 0; at < COUNT; at++) {
        out[at] = (float)(sum + v + w);
    }
}

static void double_all(float *x, int count)
{
    for (int i = 0; i < count; i++) {
        x[i] *= 2.0f;
    }
}

static CAPU_LAUNCHER(begin, (float *, out, writes_rest_undefined, count), (int, count, value))
{
    for (int i = 0; i < count; i++) {
        out[i] = 1.0f;
    }
}

static CAPU_WRAPPER(run_double_all, double_all, (float *, x, updates, count), (int, count, value));

static float *make(struct rig *rig, const char *name)
{
    void *address = NULL;

    RIG_OK(rig, capu_malloc(rig->context, BYTES, &address));
    RIG_OK(rig, CAPU_DESCRIBE(rig->context, address, .name = name));
    return address;
}

static void start(struct rig *rig)
{
    rig_init(rig, &(struct rig_options){.budget_pages = 16});
    capu_context_make_current(rig->context);
}

static void finish(struct rig *rig)
{
    capu_context_make_current(NULL);
    rig_finish(rig);
}

static void expect(struct rig *rig, const float *from, size_t index, float value)
{
    float found = -1.0f;

    RIG_OK(rig, capu_download(rig->context, &found, from + index, sizeof(found), 0));
    ck_assert_float_eq(found, value);
}

START_TEST(launchers_run_as_ops)
{
    float *x, *y;
    struct rig rig;

    start(&rig);
    x = make(&rig, "x");
    y = make(&rig, "y");
    STEP_FAILS(&rig, scale(y, x, NULL, 2.0f), CAPU_UNDEFINED_READ, "op 'scale' reads 'x'");
    RIG_OK(&rig, add_all(x, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                         21, 22, 23));
    RIG_OK(&rig, scale(y, x, x, 2.0f));
    RIG_OK(&rig, run_double_all(y, COUNT / 2));
    expect(&rig, y, 0, 3.0f * 276.0f * 2.0f);
    expect(&rig, y, COUNT - 1, 3.0f * 276.0f);
    RIG_OK(&rig, begin(y, 3));
    expect(&rig, y, 2, 1.0f);
    ck_assert_uint_eq(step_query(&rig, y).version, 3);
    finish(&rig);
}
END_TEST

/* The name of a wrapper's op is that of its launcher. */
START_TEST(ops_have_the_names_of_launchers_or_given_ones)
{
    char much[256] = "";
    float *x, *y;
    struct rig rig;

    start(&rig);
    x = make(&rig, "x");
    y = make(&rig, "y");
    STEP_FAILS(&rig, run_double_all(x, COUNT), CAPU_UNDEFINED_READ, "op 'double_all' reads");
    STEP_FAILS(&rig, product("qkv", 3, y, x), CAPU_UNDEFINED_READ, "op 'qkv.3' reads");
    STEP_FAILS(&rig, product(NULL, -1, y, x), CAPU_UNDEFINED_READ, "op 'product.-1' reads");
    memset(much, 'n', sizeof(much) - 1);
    STEP_FAILS(&rig, product(much, 7, y, x), CAPU_UNDEFINED_READ, "nnn.7' reads");
    STEP_FAILS(&rig, numbered(INT32_MAX, x, (float *)&rig), CAPU_WRONG_ADDRESS,
               "op 'numbered.2147483647', operand 2 of 2");
    RIG_OK(&rig, numbered(0, x, y));
    expect(&rig, x, 0, 1.0f);
    expect(&rig, x, COUNT - 1, 0.0f);
    finish(&rig);
}
END_TEST

/* capu_run rejects what the launchers leave out. */
START_TEST(operands_without_memory_are_left_out)
{
    capu_operand none = capu_reads(NULL);
    capu_op op = {.size = sizeof(op), .name = "none", .run = scale_run, .operands = &none};
    float *x, *y;
    struct rig rig;

    start(&rig);
    x = make(&rig, "x");
    y = make(&rig, "y");
    RIG_OK(&rig, capu_zero(rig.context, x, 0));
    RIG_OK(&rig, scale(y, x, NULL, 1.0f));
    RIG_OK(&rig, run_double_all(y, 0));
    RIG_OK(&rig, run_double_all(NULL, 0));
    expect(&rig, y, 0, 0.0f);
    op.operand_count = 1;
    ck_assert_int_eq(capu_run(rig.context, &op), CAPU_WRONG_ADDRESS);
    finish(&rig);
}
END_TEST

START_TEST(counts_are_in_items_and_may_not_overflow)
{
    float *x;
    struct rig rig;

    start(&rig);
    x = make(&rig, "x");
    RIG_OK(&rig, capu_zero(rig.context, x, 0));
    RIG_OK(&rig, fill_rows(x, (struct shape){2, COUNT / 4}, 5.0f, NULL));
    expect(&rig, x, COUNT / 2 - 1, 5.0f);
    expect(&rig, x, COUNT / 2, 0.0f);
    ck_assert(seen_stream == capu_context_stream(rig.context));
    STEP_FAILS(&rig, fill_rows(x, (struct shape){1, COUNT + 1}, 0.0f, NULL), CAPU_WRONG_ADDRESS,
               "op 'fill_rows', operand 1 of 1: 4100 bytes");
    STEP_FAILS(&rig, run_double_all(x, -1), CAPU_WRONG_ADDRESS, "past the end");
    finish(&rig);
}
END_TEST

/* They are plain functions of the current context, and say so if there is none. */
START_TEST(launchers_need_a_current_context)
{
    float x = 0.0f;

    ck_assert_int_eq(run_double_all(&x, 1), CAPU_INVALID);
    ck_assert_int_eq(run_double_all(NULL, 1), CAPU_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launcher");
    TCase *launchers = tcase_create("launchers");

    tcase_add_test(launchers, launchers_run_as_ops);
    tcase_add_test(launchers, ops_have_the_names_of_launchers_or_given_ones);
    tcase_add_test(launchers, operands_without_memory_are_left_out);
    tcase_add_test(launchers, counts_are_in_items_and_may_not_overflow);
    tcase_add_test(launchers, launchers_need_a_current_context);
    suite_add_tcase(suite, launchers);
    return suite_run(suite);
}

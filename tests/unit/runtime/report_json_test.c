/* The JSON line of a report, read back with jansson: every field of the struct, and arbitrary
   names. */
#include "runtime/context/names.h"
#include "runtime/record/report_json.h"
#include "runtime/record/tracker.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static json_t *parsed(const struct report *report)
{
    char *line = report_json(report, NULL);
    json_error_t error;
    json_t *object;

    ck_assert_ptr_nonnull(line);
    for (const char *at = line; *at != '\0'; at++) {
        /* A single line, in ASCII so that any reader can handle it. */
        ck_assert_msg((unsigned char)*at >= ' ' && (unsigned char)*at < 0x80, "byte %d", *at);
    }
    object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(object != NULL, "%s: %s", error.text, line);
    free(line);
    return object;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    ck_assert_msg(text != NULL, "%s", key);
    return text;
}

static uint64_t number_at(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);

    ck_assert_msg(json_is_integer(number), "%s", key);
    return (uint64_t)json_integer_value(number);
}

/* Checks a time; it is null if it was not measured. */
static void check_time(const json_t *object, const char *key, uint64_t ns)
{
    if (ns == CAPU_NOT_TIMED) {
        ck_assert_msg(json_is_null(json_object_get(object, key)), "%s", key);
    } else {
        ck_assert_uint_eq(number_at(object, key), ns);
    }
}

/* Checks an access number; it is null if the struct has none. */
static void check_access(const json_t *object, const char *key, uint64_t access)
{
    if (access == UINT64_MAX) {
        ck_assert_msg(json_is_null(json_object_get(object, key)), "%s", key);
    } else {
        ck_assert_uint_eq(number_at(object, key), access);
    }
}

static void check_eviction(const json_t *object, const capu_eviction *eviction)
{
    static const char *const methods[] = {"", "swap", "clean", "empty"};
    const json_t *hidden = json_object_get(object, "hidden");

    ck_assert_str_eq(text_at(object, "tensor"), eviction->tensor);
    ck_assert_uint_eq(number_at(object, "bytes"), eviction->bytes);
    ck_assert_str_eq(text_at(object, "method"), methods[eviction->method]);
    check_access(object, "evicted_access", eviction->evicted_access);
    ck_assert_str_eq(text_at(object, "evicted_op"), eviction->evicted_op);
    check_access(object, "back_access", eviction->back_access);
    ck_assert_str_eq(text_at(object, "back_op"), eviction->back_op);
    check_access(object, "in_trigger", eviction->in_trigger);
    check_time(object, "wait_ns", eviction->wait_ns);
    ck_assert(json_is_boolean(hidden) == (eviction->wait_ns != CAPU_NOT_TIMED));
    ck_assert_int_eq(json_is_true(hidden), eviction->is_hidden != 0);
    ck_assert_uint_eq(json_object_size(object), 10);
}

static void check_stall(const json_t *object, const capu_stall *stall)
{
    check_access(object, "access", stall->access);
    ck_assert_str_eq(text_at(object, "op"), stall->op);
    ck_assert_uint_eq(number_at(object, "wait_ns"), stall->wait_ns);
    ck_assert_str_eq(text_at(object, "replay"), stall->replay);
    ck_assert_uint_eq(json_object_size(object), 4);
}

/* Checks that the line has every field of the struct, with equal values, and nothing else. */
static void check_report(const struct report *report)
{
    static const char *const modes[] = {"", "off", "passive", "guided"};
    json_t *object = parsed(report);
    const json_t *evictions = json_object_get(object, "evictions");
    const json_t *stalls = json_object_get(object, "stalls");
    size_t keys = 8;

    ck_assert_str_eq(text_at(object, "type"), "report");
    ck_assert_uint_eq(number_at(object, "version"), CAPU_REPORT_VERSION);
    ck_assert_str_eq(text_at(object, "mode"), modes[report->mode]);
    ck_assert_str_eq(text_at(object, "label"), report->label);
    ck_assert_str_eq(text_at(object, "floor_op"), report->floor_op);
    ck_assert_str_eq(text_at(object, "plan_error"),
                     report->plan_error != NULL ? report->plan_error : "");
#define CHECK_COUNTER(name, unit, text)      \
    check_time(object, #name, report->name); \
    keys++;
    REPORT_COUNTERS(CHECK_COUNTER)
#undef CHECK_COUNTER
    ck_assert(json_is_array(evictions));
    ck_assert_uint_eq(json_array_size(evictions), report->eviction_count);
    for (size_t i = 0; i < report->eviction_count; i++) {
        check_eviction(json_array_get(evictions, i), &report->evictions[i]);
    }
    ck_assert(json_is_array(stalls));
    ck_assert_uint_eq(json_array_size(stalls), report->stall_count);
    for (size_t i = 0; i < report->stall_count; i++) {
        check_stall(json_array_get(stalls, i), &report->stalls[i]);
    }
    ck_assert_uint_eq(json_object_size(object), keys);
    json_decref(object);
}

static const capu_eviction evictions[] = {
    {"layer 1 out", 4096, CAPU_METHOD_SWAP, 1, 3, "forward", 9, "backward", 7, 0},
    {"weights", UINT64_C(1) << 40, CAPU_METHOD_CLEAN, 0, UINT64_MAX, "", 0, "first", 0, 123456789},
    {"scratch", 1, CAPU_METHOD_EMPTY, 0, 0, "gemm", UINT64_MAX, "", UINT64_MAX, 0},
};

static const capu_stall stalls[] = {{9, "backward", 7, "forward"},
                                    {12, "gemm \"2\"", UINT64_C(1) << 40, ""},
                                    {UINT64_MAX, "", 3, "gemm \"1\""}};

/* A report in which every counter has a different value, from large to small. */
static struct report filled(void)
{
    struct report report = {.mode = CAPU_MODE_PASSIVE,
                            .label = "train",
                            .floor_op = "attention",
                            .plan_error = "no plan fits",
                            .evictions = evictions,
                            .eviction_count = sizeof(evictions) / sizeof(evictions[0]),
                            .stalls = stalls,
                            .stall_count = sizeof(stalls) / sizeof(stalls[0])};
    uint64_t next = INT64_MAX;

#define FILL_COUNTER(name, unit, text) \
    report.name = next;                \
    next = next / 5 + 1;
    REPORT_COUNTERS(FILL_COUNTER)
#undef FILL_COUNTER
    return report;
}

/* A time that was not measured is null, not a number. */
START_TEST(what_was_not_timed_is_null)
{
    capu_eviction eviction = evictions[0];
    struct report report = filled();

    report.timed = 0;
    report.compute_ns = CAPU_NOT_TIMED;
    report.stall_ns = CAPU_NOT_TIMED;
    report.recompute_ns = CAPU_NOT_TIMED;
    eviction.wait_ns = CAPU_NOT_TIMED;
    eviction.is_hidden = 0;
    report.evictions = &eviction;
    report.eviction_count = 1;
    report.stalls = NULL;
    report.stall_count = 0;
    check_report(&report);
}
END_TEST

START_TEST(the_line_equals_the_struct)
{
    struct report report = filled();

    check_report(&report);
    for (report.mode = CAPU_MODE_OFF; report.mode <= CAPU_MODE_GUIDED; report.mode++) {
        check_report(&report);
    }
    report = (struct report){.mode = CAPU_MODE_OFF, .label = "", .floor_op = ""};
    check_report(&report);
}
END_TEST

static const char *const names[] = {
    "\"quoted\"",
    "back\\slash and / slash",
    "\b\f\n\r\t\x01\x1f\x7f",
    "%s %n {s:s}",
    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x92", /* two, three and four bytes */
    "\xe2\x80\xa8",                         /* a line separator */
    "",
};

/* Reading the line back gives the same name, whatever characters it has. */
START_TEST(any_name_is_read_back_unchanged)
{
    capu_eviction eviction = evictions[0];
    struct report report = filled();

    eviction.tensor = names[_i];
    eviction.evicted_op = names[_i];
    eviction.back_op = names[_i];
    report.label = names[_i];
    report.floor_op = names[_i];
    report.evictions = &eviction;
    report.eviction_count = 1;
    report.stalls = NULL;
    report.stall_count = 0;
    check_report(&report);
}
END_TEST

/* Names are interned before they reach a report, which has replaced invalid UTF-8. */
START_TEST(invalid_utf8_is_replaced_before)
{
    struct names interned = {0};
    capu_eviction eviction = evictions[0];
    struct report report = filled();
    json_t *object;

    report.label = names_intern(&interned, "a\xff\"z\xc0\xaf");
    report.floor_op = names_intern(&interned, "cut \xe2\x82");
    eviction.tensor = names_intern(&interned, "\xed\xa0\x80");
    report.evictions = &eviction;
    report.eviction_count = 1;
    report.stalls = NULL;
    report.stall_count = 0;
    check_report(&report);
    object = parsed(&report);
    ck_assert_str_eq(text_at(object, "label"), "a?\"z??");
    ck_assert_str_eq(text_at(object, "floor_op"), "cut ??");
    json_decref(object);
    names_finish(&interned);
}
END_TEST

/* A name that was not interned yields no line instead of a broken one. */
START_TEST(no_line_is_better_than_a_broken_one)
{
    capu_eviction eviction = evictions[0];
    struct report report = filled();

    report.label = "\xff";
    ck_assert_ptr_null(report_json(&report, NULL));
    report = filled();
    report.floor_op = "\xff";
    ck_assert_ptr_null(report_json(&report, NULL));
    report = filled();
    eviction.tensor = "\xff";
    report.evictions = &eviction;
    report.eviction_count = 1;
    report.stalls = NULL;
    report.stall_count = 0;
    ck_assert_ptr_null(report_json(&report, NULL));
}
END_TEST

/* Jansson is a shared library, which the linker's --wrap does not affect. */
static void *allocate(size_t bytes)
{
    return malloc(bytes);
}

/* Whichever allocation fails, the result is the complete line or none. */
START_TEST(no_line_lacks_a_field)
{
    struct report report = filled();
    bool has_passed = false;
    char *expected;

    json_set_alloc_funcs(allocate, free);
    expected = report_json(&report, NULL);
    ck_assert_ptr_nonnull(expected);
    for (uint64_t call = 1; !has_passed; call++) {
        char *line;

        malloc_faults_arm(call, false);
        line = report_json(&report, NULL);
        malloc_faults_arm(0, false);
        has_passed = malloc_faults_hits() == 0;
        ck_assert(line != NULL || !has_passed);
        if (line != NULL) {
            ck_assert_str_eq(line, expected);
        }
        free(line);
    }
    free(expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime report_json");
    TCase *tcase = tcase_create("report_json");

    tcase_add_test(tcase, the_line_equals_the_struct);
    tcase_add_test(tcase, what_was_not_timed_is_null);
    tcase_add_loop_test(tcase, any_name_is_read_back_unchanged, 0,
                        sizeof(names) / sizeof(names[0]));
    tcase_add_test(tcase, invalid_utf8_is_replaced_before);
    tcase_add_test(tcase, no_line_is_better_than_a_broken_one);
    tcase_add_test(tcase, no_line_lacks_a_field);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

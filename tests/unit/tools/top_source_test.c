/* Lines that a socket may send, none of which `capuchin top` trusts: each is rejected with a
   reason, or can be shown. */
#include "tools/output/output.h"
#include "tools/top/top_source.h"
#include "tools/top/top_view.h"

#include "tests/support/effort.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char good[] =
    "{\"type\":\"top\",\"version\":1,\"pid\":7,\"program\":\"p\",\"contexts\":[{\"context\":1,"
    "\"device\":\"cuda\",\"mode\":\"guided\",\"planner\":\"hybrid\",\"budget_bytes\":4096,"
    "\"d2h_bytes_per_s\":20,\"h2d_bytes_per_s\":10,\"held_bytes\":2048,\"age_ns\":5,"
    "\"live_bytes\":{\"parameter\":1024,\"activation\":512},\"times_ns\":[3,4,5],"
    "\"stalls_iteration\":2,\"stalls\":[{\"access\":3,\"op\":\"mul\",\"replay\":\"\",\"wait_ns\":2}"
    "],"
    "\"report\":{\"mode\":\"guided\",\"label\":\"train\",\"plan_error\":\"\",\"iteration\":2,"
    "\"time_ns\":5,\"peak_bytes\":4096,\"live_peak_bytes\":8192,\"floor_bytes\":1024,"
    "\"host_bytes\":1,\"evicted_bytes\":2,\"prefetched_bytes\":3,\"predicted_ns\":4,\"diverged\":0,"
    "\"plan_stage\":1}}]}\n";

static const struct top_style styles[] = {{.columns = 80, .is_utf8 = true},
                                          {.columns = 0, .is_utf8 = false}};

/* Reads a line, and shows it if it is accepted. What is shown has no control characters. */
static bool try_line(const char *text, size_t length)
{
    struct string_buffer why = {0};
    struct top_snapshot snapshot = {.programs = json_array()};
    json_t *line = top_line_read(text, length, &why);

    ck_assert_ptr_nonnull(snapshot.programs);
    ck_assert_msg((line == NULL) == (why.length > 0), "%.*s", (int)length, text);
    if (line != NULL) {
        ck_assert_int_eq(json_array_append(snapshot.programs, line), 0);
        for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
            struct string_buffer shown = {0};

            ck_assert_int_eq(top_view(&shown, &snapshot, &styles[i]), CAPU_OK);
            for (size_t k = 0; k < shown.length; k++) {
                unsigned char byte = (unsigned char)shown.data[k];

                ck_assert_msg(byte == '\n' || (byte >= ' ' && byte != 0x7F), "%s", shown.data);
            }
            string_buffer_finish(&shown);
        }
    }
    json_decref(line);
    string_buffer_finish(&why);
    top_snapshot_finish(&snapshot);
    return line != NULL;
}

static bool try_value(const json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    size_t length;
    bool is_accepted;

    ck_assert_ptr_nonnull(text);
    length = strlen(text);
    text[length] = '\n';
    is_accepted = try_line(text, length + 1);
    free(text);
    return is_accepted;
}

static const char *const values[] = {
    "null",
    "true",
    "-1",
    "0",
    "9223372036854775807",
    "1.5",
    "\"\"",
    "\"\\u001b[2J\\n\"",
    "[]",
    "{}",
    "[null]",
    "[-1]",
    "[[1]]",
    "{\"op\":1}",
    "[{\"op\":\"x\",\"replay\":\"\",\"wait_ns\":1}]",
};

static size_t tried;
static size_t accepted;

/* Puts every value in place of every entry below `at`, and leaves every entry out once. `model` is
   a copy of `at`: a walk over what changes would not end. */
static void replace_entries(json_t *whole, json_t *at, json_t *model)
{
    const char *key;
    json_t *copy;
    size_t i;

    json_object_foreach(model, key, copy)
    {
        json_t *entry = json_incref(json_object_get(at, key));

        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            json_object_set_new(at, key, json_loads(values[k], JSON_DECODE_ANY, NULL));
            accepted += try_value(whole);
            tried++;
        }
        json_object_del(at, key);
        accepted += try_value(whole);
        tried++;
        json_object_set_new(at, key, entry);
        replace_entries(whole, entry, copy);
    }
    json_array_foreach(model, i, copy)
    {
        json_t *entry = json_incref(json_array_get(at, i));

        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            json_array_set_new(at, i, json_loads(values[k], JSON_DECODE_ANY, NULL));
            accepted += try_value(whole);
            tried++;
        }
        json_array_set_new(at, i, entry);
        replace_entries(whole, entry, copy);
    }
}

START_TEST(every_entry_can_be_anything)
{
    json_t *whole = json_loads(good, 0, NULL);
    json_t *model = json_deep_copy(whole);

    ck_assert(try_line(good, strlen(good)));
    replace_entries(whole, whole, model);
    ck_assert(json_equal(whole, model));
    /* Both occur: other numbers and texts are fine, other types are not. */
    ck_assert_uint_gt(accepted, tried / 10);
    ck_assert_uint_lt(accepted, tried / 2);
    json_decref(model);
    json_decref(whole);
}
END_TEST

START_TEST(every_beginning_is_rejected)
{
    for (size_t length = 0; length < strlen(good); length++) {
        ck_assert_msg(!try_line(good, length), "%zu bytes", length);
    }
}
END_TEST

START_TEST(bytes_can_be_anything)
{
    uint64_t count = effort_share(20000);
    uint64_t state = seed_start("bytes_can_be_anything");

    for (uint64_t i = 0; i < count; i++) {
        char text[sizeof(good) + 64];
        size_t length = strlen(good);
        uint64_t changes = 1 + seed_below(&state, 4);

        memcpy(text, good, length);
        for (; changes > 0 && length > 0; changes--) {
            size_t at = (size_t)seed_below(&state, length);
            size_t many = (size_t)seed_below(&state, 8);

            switch (seed_below(&state, 3)) {
            case 0:
                text[at] = (char)seed_below(&state, 256);
                break;
            case 1: /* a few bytes less */
                many = many < length - at ? many : length - at;
                memmove(text + at, text + at + many, length - at - many);
                length -= many;
                break;
            default: /* a few bytes twice */
                many = many < length - at ? many : length - at;
                memmove(text + at + many, text + at, length - at);
                length += many;
                break;
            }
        }
        (void)try_line(text, length);
    }
}
END_TEST

/* A deep nest must not exhaust the stack. */
START_TEST(depth_is_limited)
{
    size_t length = (size_t)1 << 20;
    char *text = malloc(length);

    ck_assert_ptr_nonnull(text);
    memset(text, '[', length);
    text[length - 1] = '\n';
    ck_assert(!try_line(text, length));
    free(text);
}
END_TEST

/* This test is built without ncurses. */
START_TEST(without_ncurses_the_package_is_named)
{
    char text[256] = "";
    FILE *file = tmpfile();
    int copy = dup(STDERR_FILENO);

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(dup2(fileno(file), STDERR_FILENO), 0);
    ck_assert_int_eq(top_screen_run(NULL, 1.0), EXIT_USAGE);
    ck_assert_int_ge(dup2(copy, STDERR_FILENO), 0);
    close(copy);
    rewind(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_ptr_nonnull(strstr(text, "libncurses-dev"));
    ck_assert_ptr_nonnull(strstr(text, "--once"));
    fclose(file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/top_source");
    TCase *tests = tcase_create("lines");

    tcase_add_test(tests, every_entry_can_be_anything);
    tcase_add_test(tests, every_beginning_is_rejected);
    tcase_add_test(tests, bytes_can_be_anything);
    tcase_add_test(tests, depth_is_limited);
    tcase_add_test(tests, without_ncurses_the_package_is_named);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

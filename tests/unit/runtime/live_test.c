/* Live counters: samples that change hands between two threads, and their JSON. */
#include "runtime/record/live.h"

#include "capuchin/memory.h"

#include "tests/support/effort.h"
#include "tests/support/malloc_faults.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <pthread.h>
#include <string.h>

static const struct live_subject subject = {.device = "sim",
                                            .planner = "hybrid",
                                            .mode = CAPU_MODE_GUIDED,
                                            .budget_bytes = 1 << 20,
                                            .d2h_bytes_per_s = 5,
                                            .h2d_bytes_per_s = 7};

static struct report report_of(uint64_t iteration)
{
    return (struct report){.mode = CAPU_MODE_GUIDED,
                           .label = "train",
                           .floor_op = "op",
                           .plan_error = "",
                           .iteration = iteration,
                           .time_ns = 10 * iteration,
                           .stall_ns = CAPU_NOT_TIMED};
}

START_TEST(the_newest_sample_is_read)
{
    struct live *live = live_create(&subject);

    ck_assert_ptr_nonnull(live);
    ck_assert_uint_eq(live_newest(live)->published_ns, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        live->own.published_ns = i;
        live_publish(live);
        if (i != 3) { /* one is overwritten before it is read */
            ck_assert_uint_eq(live_newest(live)->published_ns, i);
            ck_assert_uint_eq(live_newest(live)->published_ns, i);
        }
    }
    live_destroy(live);
}
END_TEST

/* Every field of a sample is from the same publication, and no sample is older than the one before.
 */
static void *read_samples(void *argument)
{
    struct live *live = argument;
    uint64_t last = 0;

    while (last < UINT64_C(1) << 62) {
        const struct live_sample *sample = live_newest(live);
        uint64_t seen = sample->published_ns;

        if (seen < last || sample->held_bytes != seen || sample->times_ns[LIVE_TIMES - 1] != seen) {
            return live;
        }
        last = seen;
    }
    return NULL;
}

START_TEST(samples_are_never_torn)
{
    struct live *live = live_create(&subject);
    uint64_t count = effort_share(1000000);
    pthread_t reader;
    void *failed;

    ck_assert_ptr_nonnull(live);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_samples, live), 0);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t value = i < count ? i : UINT64_C(1) << 62;

        live->own.published_ns = value;
        live->own.held_bytes = value;
        live->own.times_ns[LIVE_TIMES - 1] = value;
        live_publish(live);
    }
    ck_assert_int_eq(pthread_join(reader, &failed), 0);
    ck_assert_ptr_null(failed);
    live_destroy(live);
}
END_TEST

START_TEST(times_are_the_newest_ones)
{
    struct live *live = live_create(&subject);

    ck_assert_ptr_nonnull(live);
    for (uint64_t i = 1; i <= LIVE_TIMES + 3; i++) {
        struct report report = report_of(i);

        live_note_report(live, &report);
    }
    ck_assert_uint_eq(live->own.time_count, LIVE_TIMES);
    ck_assert_uint_eq(live->own.times_ns[0], 40);
    ck_assert_uint_eq(live->own.times_ns[LIVE_TIMES - 1], 10 * (LIVE_TIMES + 3));
    live_destroy(live);
}
END_TEST

/* The longest stalls, in order, of the newest iteration that had any. */
START_TEST(stalls_are_the_longest_ones)
{
    static const uint64_t waits[] = {5, 90, 10, 80, 20, 70, 30, 60, 40, 50, 90};
    static const uint64_t kept[] = {90, 90, 80, 70, 60, 50, 40, 30};
    enum { COUNT = sizeof(waits) / sizeof(waits[0]) };
    capu_stall stalls[COUNT];
    struct live *live = live_create(&subject);
    struct report report = report_of(7);

    ck_assert_ptr_nonnull(live);
    for (size_t i = 0; i < COUNT; i++) {
        stalls[i] = (capu_stall){.access = i, .op = "op", .wait_ns = waits[i], .replay = ""};
    }
    report.stalls = stalls;
    report.stall_count = COUNT;
    live_note_report(live, &report);
    report = report_of(8);
    live_note_report(live, &report);
    ck_assert_uint_eq(live->own.report.iteration, 8);
    ck_assert_uint_eq(live->own.stalls_iteration, 7);
    ck_assert_uint_eq(live->own.stall_count, LIVE_STALLS);
    for (size_t i = 0; i < LIVE_STALLS; i++) {
        ck_assert_uint_eq(live->own.stalls[i].wait_ns, kept[i]);
    }
    ck_assert_uint_eq(live->own.stalls[0].access, 1);
    ck_assert_uint_eq(live->own.stalls[1].access, 10);
    report.iteration = 9;
    report.stalls = &stalls[2];
    report.stall_count = 1;
    live_note_report(live, &report);
    ck_assert_uint_eq(live->own.stalls_iteration, 9);
    ck_assert_uint_eq(live->own.stall_count, 1);
    ck_assert_uint_eq(live->own.stalls[0].wait_ns, 10);
    live_destroy(live);
}
END_TEST

START_TEST(texts_are_cut_off_between_characters)
{
    char text[8];

    live_copy_text(text, sizeof(text), "1234567");
    ck_assert_str_eq(text, "1234567");
    live_copy_text(text, sizeof(text), "12345678");
    ck_assert_str_eq(text, "1234567");
    live_copy_text(text, sizeof(text), "12345\xE2\x82\xAC"); /* a character of three bytes */
    ck_assert_str_eq(text, "12345");
    live_copy_text(text, sizeof(text), NULL);
    ck_assert_str_eq(text, "");
}
END_TEST

static struct live *two_lives(void)
{
    struct live *first = live_create(&subject);
    struct report report = report_of(3);

    ck_assert_ptr_nonnull(first);
    first->number = 1;
    first->next = live_create(&subject);
    ck_assert_ptr_nonnull(first->next);
    first->next->number = 2;
    live_note_report(first, &report);
    first->own.published_ns = 100;
    first->own.kind_bytes[CAPU_ACTIVATION] = 4096;
    first->own.held_bytes = 8192;
    live_publish(first);
    return first;
}

START_TEST(the_line_has_every_context)
{
    struct live *lives = two_lives();
    char *text = live_json(lives, 350);
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_int_t number, version, age, activation, held, iteration, time, second;
    const char *type, *mode, *label;
    json_t *report, *age_of_second;

    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(
        json_unpack(line, "{s:s,s:I,s:[{s:I,s:s,s:I,s:{s:I},s:I,s:[I],s:{s:I,s:s}},{s:I,s:o,s:o}]}",
                    "type", &type, "version", &version, "contexts", "context", &number, "mode",
                    &mode, "age_ns", &age, "live_bytes", "activation", &activation, "held_bytes",
                    &held, "times_ns", &time, "report", "iteration", &iteration, "label", &label,
                    "context", &second, "report", &report, "age_ns", &age_of_second),
        0);
    ck_assert_str_eq(type, "top");
    ck_assert_int_eq(version, 1);
    ck_assert_int_eq(number, 1);
    ck_assert_str_eq(mode, "guided");
    ck_assert_int_eq(age, 250);
    ck_assert_int_eq(activation, 4096);
    ck_assert_int_eq(held, 8192);
    ck_assert_int_eq(time, 30);
    ck_assert_int_eq(iteration, 3);
    ck_assert_str_eq(label, "train");
    ck_assert_int_eq(second, 2);
    ck_assert(json_is_null(report) && json_is_null(age_of_second));
    json_decref(line);
    free(text);
    live_destroy(lives->next);
    live_destroy(lives);
}
END_TEST

/* Without memory there is no line, rather than one that lacks something. */
START_TEST(a_line_is_complete_or_none)
{
    struct live *lives = two_lives();
    char *whole = live_json(lives, 350);
    bool is_done = false;

    ck_assert_ptr_nonnull(whole);
    for (uint64_t call = 1; !is_done; call++) {
        char *text;

        malloc_faults_arm(call, false);
        text = live_json(lives, 350);
        is_done = malloc_faults_hits() == 0;
        malloc_faults_arm(0, false);
        if (text != NULL) {
            ck_assert_str_eq(text, whole);
        } else {
            ck_assert(!is_done);
        }
        free(text);
    }
    free(whole);
    live_destroy(lives->next);
    live_destroy(lives);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime/live");
    TCase *tests = tcase_create("live");

    tcase_add_test(tests, the_newest_sample_is_read);
    tcase_add_test(tests, samples_are_never_torn);
    tcase_add_test(tests, times_are_the_newest_ones);
    tcase_add_test(tests, stalls_are_the_longest_ones);
    tcase_add_test(tests, texts_are_cut_off_between_characters);
    tcase_add_test(tests, the_line_has_every_context);
    tcase_add_test(tests, a_line_is_complete_or_none);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

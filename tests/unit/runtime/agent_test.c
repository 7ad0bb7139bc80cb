/*
 * The agent's thread: order of lines, complete traces, files that cannot be written, growth of host
 * memory, and ending with jobs pending.
 */
#include "runtime/context/agent.h"

#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

enum { LINES = 2000, LARGE_BYTES = 16384 };

static struct device *device;
static struct host_arena *arena;
static char folder[64];
static char report[128];
static char trace[128];
static char text[AGENT_TEXT_BYTES];

static void begin(void)
{
    const struct device_options options = {.memory_bytes = MIB, .page_bytes = 65536};

    ck_assert_int_eq(host_device_create(&options, &device, NULL, 0), CAPU_OK);
    ck_assert_int_eq(host_arena_create(device, 64 * MIB, &arena), CAPU_OK);
    snprintf(folder, sizeof(folder), "/tmp/capuchin-agent-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(report, sizeof(report), "%s/report", folder);
    snprintf(trace, sizeof(trace), "%s/trace", folder);
    text[0] = '\0';
}

static void end(void)
{
    unlink(report);
    unlink(trace);
    ck_assert_int_eq(rmdir(folder), 0);
    host_arena_destroy(arena);
    device_destroy(device);
}

static struct agent *started(const char *report_path, const char *trace_path)
{
    struct agent *agent = NULL;

    ck_assert_int_eq(agent_create(&(struct agent_paths){.report = report_path, .trace = trace_path},
                                  arena, 1, text, sizeof(text), &agent),
                     CAPU_OK);
    ck_assert_str_eq(text, "");
    return agent;
}

/* A string allocated with malloc, for the agent to take. */
static char *line_of(int number)
{
    char *line = malloc(32);

    ck_assert_ptr_nonnull(line);
    snprintf(line, 32, "{\"line\":%d}", number);
    return line;
}

/* The report file holds exactly the first `count` lines, in order. */
static void check_lines(int count)
{
    FILE *file = fopen(report, "r");
    char line[64];
    char expected[64];

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < count; i++) {
        ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
        snprintf(expected, sizeof(expected), "{\"line\":%d}\n", i);
        ck_assert_str_eq(line, expected);
    }
    ck_assert_ptr_null(fgets(line, sizeof(line), file));
    fclose(file);
}

static void write_text(const char *path, const char *contents)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(contents, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void check_text(const char *path, const char *expected)
{
    FILE *file = fopen(path, "r");
    char found[64] = "";

    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_uint_lt(fread(found, 1, sizeof(found) - 1, file), sizeof(found) - 1);
    ck_assert_str_eq(found, expected);
    fclose(file);
}

/* As many bytes as no file can hold after limit_files. */
static char *large_text(void)
{
    char *data = malloc(LARGE_BYTES);

    ck_assert_ptr_nonnull(data);
    memset(data, 'x', LARGE_BYTES - 1);
    data[LARGE_BYTES - 1] = '\0';
    return data;
}

/* From here on files cannot grow as large as that, like on a full disk. */
static void limit_files(void)
{
    const struct rlimit limit = {.rlim_cur = LARGE_BYTES / 2, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(lines_come_in_order)
{
    struct agent *agent;

    write_text(report, "of an earlier run\n");
    agent = started(report, NULL);
    for (int i = 0; i < LINES; i++) {
        ck_assert_int_eq(agent_report(agent, line_of(i)), CAPU_OK);
        if (i % 500 == 0) {
            ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_OK);
            check_lines(i + 1);
        }
    }
    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_OK);
    check_lines(LINES);
    agent_destroy(agent);
    check_lines(LINES);
}
END_TEST

/* Without a flush, destroying the agent still writes all that was posted. */
START_TEST(destroy_finishes_pending_jobs)
{
    struct agent *agent = started(report, NULL);

    for (int i = 0; i < LINES; i++) {
        ck_assert_int_eq(agent_report(agent, line_of(i)), CAPU_OK);
    }
    agent_destroy(agent);
    check_lines(LINES);
}
END_TEST

START_TEST(destroy_without_any_job)
{
    struct agent *agent = started(NULL, NULL);

    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_OK);
    agent_destroy(agent);
    agent_destroy(NULL);
}
END_TEST

/* A shorter trace leaves nothing of a longer earlier one. */
START_TEST(a_trace_replaces_the_whole_file)
{
    static const size_t sizes[] = {3 << 20, 100, 0};
    struct agent *agent = started(NULL, trace);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *data = malloc(sizes[i] + 1);
        char *read = malloc(sizes[i] + 1);
        FILE *file;

        ck_assert(data != NULL && read != NULL);
        for (size_t at = 0; at < sizes[i]; at++) {
            data[at] = (char)(at * 31 / 7);
        }
        ck_assert_int_eq(agent_trace(agent, data, sizes[i]), CAPU_OK);
        ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_OK);
        file = fopen(trace, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fread(read, 1, sizes[i] + 1, file), sizes[i]);
        fclose(file);
        for (size_t at = 0; at < sizes[i]; at++) {
            if (read[at] != (char)(at * 31 / 7)) {
                ck_abort_msg("byte %zu of %zu", at, sizes[i]);
            }
        }
        free(read);
    }
    agent_destroy(agent);
}
END_TEST

/* A file that cannot be opened makes creation fail, and the text names the file. */
START_TEST(unwritable_paths_fail_at_creation)
{
    struct agent *untouched = (struct agent *)(void *)&untouched;
    struct agent *agent = untouched;
    char missing[160];

    snprintf(missing, sizeof(missing), "%s/no/file", folder);
    ck_assert_int_eq(agent_create(&(struct agent_paths){.report = missing}, arena, 1, text,
                                  sizeof(text), &agent),
                     CAPU_FILE_FAILED);
    ck_assert_msg(strstr(text, "report") != NULL && strstr(text, missing) != NULL, "%s", text);
    ck_assert_int_eq(agent_create(&(struct agent_paths){.report = report, .trace = missing}, arena,
                                  1, text, sizeof(text), &agent),
                     CAPU_FILE_FAILED);
    ck_assert_msg(strstr(text, "trace") != NULL && strstr(text, missing) != NULL, "%s", text);
    ck_assert_int_eq(
        agent_create(&(struct agent_paths){.trace = folder}, arena, 1, text, sizeof(text), &agent),
        CAPU_FILE_FAILED);
    ck_assert_ptr_eq(agent, untouched);
}
END_TEST

/* Every flush reports a full disk from then on; other files are still written. */
START_TEST(a_full_disk_is_reported)
{
    struct agent *agent = started("/dev/full", trace);
    struct stat found;

    for (int round = 0; round < 3; round++) {
        text[0] = '\0';
        ck_assert_int_eq(agent_report(agent, line_of(round)), CAPU_OK);
        ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_FILE_FAILED);
        ck_assert_msg(strstr(text, "report file '/dev/full'") != NULL, "%s", text);
    }
    ck_assert_int_eq(agent_trace(agent, line_of(0), 5), CAPU_OK);
    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_FILE_FAILED);
    ck_assert_int_eq(stat(trace, &found), 0);
    ck_assert_int_eq(found.st_size, 5);
    ck_assert_int_eq(agent_report(agent, line_of(0)), CAPU_OK);
    agent_destroy(agent);
}
END_TEST

START_TEST(a_full_disk_is_reported_for_traces)
{
    struct agent *agent = started(report, "/dev/full");

    ck_assert_int_eq(agent_trace(agent, line_of(0), 5), CAPU_OK);
    ck_assert_int_eq(agent_report(agent, line_of(0)), CAPU_OK);
    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(text, "trace file '/dev/full'") != NULL, "%s", text);
    check_lines(1);
    agent_destroy(agent);
}
END_TEST

/* Creating an agent changes no file, and neither does destroying one that had nothing to write. */
START_TEST(files_stay_until_there_is_something_to_write)
{
    struct agent *agent;

    write_text(report, "an old report");
    write_text(trace, "an old trace");
    agent = started(report, trace);
    check_text(report, "an old report");
    agent_destroy(agent);
    check_text(report, "an old report");
    check_text(trace, "an old trace");
    unlink(report);
    agent_destroy(started(report, NULL));
    ck_assert_int_ne(access(report, F_OK), 0);
}
END_TEST

/* The folder is removed at the end, which fails if a temporary file is left in it. */
START_TEST(a_failed_write_leaves_the_old_files)
{
    struct agent *agent;

    write_text(report, "an old report");
    write_text(trace, "an old trace");
    limit_files();
    agent = started(report, trace);
    ck_assert_int_eq(agent_report(agent, large_text()), CAPU_OK);
    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_FILE_FAILED);
    ck_assert_msg(strstr(text, "writing the report file") != NULL, "%s", text);
    ck_assert_int_eq(agent_trace(agent, large_text(), LARGE_BYTES), CAPU_OK);
    agent_destroy(agent);
    check_text(report, "an old report");
    check_text(trace, "an old trace");
}
END_TEST

START_TEST(a_report_contains_only_complete_lines)
{
    struct agent *agent;

    limit_files();
    agent = started(report, NULL);
    ck_assert_int_eq(agent_report(agent, large_text()), CAPU_OK);
    ck_assert_int_eq(agent_report(agent, line_of(0)), CAPU_OK);
    ck_assert_int_eq(agent_report(agent, large_text()), CAPU_OK);
    ck_assert_int_eq(agent_report(agent, line_of(1)), CAPU_OK);
    agent_destroy(agent);
    check_lines(2);
}
END_TEST

START_TEST(the_first_failure_is_kept)
{
    struct agent *agent = started(report, NULL);
    char small[8];

    agent_fail(agent, "the first");
    agent_fail(agent, "the second");
    ck_assert_int_eq(agent_flush(agent, text, sizeof(text)), CAPU_FILE_FAILED);
    ck_assert_str_eq(text, "the first");
    ck_assert_int_eq(agent_flush(agent, small, sizeof(small)), CAPU_FILE_FAILED);
    ck_assert_str_eq(small, "the fir");
    agent_destroy(agent);
}
END_TEST

START_TEST(grow_waits_for_the_memory)
{
    struct agent *agent = started(NULL, NULL);
    struct host_block block = {0};

    ck_assert_int_eq(host_arena_take(arena, 5 * MIB, &block), CAPU_NOT_READY);
    ck_assert_int_eq(agent_grow(agent, 5 * MIB), CAPU_OK);
    ck_assert_int_eq(host_arena_take(arena, 5 * MIB, &block), CAPU_OK);
    ck_assert_int_eq(agent_grow(agent, 1000 * MIB), CAPU_HOST_OVER_BUDGET);
    ck_assert_uint_le(host_arena_chunk_bytes(arena), 64 * MIB);
    host_arena_give(arena, &block, (struct lane_position){NULL, 0});
    agent_destroy(agent);
}
END_TEST

/* Growth ahead of need happens without anything waiting for it, but only if too little is free. */
START_TEST(grow_ahead_runs_without_waiting)
{
    struct agent *agent = started(NULL, NULL);
    uint64_t chunks = 0;

    agent_grow_ahead(agent, MIB);
    for (int i = 0; i < 2000 && chunks == 0; i++) {
        usleep(5000);
        chunks = host_arena_chunk_bytes(arena);
    }
    ck_assert_uint_ge(chunks, MIB);
    /* Enough is free, so no growth starts; agent_destroy would have waited for one. */
    agent_grow_ahead(agent, MIB);
    agent_destroy(agent);
    ck_assert_uint_eq(host_arena_chunk_bytes(arena), chunks);
}
END_TEST

/* agent_destroy finishes a growth that nothing waited for, and lines that are not written yet. */
START_TEST(destroy_finishes_growth)
{
    struct agent *agent = started(report, NULL);

    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(agent_report(agent, line_of(i)), CAPU_OK);
        if (i == 50) {
            agent_grow_ahead(agent, 3 * MIB);
        }
    }
    agent_destroy(agent);
    check_lines(100);
    ck_assert_uint_ge(host_arena_chunk_bytes(arena), 3 * MIB);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime agent");
    TCase *tcase = tcase_create("agent");

    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, lines_come_in_order);
    tcase_add_test(tcase, destroy_finishes_pending_jobs);
    tcase_add_test(tcase, destroy_without_any_job);
    tcase_add_test(tcase, a_trace_replaces_the_whole_file);
    tcase_add_test(tcase, unwritable_paths_fail_at_creation);
    tcase_add_test(tcase, a_full_disk_is_reported);
    tcase_add_test(tcase, a_full_disk_is_reported_for_traces);
    tcase_add_test(tcase, files_stay_until_there_is_something_to_write);
    tcase_add_test(tcase, a_failed_write_leaves_the_old_files);
    tcase_add_test(tcase, a_report_contains_only_complete_lines);
    tcase_add_test(tcase, the_first_failure_is_kept);
    tcase_add_test(tcase, grow_waits_for_the_memory);
    tcase_add_test(tcase, grow_ahead_runs_without_waiting);
    tcase_add_test(tcase, destroy_finishes_growth);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/* Pages: their numbers are those of the report, names stay text, and equal input gives equal pages.
 * What a browser makes of them is tested in tests/pages. */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

#include <jansson.h>

#include <inttypes.h>

#define LINE(iteration, label, rest)                                           \
    "{\"type\":\"report\",\"version\":1,\"mode\":\"passive\",\"label\":" label \
    ",\"iteration\":" iteration "," rest "}\n"
#define TIMES \
    "\"time_ns\":20000000,\"compute_ns\":10000000,\"stall_ns\":8000000,\"recompute_ns\":500000"
#define MEMORY                                                                      \
    "\"budget_bytes\":8388608,\"peak_bytes\":8000000,\"live_peak_bytes\":16777216," \
    "\"floor_bytes\":4194304,\"next_floor_bytes\":4194304"
#define PAGE_BYTES_MAX 1000000

static char *page;
static size_t page_length;

/* Reads a file of the folder into `page`. */
static void read_page(const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "there is no %s", name);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    page_length = (size_t)ftell(file);
    rewind(file);
    free(page);
    page = malloc(page_length + 1);
    ck_assert_uint_eq(fread(page, 1, page_length, file), page_length);
    page[page_length] = '\0';
    fclose(file);
}

/* Whether the command can write pages; a build without dygraphs cannot. */
static bool can_write_pages(void)
{
    return system(CAPUCHIN_COMMAND " sweep --html p 2>&1 | grep -q 'built without dygraphs'") != 0;
}

static void setup(void)
{
    make_folder();
    write_file("t", CHAIN_TRACE);
}

static void teardown(void)
{
    free(page);
    page = NULL;
    remove_folder();
}

/* The text of the page from the first occurrence of `mark` on. */
static const char *after(const char *from, const char *mark)
{
    const char *at = strstr(from, mark);

    ck_assert_msg(at != NULL, "\"%s\" is not in the page", mark);
    return at + strlen(mark);
}

/* The number of a figure in the head: the first one after its id. */
static uint64_t figure(const char *id)
{
    char mark[64];

    snprintf(mark, sizeof(mark), "id=\"%s\">", id);
    return strtoull(after(after(page, mark), "<data value=\""), NULL, 10);
}

/* The value of a script element with JSON; the caller owns it. */
static json_t *read_data(const char *id)
{
    char mark[64];
    const char *text;
    json_t *value;

    snprintf(mark, sizeof(mark), "<script type=\"application/json\" id=\"%s\">", id);
    text = after(page, mark);
    value = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    ck_assert_msg(value != NULL, "%s is not JSON", id);
    return value;
}

static uint64_t number_of(const json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(object, key)), "%s is not a number", key);
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

START_TEST(numbers_are_those_of_the_report)
{
    json_t *data;
    const json_t *iteration;
    const char *row;

    write_file("r", LINE("1", "\"a\"", TIMES)
                        LINE("2", "\"a\"", TIMES "," MEMORY ",\"floor_op\":\"huge\""));
    RUN_COMMANDS({"explain r --html p", 0, {"iteration 2 a, passive mode: 20.000 ms"}});
    read_page("p");
    ck_assert_uint_eq(figure("peak"), 8000000);
    ck_assert_uint_eq(figure("cost"), 8500000);
    ck_assert_uint_eq(figure("floor"), 4194304);
    ck_assert_uint_eq(figure("need"), 16777216);
    after(page, "set by <code>huge</code>");
    after(page, "Peak: the budget was kept");
    after(page, "<data value=\"42.5\">42.5&#160;%</data> of <data value=\"20000000\">");
    after(page, "Next:</strong> Passive mode brings tensors back when an op needs them.");
    data = read_data("data");
    iteration = json_object_get(data, "iteration");
    ck_assert_uint_eq(number_of(iteration, "iteration"), 2);
    ck_assert_uint_eq(number_of(iteration, "peak_bytes"), 8000000);
    ck_assert_uint_eq(number_of(iteration, "stall_ns"), 8000000);
    json_decref(data);
    row = after(page, "<tr id=\"iteration-2\">");
    after(row, "<data value=\"20000000\">20.000 ms</data>");
    after(page, "\n2,a,passive,20000000,10000000,8000000,500000,0,0,0,0,8000000,0\n");
}
END_TEST

/* Times of ops that were not timed are unknown, not 0. */
START_TEST(what_was_not_timed_is_not_a_number)
{
    json_t *data;

    write_file("r", LINE("1", "\"\"",
                         "\"time_ns\":7000000,\"compute_ns\":null,\"stall_ns\":null,"
                         "\"recompute_ns\":null," MEMORY));
    RUN_COMMANDS({"explain r --html p", 0, {""}});
    read_page("p");
    after(page, "<dd>not timed <span class=\"note\">within <data value=\"7000000\">");
    after(page, "\n1,,passive,7000000,,,,0,0,0,0,8000000,0\n");
    data = read_data("data");
    ck_assert(json_is_null(json_object_get(json_object_get(data, "iteration"), "stall_ns")));
    json_decref(data);
}
END_TEST

START_TEST(an_exceeded_budget_stands_out)
{
    write_file("r", LINE("1", "\"\"",
                         TIMES ",\"budget_bytes\":1000,\"peak_bytes\":1001,"
                               "\"live_peak_bytes\":2000"));
    RUN_COMMANDS({"explain r --html p", 0, {""}});
    read_page("p");
    after(page, "<div class=\"figure bad\" id=\"peak\"><dt>Peak: above the budget");
    after(page, "exceeded its budget");
}
END_TEST

/* Markup, quotes, ends of scripts and of comments, control characters, formulas, separators. */
#define HOSTILE "</pre></script><script>alert(1)</script><!--\\\"'&\\u001b[2J\\u2028,x"

START_TEST(names_stay_text)
{
    static char line[500000];
    static char name[200001];
    json_t *data;

    memset(name, '<', sizeof(name) - 1);
    snprintf(line, sizeof(line),
             LINE("1", "\"%s\"", TIMES)
                 LINE("2", "\"=%s\"", TIMES "," MEMORY ",\"floor_op\":\"%s\"")
                     LINE("3", "\"%s\"", TIMES),
             HOSTILE, HOSTILE, HOSTILE, name);
    write_file("r", line);
    RUN_COMMANDS({"explain r -i 2 --html p", 0, {""}});
    read_page("p");
    ck_assert_uint_lt(page_length, PAGE_BYTES_MAX / 2);
    ck_assert_ptr_null(strstr(page, "<script>alert"));
    ck_assert_ptr_null(strstr(page, "\x1b"));
    ck_assert_ptr_null(strstr(page, "\xe2\x80\xa8"));
    after(page, "set by <code>&#60;/pre&#62;&#60;/script&#62;&#60;script&#62;alert(1)");
    after(page, "\n2,\"'=&#60;/pre&#62;&#60;/script&#62;&#60;script&#62;alert(1)");
    after(page, "&#34;&#34;&#39;&#38;\\x1b[2J");
    data = read_data("data");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(data, "iteration"), "floor_op")),
        "</pre></script><script>alert(1)</script><!--\"'&\\x1b[2J\\xe2\\x80\\xa8,x");
    json_decref(data);
}
END_TEST

/* A page refers to nothing outside itself, and forbids it. */
START_TEST(a_page_is_complete)
{
    write_file("r", LINE("1", "\"a\"", TIMES "," MEMORY));
    RUN_COMMANDS({"explain r --html p", 0, {""}});
    read_page("p");
    ck_assert_ptr_null(strstr(page, "<link"));
    ck_assert_ptr_null(strstr(page, " src="));
    ck_assert_ptr_null(strstr(page, "href=\"http"));
    after(page, "Content-Security-Policy\" content=\"default-src 'none';");
    after(page, "Permission is hereby granted, free of charge");
    after(page, "<noscript>");
    shell("tail -n 1 p | grep -q '^</html>$'");
}
END_TEST

/* A long report gives no larger page, and what stands out stays in it. */
START_TEST(long_reports_keep_their_extremes)
{
    shell("for i in $(seq 1 20000); do echo '{\"type\":\"report\",\"version\":1,\"mode\":"
          "\"guided\",\"label\":\"\",\"iteration\":'$i',\"time_ns\":'$((1000000 + i % 7))"
          "',\"compute_ns\":900000,\"stall_ns\":1,\"recompute_ns\":2}'; done > r");
    shell("sed -i '7777s/\"time_ns\":[0-9]*/\"time_ns\":9000000/;"
          "8888s/\"time_ns\":[0-9]*/\"time_ns\":100/;9999s/}/,\"diverged\":1}/' r");
    RUN_COMMANDS({"explain r --html p", 0, {"20000 iterations"}});
    read_page("p");
    ck_assert_uint_lt(page_length, PAGE_BYTES_MAX);
    after(page, "\n7777,,guided,9000000,");
    after(page, "\n8888,,guided,100,");
    after(page, "\n9999,,guided,");
    after(page, "There are more than a page can hold");
    after(page, "<tr id=\"iteration-7777\">");
}
END_TEST

START_TEST(equal_input_gives_equal_pages)
{
    write_file("r", LINE("1", "\"a\"", TIMES "," MEMORY));
    RUN_COMMANDS({"explain r --trace t --html p", 0, {""}},
                 {"explain r --trace t --html q", 0, {""}}, {"sweep t --html s", 0, {""}},
                 {"sweep t --html u", 0, {""}});
    shell("cmp p q && cmp s u");
}
END_TEST

/* The curves of a page are those of the numbers that sweep writes. */
START_TEST(budget_curves_are_those_of_sweep)
{
    json_t *numbers;
    const json_t *curve;
    const char *csv;

    RUN_COMMANDS({"sweep t --planners hybrid,lru -o n.json --html p", 0, {""}});
    read_page("n.json");
    numbers = json_loads(page, 0, NULL);
    ck_assert_ptr_nonnull(numbers);
    curve = json_object_get(json_object_get(numbers, "overhead_percent"), "hybrid");
    read_page("p");
    csv = after(page, "budget_percent,budget_bytes,planner,overhead_percent\n");
    for (size_t i = 0; i < json_array_size(curve); i++) {
        const json_t *overhead = json_array_get(curve, i);
        char line[128];

        snprintf(line, sizeof(line), "%zu,%zu,hybrid,", 20 + 10 * i, 31 * (20 + 10 * i));
        csv = after(csv, line);
        if (json_is_null(overhead)) {
            ck_assert_int_eq(*csv, '\n');
        } else {
            ck_assert_double_eq_tol(strtod(csv, NULL), json_real_value(overhead), 1e-6);
        }
    }
    json_decref(numbers);
    after(page, "no plan</data>");
    ck_assert_uint_eq(figure("need"), 3100);
    ck_assert_uint_eq(figure("floor"), 2050);
}
END_TEST

START_TEST(reports_without_a_trace_say_how_to_get_curves)
{
    write_file("r", LINE("1", "\"a\"", TIMES "," MEMORY));
    RUN_COMMANDS({"explain r --html p", 0, {""}});
    read_page("p");
    after(page, "Record a trace with <code>CAPUCHIN_TRACE=FILE</code>");
    RUN_COMMANDS({"explain r --trace t --html p", 0, {""}});
    read_page("p");
    after(page, "curves planned, the point measured");
    after(page, "\"run_bytes\":8388608,\"run_percent\":100.0");
}
END_TEST

/* A plan as a page: the numbers of its simulation, and an iteration to draw. */
START_TEST(plans_have_their_simulated_numbers)
{
    json_t *numbers;
    json_t *data;
    uint64_t iteration_ns;

    RUN_COMMANDS({"plan t --budget 2100 -o plan --html p --json", 0, {""}});
    numbers = json_loads(output, 0, NULL);
    ck_assert_ptr_nonnull(numbers);
    iteration_ns = number_of(numbers, "iteration_ns");
    read_page("p");
    after(page, "Planned, not measured: an iteration of <code>t</code>");
    ck_assert_uint_eq(figure("peak"), number_of(numbers, "peak_bytes"));
    ck_assert_uint_eq(figure("cost"), iteration_ns - number_of(numbers, "ideal_ns"));
    ck_assert_uint_eq(figure("floor"), 2050);
    ck_assert_uint_eq(figure("need"), 3100);
    data = read_data("data");
    ck_assert_str_eq(json_string_value(json_object_get(data, "what")), "planned");
    ck_assert_uint_eq(number_of(data, "iteration_ns"), iteration_ns);
    ck_assert_uint_eq(number_of(data, "bound_ns"), number_of(numbers, "bound_ns"));
    json_decref(data);
    data = read_data("view");
    ck_assert_uint_eq(number_of(data, "time_ns"), iteration_ns);
    ck_assert_uint_eq(number_of(data, "budget_bytes"), 2100);
    json_decref(data);
    json_decref(numbers);
    after(page, "What other budgets would cost <small>planned</small>");
    after(page, "\"plan_bytes\":2100,\"plan_percent\":");
    after(page, "<h2 id=\"memory-title\">Memory over time <small>planned</small>");
    after(page, "<h2 id=\"tensors-title\">Tensors over time <small>planned</small>");
    after(page, "<h2 id=\"links-title\">Links <small>planned</small>");
    after(after(page, "tensor,in_trigger,back_op,wait_ns\n"), "\n1,");
    after(page, "\nx,3,1000,2000,");
    after(page, "\n,h,,");
    RUN_COMMANDS({"plan t -b 2100 --html s", 0, {""}}, {"simulate t plan --html q", 0, {""}});
    shell("cmp p s");
    read_page("q");
    after(page, "Memory over time <small>planned</small>");
    ck_assert_uint_eq(figure("cost"), iteration_ns - 9000);
    after(page, "capuchin sweep TRACE --html FILE");
}
END_TEST

/* The chain of the fixture, a thousand times slower and in whole pages. */
#define PAGES_TRACE                                                                           \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 102400, "parameter")                          \
        TENSOR_LINE(1, "x", 1024000, "activation") TENSOR_LINE(2, "y", 1024000, "activation") \
            TENSOR_LINE(3, "z", 1024000, "activation") TENSOR_LINE(4, "g", 51200, "gradient") \
                OP_LINE("f0", 2000000, "[0]", "[1]", "[]", "false")                           \
                    OP_LINE("f1", 2000000, "[1]", "[2]", "[]", "false")                       \
                        OP_LINE("f2", 3000000, "[2]", "[3]", "[]", "false")                   \
                            OP_LINE("b0", 2000000, "[1,3]", "[4]", "[]", "false") END_LINE(5, 4)

/* Writes the rows of the table of links of the page `p` to the files planned and measured. */
static void split_links(void)
{
    shell("for s in planned measured; do sed -n '/id=\"links-table\"/,/<.table>/p' p |"
          " grep \"<td>$s</td>\" | sed \"s/$s//\" > $s; test $(wc -l < $s) -eq 2 || exit 1; done");
}

/* A run on a simulated device takes exactly as long as its plan promises, so copies are as planned.
 */
START_TEST(measured_iterations_are_compared_with_their_plan)
{
    write_file("net", PAGES_TRACE);
    RUN_COMMANDS({"replay net -b 70% --page 4096 --report q --save-plan plan -n 5",
                  0,
                  {"takes exactly that time"}},
                 {"explain q --trace net --plan plan --html p", 0, {""}});
    read_page("p");
    after(page, "Memory over time <small>planned</small>");
    after(page, "This is the plan. For what was measured, record the report with");
    RUN_COMMANDS({"explain q --html p", 0, {""}});
    read_page("p");
    after(page, "record the report with <code>CAPUCHIN_TIMELINE=1</code>");
    shell("CAPUCHIN_TIMELINE=1 CAPUCHIN_SAMPLE_EVERY=1 " CAPUCHIN_COMMAND
          " replay net -b 70% --page 4096 --report r --save-plan plan -n 5");
    RUN_COMMANDS({"explain r -i 5 --trace net --plan plan --html p", 0, {""}});
    read_page("p");
    after(page, "Memory over time <small>measured</small>");
    after(page, "Links <small>planned and measured</small>");
    split_links();
    shell("cmp planned measured && ! grep -q 'value=\"0\"' planned");
    RUN_COMMANDS({"explain r -i 5 --html p", 0, {""}});
    read_page("p");
    after(page, "Links <small>measured</small>");
    write_file("other", TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "x", 100, "activation")
                            OP_LINE("f", 10, "[]", "[0]", "[]", "false") END_LINE(1, 1));
    RUN_COMMANDS({"explain r --trace other --plan plan --html p", 2, {"for another trace"}},
                 {"explain r --plan plan --html p", 2, {"has no effect without --trace"}});
}
END_TEST

/* Writes a trace of so many layers: each has a forward op and two backward ops, and four tensors.
 */
static void write_layers(const char *name, unsigned layers)
{
    size_t room = (size_t)layers * 1000 + 1000;
    char *text = malloc(room);
    size_t length = (size_t)snprintf(text, room, "%s", TRACE_LINE MACHINE_LINE);
    const char *tensor =
        "{\"type\":\"tensor\",\"id\":%u,\"name\":\"block%u.linear.%s\",\"bytes\":%u,"
        "\"kind\":\"%s\"}\n";
    const char *op = "{\"type\":\"op\",\"name\":\"block%u.linear.%s\",\"ns\":%u,\"reads\":[%u,%u],"
                     "\"writes\":[%u],\"updates\":[],\"replayable\":%s}\n";

#define ADD(...) length += (size_t)snprintf(text + length, room - length, __VA_ARGS__)
    ADD("{\"type\":\"tensor\",\"id\":0,\"name\":\"x\",\"bytes\":4096,\"kind\":\"input\"}\n");
    for (unsigned i = 0; i < layers; i++) {
        ADD(tensor, 4 * i + 1, i, "w", 1048576 * (1 + i % 4), "parameter");
        ADD(tensor, 4 * i + 2, i, "y", 4194304 * (1 + i % 3), "activation");
        ADD(tensor, 4 * i + 3, i, "dy", 4194304 * (1 + i % 3), "activation");
        ADD(tensor, 4 * i + 4, i, "w.gradient", 1048576 * (1 + i % 4), "gradient");
    }
    ADD("{\"type\":\"op\",\"name\":\"x\",\"ns\":10,\"reads\":[],\"writes\":[0],\"updates\":[],"
        "\"replayable\":false}\n");
    for (unsigned i = 0; i < layers; i++) {
        ADD(op, i, "forward", 15000000 + 791900 * (i % 13), i > 0 ? 4 * i - 2 : 0, 4 * i + 1,
            4 * i + 2, "true");
    }
    for (unsigned i = layers; i-- > 0;) {
        ADD(op, i, "backward", 15000000 + 791900 * (i % 13), 4 * i + 1,
            i + 1 < layers ? 4 * i + 7 : 4 * i + 2, 4 * i + 3, "true");
        ADD(op, i, "weights", 15000000 + 791900 * (i % 13), 4 * i + 2, 4 * i + 3, 4 * i + 4,
            "true");
    }
    ADD("{\"type\":\"end\",\"tensors\":%u,\"ops\":%u}\n", 4 * layers + 1, 3 * layers + 1);
#undef ADD
    ck_assert_uint_lt(length, room);
    write_file(name, text);
    free(text);
}

/* replay writes the page of its own run, measured and planned. */
START_TEST(replays_have_pages)
{
    json_t *data;

    write_file("net", PAGES_TRACE);
    RUN_COMMANDS({"replay net -b 70% --page 4096 -n 5 --html p", 0, {"takes exactly that time"}});
    read_page("p");
    after(page, "<span class=\"command\">capuchin replay</span> net");
    after(page, "Memory over time <small>measured</small>");
    after(page, "Links <small>planned and measured</small>");
    after(page, "capuchin sweep TRACE --html FILE");
    data = read_data("data");
    ck_assert_uint_eq(figure("peak"), number_of(json_object_get(data, "iteration"), "peak_bytes"));
    json_decref(data);
    /* The copies of both are equal, though the run numbers tensors in another order. */
    write_layers("layers", 20);
    RUN_COMMANDS({"replay layers -b 50% --page 65536 --planner swap -n 6 --html p", 0, {""}});
    split_links();
    shell("cmp planned measured");
    RUN_COMMANDS({"replay net -b 70% --page 4096 -n 2 --mode passive --html p", 0, {""}},
                 {"replay net -b 70% --html net", 2, {"--html net is the same file as TRACE net"}});
    read_page("p");
    after(page, "Memory over time <small>measured</small>");
}
END_TEST

START_TEST(pages_of_five_thousand_ops_are_small)
{
    write_layers("big", 1667);
    RUN_COMMANDS({"plan big -b 60% --planner swap --effort quick --html p", 0, {""}});
    read_page("p");
    ck_assert_uint_lt(page_length, PAGE_BYTES_MAX);
    after(page, "block1666.linear.weights");
    shell("test $(sed -n '/id=\"ops-csv\"/,/<.pre>/p' p | grep -c linear) -eq 5001");
}
END_TEST

/* Without a plan there is nothing to wait for, and nothing is copied. */
START_TEST(traces_without_a_plan_have_pages)
{
    RUN_COMMANDS({"simulate t --html p", 0, {""}});
    read_page("p");
    ck_assert_uint_eq(figure("cost"), 0);
    ck_assert_uint_eq(figure("peak"), 3100);
    after(page, "<td>in, back to the device</td><td>planned</td><td><data value=\"0\">0</data>");
}
END_TEST

START_TEST(names_of_traces_stay_text)
{
    char *trace = malloc(100000);

    snprintf(
        trace, 100000,
        TRACE_LINE MACHINE_LINE
        "{\"type\":\"tensor\",\"id\":0,\"name\":\"%s\",\"bytes\":100,\"kind\":\"activation\"}\n"
        "{\"type\":\"op\",\"name\":\"%s\",\"ns\":10,\"reads\":[],\"writes\":[0],\"updates\":[],"
        "\"replayable\":true}\n" END_LINE(1, 1),
        HOSTILE, HOSTILE);
    write_file("h", trace);
    free(trace);
    RUN_COMMANDS({"simulate h --html p", 0, {""}});
    read_page("p");
    ck_assert_ptr_null(strstr(page, "<script>alert"));
    ck_assert_ptr_null(strstr(page, "\x1b"));
    after(page, "<td class=\"name\">&#60;/pre&#62;&#60;/script&#62;");
    after(page, "\n\"&#60;/pre&#62;&#60;/script&#62;&#60;script&#62;alert(1)");
}
END_TEST

/* What cannot be a page is rejected by name, and the page that was there stays. */
START_TEST(bad_files_are_rejected)
{
    write_file("r", LINE("1", "\"a\"", TIMES));
    write_file("cut", LINE("1", "\"a\"", TIMES) "{\"type\":\"report\",\"ver");
    write_file("p", "old");
    RUN_COMMANDS({"explain t --html p", 2, {"t:1: not a report as CAPUCHIN_REPORT=FILE writes it"}},
                 {"explain nothing --html p", 2, {"nothing: No such file or directory"}},
                 {"explain r --html r", 2, {"--html r is the same file as REPORT r"}},
                 {"explain r --html missing/p", 2, {"missing/p: cannot be written"}},
                 {"explain r --html -", 2, {"--html -: a page is written to a file"}},
                 {"sweep t --html t", 2, {"--html t is the same file as TRACE t"}});
    read_page("p");
    ck_assert_str_eq(page, "old");
    RUN_COMMANDS({"explain cut --html p", 0, {"cut:2: the line is cut off and is left out"}});
    read_page("p");
    after(page, "\n1,a,passive,20000000,");
}
END_TEST

START_TEST(a_build_without_dygraphs_names_the_package)
{
    write_file("r", LINE("1", "\"a\"", TIMES));
    write_file("p", "old");
    ck_assert_int_eq(run_shell(COMMAND_WITHOUT_DYGRAPHS " explain r --html p 2>&1"), 2);
    expect("--html p: this command was built without dygraphs");
    expect("libjs-dygraphs");
    ck_assert_int_eq(run_shell(COMMAND_WITHOUT_DYGRAPHS " explain r 2>&1"), 0);
    expect("iteration 1 a, passive mode");
    read_page("p");
    ck_assert_str_eq(page, "old");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pages");
    TCase *cases = tcase_create("pages");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_build_without_dygraphs_names_the_package);
    if (can_write_pages()) {
        tcase_add_test(cases, numbers_are_those_of_the_report);
        tcase_add_test(cases, what_was_not_timed_is_not_a_number);
        tcase_add_test(cases, an_exceeded_budget_stands_out);
        tcase_add_test(cases, names_stay_text);
        tcase_add_test(cases, a_page_is_complete);
        tcase_add_test(cases, long_reports_keep_their_extremes);
        tcase_add_test(cases, equal_input_gives_equal_pages);
        tcase_add_test(cases, budget_curves_are_those_of_sweep);
        tcase_add_test(cases, reports_without_a_trace_say_how_to_get_curves);
        tcase_add_test(cases, plans_have_their_simulated_numbers);
        tcase_add_test(cases, measured_iterations_are_compared_with_their_plan);
        tcase_add_test(cases, replays_have_pages);
        tcase_add_test(cases, pages_of_five_thousand_ops_are_small);
        tcase_add_test(cases, traces_without_a_plan_have_pages);
        tcase_add_test(cases, names_of_traces_stay_text);
        tcase_add_test(cases, bad_files_are_rejected);
    } else {
        printf("pages are not tested: the command was built without libjs-dygraphs\n");
    }
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

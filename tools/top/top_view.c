/* Running programs as lines of text, and these lines on a screen. */
#include "tools/top/top_view.h"

#include "base/printable.h"
#include "tools/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if CAPUCHIN_HAVE_NCURSES
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>
#include <unistd.h>
#endif

enum { BAR_COLUMNS = 30, SPARKLINE_MARGIN = 46, SPARKLINE_MAX = 120, STALLS_SHOWN = 3 };

/* The values are checked when a line is read (top_source.h). */
static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key, char text[PRINTABLE_BYTES])
{
    return printable(json_string_value(json_object_get(object, key)), text);
}

static capu_status put_bar(struct string_buffer *text, uint64_t part, uint64_t whole,
                           const struct top_style *style)
{
    size_t filled = whole == 0 || part >= whole
                        ? BAR_COLUMNS * (size_t)(whole != 0)
                        : (size_t)((double)BAR_COLUMNS * ((double)part / (double)whole));
    capu_status status = string_buffer_append(text, "[", 1);

    for (size_t i = 0; i < BAR_COLUMNS && status == CAPU_OK; i++) {
        const char *cell = i >= filled ? " " : style->is_utf8 ? "\u2588" : "#";

        status = string_buffer_append(text, cell, strlen(cell));
    }
    return status == CAPU_OK ? string_buffer_append(text, "]", 1) : status;
}

static capu_status put_memory(struct string_buffer *text, const json_t *context,
                              const struct top_style *style)
{
    uint64_t budget = number_of(context, "budget_bytes");
    uint64_t held = number_of(context, "held_bytes");
    char sizes[2][32];
    capu_status status = string_buffer_format(text, "  memory  ");

    if (status == CAPU_OK) {
        status = put_bar(text, held, budget, style);
    }
    return status == CAPU_OK
               ? string_buffer_format(text, " %.0f %%: %s of %s\n", percent_of(held, budget),
                                      human_bytes(held, sizes[0]), human_bytes(budget, sizes[1]))
               : status;
}

static capu_status put_needs(struct string_buffer *text, const json_t *report)
{
    char sizes[4][32];

    return string_buffer_format(text, "          peak %s, without a limit %s, floor %s, host %s\n",
                                human_bytes(number_of(report, "peak_bytes"), sizes[0]),
                                human_bytes(number_of(report, "live_peak_bytes"), sizes[1]),
                                human_bytes(number_of(report, "floor_bytes"), sizes[2]),
                                human_bytes(number_of(report, "host_bytes"), sizes[3]));
}

/* The kinds that there are, as many per line as fit. */
static capu_status put_kinds(struct string_buffer *text, const json_t *context,
                             const struct top_style *style)
{
    static const char *const kinds[] = {"parameter", "optimizer", "gradient", "activation",
                                        "workspace", "input",     "unknown"};
    const json_t *bytes = json_object_get(context, "live_bytes");
    size_t column = 0;
    capu_status status = CAPU_OK;
    char entry[64];
    char size[32];

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && status == CAPU_OK; i++) {
        size_t length;
        bool is_next;

        if (number_of(bytes, kinds[i]) == 0) {
            continue;
        }
        length = (size_t)snprintf(entry, sizeof(entry), "%s %s", kinds[i],
                                  human_bytes(number_of(bytes, kinds[i]), size));
        is_next = column > 0 && column + 2 + length < style->columns;
        status = string_buffer_format(text, "%s%s",
                                      column == 0 ? "  alive   "
                                      : is_next   ? ", "
                                                  : ",\n          ",
                                      entry);
        column = (is_next ? column + 2 : 10) + length;
    }
    return status == CAPU_OK && column > 0 ? string_buffer_append(text, "\n", 1) : status;
}

static capu_status put_plan(struct string_buffer *text, const json_t *context, const json_t *report)
{
    char planner[PRINTABLE_BYTES];
    char why[PRINTABLE_BYTES];
    char time[32];

    if (strcmp(json_string_value(json_object_get(context, "mode")), "guided") != 0) {
        return CAPU_OK;
    }
    (void)text_of(context, "planner", planner);
    if (strcmp(json_string_value(json_object_get(report, "mode")), "guided") != 0) {
        (void)text_of(report, "plan_error", why);
        return string_buffer_format(text, "  plan    none%s%s\n", why[0] != '\0' ? ": " : "", why);
    }
    return string_buffer_format(
        text, "  plan    %s, stage %" PRIu64 ", predicts %s%s\n",
        planner[0] != '\0' ? planner : "hybrid", number_of(report, "plan_stage"),
        human_ns(number_of(report, "predicted_ns"), time),
        number_of(report, "diverged") != 0 ? "; the iteration left it" : "");
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* One character per iteration, from the fastest to the slowest that is shown. */
static capu_status put_sparkline(struct string_buffer *text, const uint64_t *times, size_t count,
                                 const struct top_style *style)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < count; i++) {
        least = times[i] < least ? times[i] : least;
        most = times[i] > most ? times[i] : most;
    }
    for (size_t i = 0; i < count && status == CAPU_OK; i++) {
        size_t level =
            most == least
                ? 0
                : (size_t)(7.0 * ((double)(times[i] - least) / (double)(most - least)) + 0.5);
        const char *cell = style->is_utf8 ? blocks[level] : plain[level];

        status = string_buffer_append(text, cell, strlen(cell));
    }
    return status;
}

static capu_status put_times(struct string_buffer *text, const json_t *context,
                             const json_t *report, const struct top_style *style)
{
    const json_t *list = json_object_get(context, "times_ns");
    size_t size = json_array_size(list);
    size_t room = style->columns > SPARKLINE_MARGIN ? style->columns - SPARKLINE_MARGIN : 0;
    size_t count = size < SPARKLINE_MAX ? size : SPARKLINE_MAX;
    uint64_t times[SPARKLINE_MAX];
    uint64_t sorted[SPARKLINE_MAX];
    char newest[32];
    char median[32];
    capu_status status;

    if (count == 0) {
        return CAPU_OK;
    }
    for (size_t i = 0; i < count; i++) {
        times[i] = (uint64_t)json_integer_value(json_array_get(list, size - count + i));
        sorted[i] = times[i];
    }
    qsort(sorted, count, sizeof(sorted[0]), by_value);
    status = string_buffer_format(text, "  time    %s, median %s  ",
                                  human_ns(number_of(report, "time_ns"), newest),
                                  human_ns(sorted[count / 2], median));
    if (status == CAPU_OK) {
        room = room < count ? room : count;
        status = put_sparkline(text, times + count - room, room, style);
    }
    return status == CAPU_OK ? string_buffer_append(text, "\n", 1) : status;
}

/* The bytes of an iteration over its time, and over the rate of the link. */
static capu_status put_rate(struct string_buffer *text, const char *what, uint64_t bytes,
                            uint64_t time_ns, uint64_t bytes_per_s)
{
    double rate = time_ns > 0 ? (double)bytes * 1e9 / (double)time_ns : 0.0;
    char size[32];
    capu_status status =
        string_buffer_format(text, "%s %s, %.2f GB/s", what, human_bytes(bytes, size), rate / 1e9);

    return status == CAPU_OK && bytes_per_s > 0
               ? string_buffer_format(text, " (%.0f %% of the link)",
                                      100.0 * rate / (double)bytes_per_s)
               : status;
}

static capu_status put_link(struct string_buffer *text, const json_t *context, const json_t *report)
{
    uint64_t time_ns = number_of(report, "time_ns");
    capu_status status = put_rate(text, "  link    out", number_of(report, "evicted_bytes"),
                                  time_ns, number_of(context, "d2h_bytes_per_s"));

    if (status == CAPU_OK) {
        status = put_rate(text, "\n          in", number_of(report, "prefetched_bytes"), time_ns,
                          number_of(context, "h2d_bytes_per_s"));
    }
    return status == CAPU_OK ? string_buffer_append(text, "\n", 1) : status;
}

static capu_status put_stalls(struct string_buffer *text, const json_t *context)
{
    const json_t *stalls = json_object_get(context, "stalls");
    capu_status status = CAPU_OK;
    size_t shown = json_array_size(stalls) < STALLS_SHOWN ? json_array_size(stalls) : STALLS_SHOWN;

    for (size_t i = 0; i < shown && status == CAPU_OK; i++) {
        const json_t *stall = json_array_get(stalls, i);
        char name[PRINTABLE_BYTES];
        char replay[PRINTABLE_BYTES];
        char time[32];

        (void)text_of(stall, "op", name);
        (void)text_of(stall, "replay", replay);
        status = string_buffer_format(
            text, "%s%12s before %s%s%s\n", i == 0 ? "  stalls  " : "          ",
            human_ns(number_of(stall, "wait_ns"), time), name[0] != '\0' ? name : "the end",
            replay[0] != '\0' ? ", for the replay of " : "", replay);
    }
    return status == CAPU_OK && shown > 0
               ? string_buffer_format(text, "          in iteration %" PRIu64 "\n",
                                      number_of(context, "stalls_iteration"))
               : status;
}

static capu_status put_age(struct string_buffer *text, const json_t *context, const json_t *report)
{
    const json_t *age = json_object_get(context, "age_ns");
    char label[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];
    double seconds = (double)json_integer_value(age) / 1e9;

    (void)text_of(report, "label", label);
    return string_buffer_format(text, "  iteration %" PRIu64 "%s%s, %s, complete %.0f s ago\n",
                                number_of(report, "iteration"), label[0] != '\0' ? " of " : "",
                                label, text_of(report, "mode", mode), seconds);
}

static capu_status put_context(struct string_buffer *text, const json_t *program,
                               const json_t *context, const struct top_style *style)
{
    const json_t *report = json_object_get(context, "report");
    char name[PRINTABLE_BYTES];
    char device[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];
    capu_status status = string_buffer_format(
        text, "%s (process %" PRIu64 "), context %" PRIu64 ": %s, %s\n",
        text_of(program, "program", name), number_of(program, "pid"), number_of(context, "context"),
        text_of(context, "device", device), text_of(context, "mode", mode));

    report = json_is_null(report) ? NULL : report;
    if (status == CAPU_OK && report != NULL) {
        status = put_age(text, context, report);
    }
    if (status == CAPU_OK) {
        status = put_memory(text, context, style);
    }
    if (report == NULL) {
        return status == CAPU_OK ? string_buffer_format(text, "  no iteration is complete yet\n")
                                 : status;
    }
    if (status == CAPU_OK) {
        status = put_needs(text, report);
    }
    if (status == CAPU_OK) {
        status = put_kinds(text, context, style);
    }
    if (status == CAPU_OK) {
        status = put_plan(text, context, report);
    }
    if (status == CAPU_OK) {
        status = put_times(text, context, report, style);
    }
    if (status == CAPU_OK) {
        status = put_link(text, context, report);
    }
    return status == CAPU_OK ? put_stalls(text, context) : status;
}

/* Sockets that are not shown, a line each. */
static capu_status put_rejected(struct string_buffer *text, const struct string_buffer *rejected)
{
    const char *line = rejected->data;
    capu_status status = CAPU_OK;

    while (line != NULL && *line != '\0' && status == CAPU_OK) {
        size_t length = strcspn(line, "\n");

        status = string_buffer_format(text, "not shown: %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    return status;
}

capu_status top_view(struct string_buffer *text, const struct top_snapshot *snapshot,
                     const struct top_style *style)
{
    capu_status status = CAPU_OK;
    size_t i;
    size_t k;
    json_t *program;
    json_t *context;

    json_array_foreach(snapshot->programs, i, program)
    {
        json_array_foreach(json_object_get(program, "contexts"), k, context)
        {
            if (status == CAPU_OK && text->length > 0) {
                status = string_buffer_append(text, "\n", 1);
            }
            if (status == CAPU_OK) {
                status = put_context(text, program, context, style);
            }
        }
    }
    if (status == CAPU_OK && text->length == 0) {
        status = string_buffer_format(text, "No program offers its counters. Set CAPUCHIN_TOP=1 "
                                            "for those that are to be shown.\n");
    }
    return status == CAPU_OK ? put_rejected(text, &snapshot->rejected) : status;
}

/* The screen: the lines of top_view, as many as fit, and keys to move in them. */

#if CAPUCHIN_HAVE_NCURSES

/* Counts the lines of a text that ends with a newline. */
static size_t count_lines(const struct string_buffer *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->length; i++) {
        count += text->data[i] == '\n';
    }
    return count;
}

/* Draws from line `first` on. The last row says what the keys do. */
static void draw_screen(const struct string_buffer *text, size_t first)
{
    const char *line = text->data;
    int rows = LINES - 1;

    erase();
    for (size_t i = 0; i < first && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    for (int row = 0; row < rows && line != NULL && *line != '\0'; row++) {
        size_t length = strcspn(line, "\n");

        attrset(*line != ' ' ? A_BOLD : A_NORMAL);
        mvaddnstr(row, 0, line, (int)length);
        line += length + (line[length] == '\n');
    }
    attrset(A_REVERSE);
    mvaddnstr(LINES - 1, 0, " q: quit   up, down: move ", COLS > 1 ? COLS - 1 : 0);
    attrset(A_NORMAL);
    refresh();
}

/* Where a key moves to; the last line can be the first that is shown. */
static size_t move_by(int key, size_t first, size_t count)
{
    size_t page = LINES > 2 ? (size_t)LINES - 2 : 1;
    size_t last = count > 0 ? count - 1 : 0;

    switch (key) {
    case KEY_UP:
        first -= first > 0;
        break;
    case KEY_DOWN:
        first++;
        break;
    case KEY_PPAGE:
        first -= first > page ? page : first;
        break;
    case KEY_NPAGE:
        first += page;
        break;
    case KEY_HOME:
        first = 0;
        break;
    default:
        break;
    }
    return first < last ? first : last;
}

/* True: the text is that of the programs as they are now. */
static bool read_programs(const char *folder, struct string_buffer *text)
{
    struct top_style style = {.columns = (size_t)COLS,
                              .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
    struct top_snapshot snapshot;
    bool is_fine = top_snapshot_take(folder, &snapshot);

    if (is_fine) {
        string_buffer_finish(text);
        is_fine = top_view(text, &snapshot, &style) == CAPU_OK;
        top_snapshot_finish(&snapshot);
    }
    return is_fine;
}

static bool is_quit(int key)
{
    return key == 'q' || key == 'Q';
}

int top_screen_run(const char *folder, double seconds)
{
    struct string_buffer text = {0};
    size_t first = 0;
    bool is_fine = true;
    int key = ERR;

    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        say("top needs a terminal; --once prints a table");
        return EXIT_USAGE;
    }
    /* Not for numbers: those stay as in all other output. */
    (void)setlocale(LC_CTYPE, "");
    if (newterm(NULL, stdout, stdin) == NULL) {
        say("the terminal is of a kind that is not known (TERM); --once prints a table");
        return EXIT_USAGE;
    }
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    timeout((int)(seconds * 1000.0));
    while (is_fine && !is_quit(key)) {
        if (key == ERR || key == KEY_RESIZE) { /* ERR: the time has passed */
            is_fine = read_programs(folder, &text);
        }
        first = move_by(key, first, count_lines(&text));
        draw_screen(&text, first);
        key = getch();
    }
    (void)endwin();
    string_buffer_finish(&text);
    if (!is_fine) {
        say("the programs cannot be shown: out of memory, or their folder cannot be read");
    }
    return is_fine ? EXIT_FINE : EXIT_USAGE;
}

#else

int top_screen_run(const char *folder, double seconds)
{
    (void)folder;
    (void)seconds;
    say("this command was built without ncurses: install libncurses-dev and build it again, or "
        "use --once");
    return EXIT_USAGE;
}

#endif

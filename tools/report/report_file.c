/* Reads report files: counters of all iterations, and their medians per kind. */
#include "tools/report/report_file.h"

#include "policy/format/json_lines.h"
#include "tools/output/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item. False: out of memory. */
static bool grow_list(void **list, size_t count, size_t item_bytes)
{
    void *grown;

    if (count != 0 && (count < 16 || (count & (count - 1)) != 0)) {
        return true;
    }
    grown = realloc(*list, (count < 16 ? 16 : 2 * count) * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    return true;
}

static bool find_kind(struct report_file *file, const char *label, const char *mode, size_t *kind)
{
    struct report_kind *made;

    for (size_t i = 0; i < file->kind_count; i++) {
        if (strcmp(file->kinds[i].label, label) == 0 && strcmp(file->kinds[i].mode, mode) == 0) {
            *kind = i;
            return true;
        }
    }
    if (!grow_list((void **)&file->kinds, file->kind_count, sizeof(*file->kinds))) {
        return false;
    }
    made = &file->kinds[file->kind_count];
    *made = (struct report_kind){.label = strdup(label), .mode = strdup(mode)};
    *kind = file->kind_count++;
    return made->label != NULL && made->mode != NULL;
}

static uint64_t counter(const json_t *line, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(line, name));

    return value > 0 ? (uint64_t)value : 0;
}

static bool is_report(const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    return type != NULL && strcmp(type, "report") == 0 &&
           json_is_string(json_object_get(line, "mode")) &&
           json_is_string(json_object_get(line, "label")) &&
           json_is_integer(json_object_get(line, "iteration")) &&
           json_is_integer(json_object_get(line, "time_ns"));
}

static bool is_timeline(const json_t *line)
{
    const char *type = json_string_value(json_object_get(line, "type"));

    return type != NULL && strcmp(type, "timeline") == 0 &&
           json_is_integer(json_object_get(line, "iteration"));
}

/* Notes where the timeline of an iteration is. It follows the iteration's report, not always at
   once. What it contains is checked when it is read. */
static bool add_timeline(struct report_file *file, const json_t *line, long offset, size_t number)
{
    uint64_t iteration = counter(line, "iteration");

    for (size_t i = file->count; i-- > 0;) {
        if (file->iterations[i].iteration == iteration) {
            file->iterations[i].timeline_offset = offset;
            file->iterations[i].timeline_line = number;
            return true;
        }
    }
    say("%s:%zu: a timeline of iteration %" PRIu64 ", which has no report before it", file->path,
        number, iteration);
    return false;
}

static bool add_iteration(struct report_file *file, const json_t *line, long offset)
{
    struct reported iteration = {.is_timed = !json_is_null(json_object_get(line, "compute_ns")),
                                 .offset = offset};

    if (!grow_list((void **)&file->iterations, file->count, sizeof(*file->iterations)) ||
        !find_kind(file, json_string_value(json_object_get(line, "label")),
                   json_string_value(json_object_get(line, "mode")), &iteration.kind)) {
        say("out of memory for the reports of %s", file->path);
        return false;
    }
#define READ_COUNTER(name, unit, text) iteration.name = counter(line, #name);
    REPORT_COUNTERS(READ_COUNTER)
#undef READ_COUNTER
    file->iterations[file->count++] = iteration;
    return true;
}

/* Reads a line with its end, or what the file ends with; empty at the end of the file. The path may
   be that of any file, also of a device that never ends a line. */
static capu_status read_report_line(FILE *stream, struct string_buffer *text)
{
    char chunk[4096];
    capu_status status = CAPU_OK;
    int byte = 0;

    text->length = 0;
    while (status == CAPU_OK && byte != '\n' && byte != EOF) {
        size_t count = 0;

        while (count < sizeof(chunk) && byte != '\n' && (byte = getc_unlocked(stream)) != EOF) {
            chunk[count++] = (char)byte;
        }
        status = text->length + count > JSON_LINES_LINE_MAX
                     ? CAPU_TOO_LARGE
                     : string_buffer_append(text, chunk, count);
    }
    return status;
}

static bool read_lines(struct report_file *file, FILE *stream)
{
    struct string_buffer text = {0};
    long offset = 0;
    bool is_fine = true;

    for (size_t number = 1; is_fine; number++) {
        capu_status status = read_report_line(stream, &text);
        json_t *line;

        if (status != CAPU_OK) {
            say("%s:%zu: the line is %s", file->path, number,
                status == CAPU_TOO_LARGE ? "too long" : "larger than the memory");
            is_fine = false;
        }
        if (!is_fine || text.length == 0) {
            break;
        }
        line = json_loadb(text.data, text.length, 0, NULL);
        if (line == NULL && text.data[text.length - 1] != '\n') {
            say("%s:%zu: the line is cut off and is left out", file->path, number);
        } else if (is_timeline(line)) {
            is_fine = add_timeline(file, line, offset, number);
        } else if (!is_report(line)) {
            say("%s:%zu: not a report as CAPUCHIN_REPORT=FILE writes it", file->path, number);
            is_fine = false;
        } else {
            is_fine = add_iteration(file, line, offset);
        }
        json_decref(line);
        offset += (long)text.length;
    }
    string_buffer_finish(&text);
    return is_fine;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/* Finds the median and the slowest iteration of every kind. */
static bool sum_up_kinds(struct report_file *file)
{
    uint64_t *times = malloc(2 * file->count * sizeof(*times));
    uint64_t *computes = times + file->count;

    if (times == NULL) {
        say("out of memory for the reports of %s", file->path);
        return false;
    }
    for (size_t k = 0; k < file->kind_count; k++) {
        struct report_kind *kind = &file->kinds[k];
        size_t timed = 0;

        for (size_t i = 0; i < file->count; i++) {
            const struct reported *iteration = &file->iterations[i];

            if (iteration->kind != k) {
                continue;
            }
            if (kind->count == 0 || iteration->time_ns > file->iterations[kind->slowest].time_ns) {
                kind->slowest = i;
            }
            times[kind->count++] = iteration->time_ns;
            if (iteration->is_timed) {
                computes[timed++] = iteration->compute_ns;
            }
        }
        qsort(times, kind->count, sizeof(*times), by_value);
        qsort(computes, timed, sizeof(*computes), by_value);
        kind->median_ns = times[kind->count / 2];
        kind->median_compute_ns = timed > 0 ? computes[timed / 2] : 0;
    }
    free(times);
    return true;
}

bool report_file_read(struct report_file *file, const char *path)
{
    FILE *stream = fopen(path, "rb");
    bool is_fine;

    *file = (struct report_file){.path = path};
    if (stream == NULL) {
        say("%s: %s", path, strerror(errno));
        return false;
    }
    is_fine = read_lines(file, stream);
    if (is_fine && ferror(stream) != 0) {
        say("%s: %s", path, strerror(errno));
        is_fine = false;
    } else if (is_fine && file->count == 0) {
        say("%s: contains no iteration: the program must call capu_iteration_begin and "
            "capu_iteration_end",
            path);
        is_fine = false;
    }
    is_fine = is_fine && sum_up_kinds(file);
    fclose(stream);
    if (!is_fine) {
        report_file_finish(file);
    }
    return is_fine;
}

void report_file_finish(struct report_file *file)
{
    for (size_t i = 0; i < file->kind_count; i++) {
        free(file->kinds[i].label);
        free(file->kinds[i].mode);
    }
    free(file->iterations);
    free(file->kinds);
    *file = (struct report_file){0};
}

json_t *report_file_line(const struct report_file *file, const struct reported *iteration)
{
    FILE *stream = fopen(file->path, "rb");
    json_t *line = NULL;

    if (stream != NULL && fseek(stream, iteration->offset, SEEK_SET) == 0) {
        line = json_loadf(stream, JSON_DISABLE_EOF_CHECK, NULL);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    if (line == NULL) {
        say("%s: cannot be read again", file->path);
    }
    return line;
}

bool report_file_view(const struct report_file *file, const struct reported *iteration,
                      struct view *view)
{
    FILE *stream = fopen(file->path, "rb");
    struct error_text error = {""};
    struct string_buffer text = {0};
    capu_status status = CAPU_FILE_FAILED;

    *view = (struct view){0};
    if (stream != NULL && fseek(stream, iteration->timeline_offset, SEEK_SET) == 0) {
        status = read_report_line(stream, &text);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    if (status != CAPU_OK || text.length == 0) {
        string_buffer_finish(&text);
        say("%s: cannot be read again", file->path);
        return false;
    }
    status = view_of_timeline(view, file->path, iteration->timeline_line, text.data, text.length,
                              &error);
    string_buffer_finish(&text);
    if (status != CAPU_OK) {
        say_error(&error);
        return false;
    }
    view->floor_bytes = iteration->floor_bytes;
    return true;
}

static bool export_iteration(const struct report_file *file, const struct reported *iteration,
                             struct timeline_export *export, uint64_t begin_ns)
{
    const struct report_kind *kind = &file->kinds[iteration->kind];
    struct view view;

    if (report_file_has_view(iteration)) {
        if (!report_file_view(file, iteration, &view)) {
            return false;
        }
        timeline_export_view(export, &view, begin_ns);
        view_finish(&view);
    }
    timeline_export_iteration(export, iteration->iteration, kind->label, kind->mode, begin_ns,
                              iteration->time_ns);
    return true;
}

bool report_timeline_add(const struct report_file *file, uint64_t number,
                         struct timeline_export *export, uint64_t *last_ns)
{
    uint64_t begin_ns = 0;
    bool has_view = false;
    bool has_iteration = number == 0;

    for (size_t i = 0; i < file->count; i++) {
        const struct reported *iteration = &file->iterations[i];

        if (number != 0 && iteration->iteration != number) {
            continue;
        }
        if (!export_iteration(file, iteration, export, begin_ns)) {
            return false;
        }
        has_iteration = true;
        if (report_file_has_view(iteration)) {
            has_view = true;
            *last_ns = begin_ns;
        }
        begin_ns += iteration->time_ns;
    }
    if (!has_iteration) {
        say("%s: there is no iteration %" PRIu64, file->path, number);
    } else if (!has_view) {
        say("%s: has no timeline%s: run with CAPUCHIN_TIMELINE=1, and CAPUCHIN_SAMPLE_EVERY=1 for "
            "all iterations",
            file->path, number != 0 ? " of this iteration" : "");
    }
    return has_view;
}

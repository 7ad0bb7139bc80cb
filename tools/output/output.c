/* Messages, exit codes and numbers of the command, and where its results go. */
#include "tools/output/output.h"

#include "base/files.h"
#include "base/printable.h"
#include "policy/format/json_lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than any message: two paths at most, and what is said of them. */
enum { MESSAGE_BYTES = 16384 };

void say(const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fputs("capuchin: ", stderr);
    printable_print(stderr, message);
    fputc('\n', stderr);
}

void say_error(const struct error_text *error)
{
    say("%s", error->text[0] != '\0' ? error->text : "out of memory");
}

void say_unwritten(const char *path)
{
    say("%s: cannot be written: %s", path, strerror(errno));
}

int exit_code_of_plan(capu_status status, const struct error_text *error)
{
    if (status == CAPU_OK) {
        return EXIT_FINE;
    }
    say_error(error);
    return status == CAPU_OVER_BUDGET   ? EXIT_NO_PLAN
           : status == CAPU_UNSUPPORTED ? EXIT_NONE_FOUND
                                        : EXIT_USAGE;
}

const char *human_bytes(uint64_t bytes, char *buffer)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024.0 && unit < sizeof(units) / sizeof(units[0]) - 1) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, 32, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return buffer;
}

const char *human_ns(uint64_t ns, char *buffer)
{
    snprintf(buffer, 32, "%.3f ms", (double)ns / 1e6);
    return buffer;
}

double percent_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

/* Results. */

static bool are_same(const struct output_file *written, const struct output_file *other)
{
    /* A file that is to be read and does not exist is none; the name may even be a machine's. */
    return other->path != NULL && (other->is_written || access(other->path, F_OK) == 0) &&
           files_are_same(written->path, other->path);
}

static bool check_one(const struct output_file *files, size_t count, size_t number)
{
    const struct output_file *file = &files[number];

    for (size_t i = 0; i < count; i++) {
        if (i != number && are_same(file, &files[i])) {
            say("%s %s is the same file as %s %s", file->name, file->path, files[i].name,
                files[i].path);
            return false;
        }
    }
    errno = files_check(file->path);
    if (errno != 0) {
        say_unwritten(file->path);
        return false;
    }
    return true;
}

bool output_check(const struct output_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (files[i].is_written && files[i].path != NULL && !check_one(files, count, i)) {
            return false;
        }
    }
    return true;
}

bool output_write(const char *path, const struct string_buffer *text)
{
    if (path == NULL) {
        (void)fwrite(text->data, 1, text->length, stdout); /* main checks the result at exit */
        return true;
    }
    errno = files_replace(path, text->data, text->length, NULL);
    if (errno != 0) {
        say_unwritten(path);
        return false;
    }
    return true;
}

bool output_json(FILE *file, json_t *object)
{
    /* Whether a line arrives on standard output, main checks at exit. */
    char *line = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));

    json_decref(object);
    if (line == NULL) {
        say("out of memory");
        return false;
    }
    fprintf(file, "%s\n", line);
    free(line);
    return true;
}

bool output_copy(const char *path, const char *from)
{
    struct error_text error = {""};
    struct string_buffer text = {0};
    bool is_fine = json_lines_load(from, &text, &error) == CAPU_OK;

    if (is_fine) {
        is_fine = output_write(path, &text);
    } else {
        say_error(&error);
    }
    string_buffer_finish(&text);
    return is_fine;
}

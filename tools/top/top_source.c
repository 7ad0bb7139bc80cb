/* Reads the sockets of running programs. */
#define _GNU_SOURCE
#include "tools/top/top_source.h"

#include "tools/output/output.h"

#include "base/user_folder.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LINE_VERSION 1
#define LINE_BYTES_MAX ((size_t)1 << 20)
#define ANSWER_MS 1000 /* a program that is stopped does not answer */

/* What must be there, and of which type. */
struct key {
    const char *name;
    json_type type;
};

static const struct key line_keys[] = {{"type", JSON_STRING},    {"version", JSON_INTEGER},
                                       {"pid", JSON_INTEGER},    {"program", JSON_STRING},
                                       {"contexts", JSON_ARRAY}, {NULL, JSON_NULL}};

static const struct key context_keys[] = {{"context", JSON_INTEGER},
                                          {"device", JSON_STRING},
                                          {"mode", JSON_STRING},
                                          {"planner", JSON_STRING},
                                          {"budget_bytes", JSON_INTEGER},
                                          {"d2h_bytes_per_s", JSON_INTEGER},
                                          {"h2d_bytes_per_s", JSON_INTEGER},
                                          {"held_bytes", JSON_INTEGER},
                                          {"live_bytes", JSON_OBJECT},
                                          {"times_ns", JSON_ARRAY},
                                          {"stalls_iteration", JSON_INTEGER},
                                          {"stalls", JSON_ARRAY},
                                          {NULL, JSON_NULL}};

static const struct key report_keys[] = {{"mode", JSON_STRING},
                                         {"label", JSON_STRING},
                                         {"plan_error", JSON_STRING},
                                         {"iteration", JSON_INTEGER},
                                         {"time_ns", JSON_INTEGER},
                                         {"peak_bytes", JSON_INTEGER},
                                         {"live_peak_bytes", JSON_INTEGER},
                                         {"floor_bytes", JSON_INTEGER},
                                         {"host_bytes", JSON_INTEGER},
                                         {"evicted_bytes", JSON_INTEGER},
                                         {"prefetched_bytes", JSON_INTEGER},
                                         {"predicted_ns", JSON_INTEGER},
                                         {"diverged", JSON_INTEGER},
                                         {"plan_stage", JSON_INTEGER},
                                         {NULL, JSON_NULL}};

static const struct key stall_keys[] = {
    {"op", JSON_STRING}, {"replay", JSON_STRING}, {"wait_ns", JSON_INTEGER}, {NULL, JSON_NULL}};

static bool has_keys(const json_t *object, const struct key *keys, const char *what,
                     struct string_buffer *why)
{
    for (const struct key *key = keys; key->name != NULL; key++) {
        const json_t *value = json_object_get(object, key->name);

        if (value == NULL || json_typeof(value) != key->type ||
            (key->type == JSON_INTEGER && json_integer_value(value) < 0)) {
            (void)string_buffer_format(why, "%s lacks a valid \"%s\"", what, key->name);
            return false;
        }
    }
    return true;
}

static bool has_numbers(const json_t *list, const char *what, struct string_buffer *why)
{
    size_t i;
    json_t *value;

    json_array_foreach(list, i, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0) {
            (void)string_buffer_format(why, "\"%s\" has an entry that is not a number", what);
            return false;
        }
    }
    return true;
}

static bool is_context(const json_t *context, struct string_buffer *why)
{
    const json_t *report = json_object_get(context, "report");
    const json_t *stalls = json_object_get(context, "stalls");
    size_t i;
    json_t *stall;

    if (!has_keys(context, context_keys, "a context", why) ||
        !has_numbers(json_object_get(context, "times_ns"), "times_ns", why) ||
        !(json_is_null(report) || has_keys(report, report_keys, "a report", why))) {
        return false;
    }
    json_array_foreach(stalls, i, stall)
    {
        if (!has_keys(stall, stall_keys, "a stall", why)) {
            return false;
        }
    }
    return true;
}

/* `line` is an object of any kind. */
static bool is_line(const json_t *line, struct string_buffer *why)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    json_int_t version = json_integer_value(json_object_get(line, "version"));
    size_t i;
    json_t *context;

    if (type == NULL || strcmp(type, "top") != 0) {
        (void)string_buffer_format(why, "is not from a program that uses capuchin");
        return false;
    }
    if (version != LINE_VERSION) {
        (void)string_buffer_format(
            why, "speaks version %" JSON_INTEGER_FORMAT ", and this command version %d", version,
            LINE_VERSION);
        return false;
    }
    if (!has_keys(line, line_keys, "the line", why)) {
        return false;
    }
    json_array_foreach(json_object_get(line, "contexts"), i, context)
    {
        if (!is_context(context, why)) {
            return false;
        }
    }
    return true;
}

json_t *top_line_read(const char *text, size_t length, struct string_buffer *why)
{
    json_t *line;

    if (length == 0 || text[length - 1] != '\n') {
        (void)string_buffer_format(why, length == 0 ? "says nothing" : "stops within its line");
        return NULL;
    }
    line = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(line)) {
        (void)string_buffer_format(why, "says what is not a line of JSON");
        json_decref(line);
        return NULL;
    }
    if (!is_line(line, why)) {
        json_decref(line);
        return NULL;
    }
    return line;
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* All that a socket says until it is closed; false: it does not say so in time, or too much. */
static bool read_all(int client, struct string_buffer *text, struct string_buffer *why)
{
    uint64_t end_ms = now_ms() + ANSWER_MS;
    char bytes[4096];

    for (;;) {
        struct pollfd polled = {.fd = client, .events = POLLIN};
        uint64_t at_ms = now_ms();
        ssize_t got;

        if (at_ms >= end_ms || poll(&polled, 1, (int)(end_ms - at_ms)) == 0) {
            (void)string_buffer_format(why, "does not answer");
            return false;
        }
        got = recv(client, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got == 0) {
            return true;
        }
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            (void)string_buffer_format(why, "cannot be read: %s", strerror(errno));
            return false;
        }
        if (got > 0 && (text->length + (size_t)got > LINE_BYTES_MAX ||
                        string_buffer_append(text, bytes, (size_t)got) != CAPU_OK)) {
            (void)string_buffer_format(why, "says more than %zu bytes", LINE_BYTES_MAX);
            return false;
        }
    }
}

static bool has_ended(long process)
{
    return process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* The process that listens; another user's, or none that is known: 0. */
static long listener_of(int client)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid()
               ? (long)peer.pid
               : 0;
}

/* Asks one socket. NULL: `why` says why not; *is_stale: its program has ended. */
static json_t *ask_program(const char *path, long process, bool *is_stale,
                           struct string_buffer *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct string_buffer text = {0};
    json_t *line = NULL;
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    long listener;

    if (client < 0) {
        (void)string_buffer_format(why, "cannot be asked: %s", strerror(errno));
        return NULL;
    }
    (void)strcpy(address.sun_path, path); /* the caller has checked that it fits */
    if (connect(client, (struct sockaddr *)&address, sizeof(address)) != 0) {
        /* Refused: no process has it open. A program that is about to listen is alive. */
        *is_stale = errno == ECONNREFUSED && has_ended(process);
        (void)string_buffer_format(why, "cannot be reached: %s", strerror(errno));
        goto close_client;
    }
    listener = listener_of(client);
    if (listener == 0) {
        (void)string_buffer_format(why, "belongs to another user");
    } else if (!read_all(client, &text, why)) {
        /* A child of the program may have inherited the socket, which it does not serve. */
        *is_stale = has_ended(listener);
    } else {
        line = top_line_read(text.data != NULL ? text.data : "", text.length, why);
    }
    if (line != NULL && json_integer_value(json_object_get(line, "pid")) != process) {
        (void)string_buffer_format(why, "answers for another process");
        json_decref(line);
        line = NULL;
    }
    string_buffer_finish(&text);
close_client:
    close(client);
    return line;
}

/* The process that a name says, or 0 if it is not the name of a socket. */
static long process_of(const char *name)
{
    char *end;
    long process;

    if (name[0] < '1' || name[0] > '9') {
        return 0;
    }
    errno = 0;
    process = strtol(name, &end, 10);
    return errno == 0 && strcmp(end, ".sock") == 0 ? process : 0;
}

static bool add_socket(struct top_snapshot *snapshot, const char *folder, const char *name,
                       long process)
{
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    struct string_buffer why = {0};
    struct stat stat;
    json_t *line = NULL;
    bool is_stale = false;
    bool is_fine = true;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path) ||
        lstat(path, &stat) != 0) {
        return true; /* it has gone since the folder was read */
    }
    if (!S_ISSOCK(stat.st_mode)) {
        (void)string_buffer_format(&why, "is not a socket");
    } else {
        line = ask_program(path, process, &is_stale, &why);
    }
    if (line != NULL) {
        is_fine = json_array_append_new(snapshot->programs, line) == 0;
    } else if (is_stale) {
        snapshot->removed += unlink(path) == 0;
    } else {
        is_fine = string_buffer_format(&snapshot->rejected, "%s %s\n", path,
                                       why.data != NULL ? why.data : "") == CAPU_OK;
    }
    string_buffer_finish(&why);
    return is_fine;
}

static int by_process(const struct dirent **left, const struct dirent **right)
{
    long a = process_of((*left)->d_name);
    long b = process_of((*right)->d_name);

    return a < b ? -1 : a > b;
}

static int is_socket_name(const struct dirent *entry)
{
    return process_of(entry->d_name) != 0;
}

static bool add_folder(struct top_snapshot *snapshot, const char *folder)
{
    struct dirent **entries;
    int problem = user_folder_check(folder);
    int count;
    bool is_fine = true;

    if (problem == ENOENT) {
        return true;
    }
    if (problem != 0) {
        return string_buffer_format(&snapshot->rejected, "%s is not safe: %s\n", folder,
                                    strerror(problem)) == CAPU_OK;
    }
    count = scandir(folder, &entries, is_socket_name, by_process);
    if (count < 0) {
        say("%s: cannot be read: %s", folder, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;

        is_fine = is_fine && add_socket(snapshot, folder, name, process_of(name));
        free(entries[i]);
    }
    free(entries);
    return is_fine;
}

bool top_snapshot_take(const char *folder, struct top_snapshot *snapshot)
{
    bool is_fine;

    *snapshot = (struct top_snapshot){.programs = json_array()};
    is_fine = snapshot->programs != NULL;
    if (is_fine && folder != NULL) {
        is_fine = add_folder(snapshot, folder);
    }
    for (size_t i = 0; folder == NULL && i < USER_FOLDER_COUNT && is_fine; i++) {
        char path[USER_FOLDER_BYTES];

        if (user_folder_path(i, path) == 0) {
            is_fine = add_folder(snapshot, path);
        }
    }
    if (!is_fine) {
        say("the programs cannot be listed");
        top_snapshot_finish(snapshot);
    }
    return is_fine;
}

void top_snapshot_finish(struct top_snapshot *snapshot)
{
    json_decref(snapshot->programs);
    string_buffer_finish(&snapshot->rejected);
    *snapshot = (struct top_snapshot){0};
}

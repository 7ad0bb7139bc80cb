/*
 * Live counters, see live.h: the samples, then the line of JSON that they become, then the server.
 *
 * Plain poll() on a socket, not libuv: that aborts the process where there is no descriptor or
 * thread left, and its handler for fork can abort a child that never calls the library. One client
 * after the other is answered, each for at most ANSWER_MS, so that one that does not read delays
 * others and nothing else.
 *
 * The server has two locks, in this order: `changing` is held while the first context starts the
 * thread and the last one waits for its end; `lock` guards the list, which the thread reads.
 */
#define _GNU_SOURCE
#include "runtime/record/live.h"

#include "base/thread.h"
#include "base/user_folder.h"
#include "runtime/record/report_json.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Of the line of JSON, see docs/top.md. */
#define LIVE_VERSION 1

#define IS_NEW 4u /* in `newest`, besides an index */

enum { ANSWER_MS = 1000, RETRY_MS = 1000, BACKLOG = 8 };

struct live *live_create(const struct live_subject *subject)
{
    struct live *live = calloc(1, sizeof(*live));

    if (live != NULL) {
        live->subject = *subject;
        live->filled = 0;
        live->read = 1;
        atomic_init(&live->newest, 2);
    }
    return live;
}

void live_destroy(struct live *live)
{
    free(live);
}

void live_publish(struct live *live)
{
    live->samples[live->filled] = live->own;
    live->filled =
        atomic_exchange_explicit(&live->newest, live->filled | IS_NEW, memory_order_acq_rel) &
        ~IS_NEW;
}

const struct live_sample *live_newest(struct live *live)
{
    if ((atomic_load_explicit(&live->newest, memory_order_relaxed) & IS_NEW) != 0) {
        live->read =
            atomic_exchange_explicit(&live->newest, live->read, memory_order_acq_rel) & ~IS_NEW;
    }
    return &live->samples[live->read];
}

void live_copy_text(char *to, size_t bytes, const char *from)
{
    size_t length = from != NULL ? strlen(from) : 0;

    if (length >= bytes) {
        length = bytes - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    if (length > 0) {
        memcpy(to, from, length);
    }
    to[length] = '\0';
}

/* Puts a stall in its place among the longest. */
static void note_stall(struct live_sample *own, const capu_stall *stall)
{
    size_t at = own->stall_count;

    while (at > 0 && own->stalls[at - 1].wait_ns < stall->wait_ns) {
        at--;
    }
    if (at == LIVE_STALLS) {
        return;
    }
    own->stall_count += own->stall_count < LIVE_STALLS;
    memmove(&own->stalls[at + 1], &own->stalls[at],
            (own->stall_count - at - 1) * sizeof(own->stalls[0]));
    own->stalls[at] = (struct live_stall){.access = stall->access, .wait_ns = stall->wait_ns};
    live_copy_text(own->stalls[at].op, LIVE_NAME_BYTES, stall->op);
    live_copy_text(own->stalls[at].replay, LIVE_NAME_BYTES, stall->replay);
}

void live_note_report(struct live *live, const struct report *report)
{
    struct live_sample *own = &live->own;

    own->report = *report;
    own->report.label = NULL;
    own->report.floor_op = NULL;
    own->report.plan_error = NULL;
    own->report.evictions = NULL;
    own->report.eviction_count = 0;
    own->report.stalls = NULL;
    own->report.stall_count = 0;
    live_copy_text(own->label, sizeof(own->label), report->label);
    live_copy_text(own->floor_op, sizeof(own->floor_op), report->floor_op);
    live_copy_text(own->plan_error, sizeof(own->plan_error), report->plan_error);
    if (own->time_count == LIVE_TIMES) {
        memmove(&own->times_ns[0], &own->times_ns[1], (LIVE_TIMES - 1) * sizeof(own->times_ns[0]));
        own->time_count--;
    }
    own->times_ns[own->time_count++] = report->time_ns;
    if (report->stall_count > 0) {
        own->stalls_iteration = report->iteration;
        own->stall_count = 0;
        for (size_t i = 0; i < report->stall_count; i++) {
            note_stall(own, &report->stalls[i]);
        }
    }
}

static json_t *number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* A list or an object that lacks something, because there was no memory, is none. */
static json_t *checked(json_t *value, bool failed)
{
    if (failed) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static json_t *kinds_json(const struct live_sample *sample)
{
    static const char *const names[LIVE_KINDS] = {
        "unknown", "parameter", "optimizer", "gradient", "activation", "workspace", "input"};
    json_t *kinds = json_object();
    bool failed = false;

    for (size_t i = 0; i < LIVE_KINDS; i++) {
        failed |= json_object_set_new(kinds, names[i], number(sample->kind_bytes[i])) != 0;
    }
    return checked(kinds, failed);
}

static json_t *times_json(const struct live_sample *sample)
{
    json_t *times = json_array();
    bool failed = false;

    for (size_t i = 0; i < sample->time_count; i++) {
        failed |= json_array_append_new(times, number(sample->times_ns[i])) != 0;
    }
    return checked(times, failed);
}

static json_t *stalls_json(const struct live_sample *sample)
{
    json_t *stalls = json_array();
    bool failed = false;

    for (size_t i = 0; i < sample->stall_count; i++) {
        const struct live_stall *stall = &sample->stalls[i];
        json_t *access = stall->access == UINT64_MAX ? json_null() : number(stall->access);

        failed |= json_array_append_new(stalls, json_pack("{s:o,s:s,s:s,s:o}", "access", access,
                                                          "op", stall->op, "replay", stall->replay,
                                                          "wait_ns", number(stall->wait_ns))) != 0;
    }
    return checked(stalls, failed);
}

/* The newest report as in a report file, without its lists. */
static json_t *report_of(const struct live_sample *sample)
{
    struct report report = sample->report;

    if (sample->published_ns == 0) {
        return json_null();
    }
    report.label = sample->label;
    report.floor_op = sample->floor_op;
    report.plan_error = sample->plan_error;
    return report_json_counters(&report);
}

static json_t *context_json(struct live *live, uint64_t now_ns)
{
    const struct live_subject *subject = &live->subject;
    const struct live_sample *sample = live_newest(live);
    uint64_t since = sample->published_ns != 0 ? sample->published_ns : now_ns;
    uint64_t budget_bytes =
        sample->published_ns != 0 ? sample->report.budget_bytes : subject->budget_bytes;

    return json_pack(
        "{s:o,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "context",
        number(live->number), "device", subject->device, "mode", report_mode_name(subject->mode),
        "planner", subject->planner, "budget_bytes", number(budget_bytes), "d2h_bytes_per_s",
        number(subject->d2h_bytes_per_s), "h2d_bytes_per_s", number(subject->h2d_bytes_per_s),
        "held_bytes", number(sample->held_bytes), "age_ns",
        sample->published_ns != 0 ? number(now_ns > since ? now_ns - since : 0) : json_null(),
        "live_bytes", kinds_json(sample), "times_ns", times_json(sample), "stalls_iteration",
        number(sample->stalls_iteration), "stalls", stalls_json(sample), "report",
        report_of(sample));
}

/* The name of a program is any bytes; what is not plain ASCII becomes a question mark. */
static void program_name(char name[LIVE_NAME_BYTES])
{
    size_t length = 0;

    for (const char *from = program_invocation_short_name;
         *from != '\0' && length < LIVE_NAME_BYTES - 1; from++) {
        name[length++] = *from >= ' ' && *from <= '~' ? *from : '?';
    }
    name[length] = '\0';
}

char *live_json(struct live *first, uint64_t now_ns)
{
    char name[LIVE_NAME_BYTES];
    json_t *contexts = json_array();
    json_t *line;
    bool failed = contexts == NULL;
    char *text = NULL;

    for (struct live *live = first; live != NULL && !failed; live = live->next) {
        failed = json_array_append_new(contexts, context_json(live, now_ns)) != 0;
    }
    program_name(name);
    line = json_pack("{s:s,s:i,s:I,s:s,s:o}", "type", "top", "version", LIVE_VERSION, "pid",
                     (json_int_t)getpid(), "program", name, "contexts", checked(contexts, failed));
    if (line != NULL) {
        text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    }
    json_decref(line);
    return text;
}

static struct {
    pthread_mutex_t changing; /* guards what follows, up to `lock` */
    struct sockaddr_un address;
    int listener;
    int wake; /* readable once the thread is to end */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    struct live *first;   /* in order of creation */
    uint64_t count;       /* contexts so far */
} server;

/* The process that the struct above belongs to; -1: it is being set up. */
static _Atomic pid_t owner;

/* In a child of fork, the copies of the parent's locks and list are worthless. */
static void own_server(void)
{
    pid_t self = getpid();
    pid_t before = atomic_load(&owner);

    while (before != self) {
        if (before == -1) {
            sched_yield();
            before = atomic_load(&owner);
        } else if (atomic_compare_exchange_weak(&owner, &before, -1)) {
            if (server.first != NULL) {
                close(server.listener);
                close(server.wake);
            }
            memset(&server, 0, sizeof(server));
            pthread_mutex_init(&server.changing, NULL);
            pthread_mutex_init(&server.lock, NULL);
            atomic_store(&owner, self);
            return;
        }
    }
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_same_user(int client)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

/* Sends a text, unless the client does not read it in time or the thread is to end. */
static void send_text(int client, const char *text, size_t left)
{
    struct pollfd polled[2] = {{.fd = client, .events = POLLOUT},
                               {.fd = server.wake, .events = POLLIN}};
    uint64_t end_ns = now_ns() + (uint64_t)ANSWER_MS * 1000000;

    while (left > 0) {
        uint64_t at_ns = now_ns();
        ssize_t sent;

        if (at_ns >= end_ns || poll(polled, 2, (int)((end_ns - at_ns) / 1000000) + 1) <= 0 ||
            polled[1].revents != 0) {
            return;
        }
        sent = send(client, text, left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return;
        }
        if (sent > 0) {
            text += sent;
            left -= (size_t)sent;
        }
    }
}

static void answer(int client)
{
    char *text;

    pthread_mutex_lock(&server.lock);
    text = live_json(server.first, now_ns());
    pthread_mutex_unlock(&server.lock);
    if (text != NULL) {
        size_t length = strlen(text);

        text[length] = '\n'; /* instead of the terminating zero */
        send_text(client, text, length + 1);
    }
    free(text);
}

static void *serve(void *unused)
{
    struct pollfd polled[2] = {{.fd = server.wake, .events = POLLIN},
                               {.fd = server.listener, .events = POLLIN}};

    (void)unused;
    for (;;) {
        int client;

        (void)poll(polled, 2, -1);
        if (polled[0].revents != 0) {
            return NULL;
        }
        client = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client < 0) {
            /* Without a descriptor the client stays in the queue, and poll would return at once. */
            (void)poll(polled, 1, errno == EAGAIN ? 0 : RETRY_MS);
            continue;
        }
        if (is_same_user(client)) {
            answer(client);
        }
        close(client);
    }
}

/* The folder for the socket. The second one is used where there is no runtime directory; one that
   is there but is not safe is an error. */
static int make_folder(char path[USER_FOLDER_BYTES])
{
    int error = ENOENT;

    for (size_t i = 0; i < USER_FOLDER_COUNT && error == ENOENT; i++) {
        int problem = user_folder_path(i, path);

        error = problem != 0 ? problem : user_folder_make(path);
    }
    return error;
}

/* Opens the socket. Its mode is set before it has a name, so that it is never more permissive. A
   socket of that name is of a process that has ended and had the same number. */
static int open_socket(void)
{
    if (fchmod(server.listener, 0600) != 0) {
        return errno;
    }
    (void)unlink(server.address.sun_path);
    if (bind(server.listener, (struct sockaddr *)&server.address, sizeof(server.address)) != 0 ||
        listen(server.listener, BACKLOG) != 0) {
        return errno;
    }
    return 0;
}

/* Pre: `changing` is held, and there is no context. */
static capu_status start(char *text, size_t text_bytes)
{
    char folder[USER_FOLDER_BYTES];
    capu_status status = CAPU_FILE_FAILED;
    int error = make_folder(folder);

    if (error != 0) {
        snprintf(text, text_bytes, "top: the folder for sockets, '%s': %s", folder,
                 strerror(error));
        return CAPU_FILE_FAILED;
    }
    server.address.sun_family = AF_UNIX;
    snprintf(server.address.sun_path, sizeof(server.address.sun_path), "%s/%ld.sock", folder,
             (long)getpid());
    server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    server.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server.listener < 0 || server.wake < 0) {
        snprintf(text, text_bytes, "top: no descriptor for a socket: %s", strerror(errno));
        status = CAPU_SYSTEM_LIMIT;
        goto close_both;
    }
    error = open_socket();
    if (error != 0) {
        snprintf(text, text_bytes, "top: the socket '%s': %s", server.address.sun_path,
                 strerror(error));
        goto close_both;
    }
    if (!thread_start(&server.thread, serve, NULL)) {
        snprintf(text, text_bytes, "top: the system starts no more threads");
        status = CAPU_SYSTEM_LIMIT;
        goto remove_socket;
    }
    return CAPU_OK;

remove_socket:
    (void)unlink(server.address.sun_path);
close_both:
    if (server.listener >= 0) {
        close(server.listener);
    }
    if (server.wake >= 0) {
        close(server.wake);
    }
    return status;
}

capu_status live_server_add(struct live *live, char *text, size_t text_bytes)
{
    capu_status status = CAPU_OK;
    struct live **end = &server.first;

    own_server();
    pthread_mutex_lock(&server.changing);
    if (server.first == NULL) {
        status = start(text, text_bytes);
    }
    if (status == CAPU_OK) {
        pthread_mutex_lock(&server.lock);
        while (*end != NULL) {
            end = &(*end)->next;
        }
        live->next = NULL;
        live->number = ++server.count;
        *end = live;
        pthread_mutex_unlock(&server.lock);
    }
    pthread_mutex_unlock(&server.changing);
    return status;
}

void live_server_remove(struct live *live)
{
    struct live **at = &server.first;

    pthread_mutex_lock(&server.changing);
    pthread_mutex_lock(&server.lock);
    while (*at != live) {
        at = &(*at)->next;
    }
    *at = live->next;
    pthread_mutex_unlock(&server.lock);
    if (server.first == NULL) {
        (void)eventfd_write(server.wake, 1);
        pthread_join(server.thread, NULL);
        (void)unlink(server.address.sun_path);
        close(server.listener);
        close(server.wake);
    }
    pthread_mutex_unlock(&server.changing);
}

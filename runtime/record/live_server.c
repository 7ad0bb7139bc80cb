/*
 * The server of live counters, see live_server.h.
 *
 * Plain poll() on a socket, not libuv: that aborts the process where there is no descriptor or
 * thread left, and its handler for fork can abort a child that never calls the library. One client
 * after the other is answered, each for at most ANSWER_MS, so that one that does not read delays
 * others and nothing else.
 *
 * Two locks, in this order: `changing` is held while the first context starts the thread and the
 * last one waits for its end; `lock` guards the list, which the thread reads.
 */
#define _GNU_SOURCE
#include "runtime/record/live_server.h"

#include "base/thread.h"
#include "base/user_folder.h"

#include <errno.h>
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

enum { ANSWER_MS = 1000, RETRY_MS = 1000, BACKLOG = 8 };

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

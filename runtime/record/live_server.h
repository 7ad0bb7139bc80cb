/*
 * Serves the live counters of all contexts of the process on one local socket, for `capuchin top`.
 *
 * The socket is PID.sock in the user's folder for sockets (base/user_folder.h), with mode 0600. Who
 * connects gets one line of JSON (runtime/record/live.h) if it is the same user, and is
 * disconnected; what it sends is never read. There is one thread while there is a context to serve.
 *
 * A child of fork does not serve: it has no such thread. If it creates a context of its own, it
 * gets a socket of its own.
 *
 * Shared by all contexts of the process, and the only such state: one process is one program to who
 * watches it. Thread: any.
 */
#ifndef CAPU_RUNTIME_LIVE_SERVER_H
#define CAPU_RUNTIME_LIVE_SERVER_H

#include "runtime/record/live.h"

/* Serves these counters, too; the first ones open the socket and start the thread. FILE_FAILED (the
   socket cannot be created) and SYSTEM_LIMIT (there is no more descriptor or thread), both with a
   text. `live` is borrowed until live_server_remove. */
capu_status live_server_add(struct live *live, char *text, size_t text_bytes);

/* The last ones end the thread and remove the socket. Not in a child. */
void live_server_remove(struct live *live);

#endif

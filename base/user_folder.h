/*
 * The folders for the sockets of a user's programs, which no other user can enter: "capuchin" in
 * the user's runtime directory ($XDG_RUNTIME_DIR), or /tmp/capuchin-UID where there is none. A
 * program and a command that looks for it may have different environments, so the command looks in
 * both.
 *
 * Functions return 0 or a value of errno. Thread: any; they read the environment.
 */
#ifndef CAPU_BASE_USER_FOLDER_H
#define CAPU_BASE_USER_FOLDER_H

#include <stddef.h>

enum { USER_FOLDER_COUNT = 2, USER_FOLDER_BYTES = 90 };

/* The path of folder 0 or 1, the preferred one first. ENOENT: the environment names no runtime
   directory. ENAMETOOLONG: the name of a socket in it would be too long. */
int user_folder_path(size_t index, char path[USER_FOLDER_BYTES]);

/* Checks that a folder is the user's own, and that no other user can enter it. ENOENT: there is
   none; ENOTDIR, EPERM (another user's), EACCES (other users can enter). */
int user_folder_check(const char *path);

/* The same, and creates it first if there is none. */
int user_folder_make(const char *path);

#endif

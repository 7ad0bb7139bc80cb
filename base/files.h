/*
 * Files that a program writes as a whole.
 *
 * A regular file is never written in place: the new contents go into a new file next to it, which
 * takes its name once it is complete. Whatever goes wrong before that, the old file is as it was
 * and the new one is gone. Symbolic links are followed, and stay. The new file has the permission
 * bits of the old one and, where the system allows it, its owner and group; without an old one, the
 * umask decides. The folder must be writable, and other hard links keep the old contents. In a
 * sticky folder that everyone may write to, such as /tmp, a link, file or FIFO of another user is
 * EACCES, unless it is the folder's owner's.
 *
 * Everything else is written directly: devices, pipes, and what names an open descriptor, such as
 * /dev/stdout, because its reader would not look at a new file. Writing to a FIFO waits for its
 * reader; the check waits for nothing.
 *
 * Functions return 0 or a value of errno. Thread: any.
 */
#ifndef CAPU_BASE_FILES_H
#define CAPU_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Checks whether files_replace can begin. Leaves the file as it is, and none behind. */
int files_check(const char *path);

/* Replaces the contents of a file, or creates it. If `kept` is not NULL, the file stays open for
   files_append, and the caller closes *kept; it is unchanged after an error. */
int files_replace(const char *path, const void *data, size_t bytes, int *kept);

/* Appends to a file that files_replace left open. After an error a regular file is as before. */
int files_append(int file, const void *data, size_t bytes);

/* Whether two paths lead to the same file, through links or not, also if it does not exist yet.
   Character devices, such as /dev/null or a terminal, never count: they take any number. */
bool files_are_same(const char *first, const char *second);

#endif

/*
 * Writes files as a whole, see files.h.
 *
 * The new file is created in the folder in which the path ends after all links, since rename(2)
 * works only within a file system and would replace a link instead of what it points to. Its name
 * does not contain the old one, which may be as long as names can be.
 *
 * Another user may change what a name leads to at any time. So what is looked at is held open while
 * it is judged, and what is opened is compared with it.
 */
#define _GNU_SOURCE /* O_PATH */
#include "base/files.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS_MAX = 40, /* as in the kernel */
    FINDS_MAX = 4,
    ATTEMPTS_MAX = 1000 /* names that other threads, or programs that were killed, may hold */
};

/* Where a path leads. */
struct target {
    char path[PATH_MAX]; /* with the last component's links followed */
    struct stat found;   /* if it exists */
    bool exists;
    bool is_direct; /* written directly: not a regular file, or named by an open descriptor */
};

/* A file that is being written. */
struct replacement {
    struct target target;
    char path[PATH_MAX]; /* of the new file; "" if the target is written directly */
    int file;
};

/* Whether a link is one of those in /proc/PID/fd, which name what is open, not where it lies. */
static bool is_descriptor(const struct stat *link)
{
    struct stat proc;

    return stat("/proc/self/fd", &proc) == 0 && link->st_dev == proc.st_dev;
}

/* The length of the path up to the last component: "" or "folder/". */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static int follow_link(struct target *target, const char *link)
{
    size_t begin = link[0] == '/' ? 0 : folder_length(target->path);

    if (begin + strlen(link) >= sizeof(target->path)) {
        return ENAMETOOLONG;
    }
    memcpy(target->path + begin, link, strlen(link) + 1);
    return 0;
}

/*
 * In a folder where everyone may create files, such as /tmp, another user may have put something
 * under the name: a link, to have a file replaced that this user cannot write, or a file or FIFO,
 * to read what is written. What is neither this user's nor that of the folder's owner is not used.
 * The kernel has the same rule for open(2) (protected_symlinks and others in proc(5)), but we
 * follow links ourselves.
 */
static int check_owner(const char *path, const struct stat *found)
{
    char folder[PATH_MAX] = ".";
    size_t length = folder_length(path);
    struct stat parent;

    if (length > 0) {
        memcpy(folder, path, length);
        folder[length] = '\0';
    }
    if (stat(folder, &parent) != 0) {
        return errno;
    }
    return (parent.st_mode & S_ISVTX) != 0 && (parent.st_mode & S_IWOTH) != 0 &&
                   found->st_uid != geteuid() && found->st_uid != parent.st_uid
               ? EACCES
               : 0;
}

/* One step of find_target: looks at what has the name, and if it is a link, follows it. `file` is
   opened with O_PATH, so that what is looked at is what is followed. */
static int look_at(struct target *target, int file, bool *is_link)
{
    char link[PATH_MAX];
    ssize_t length;
    int error;

    if (fstat(file, &target->found) != 0) {
        return errno;
    }
    target->exists = true;
    *is_link = S_ISLNK(target->found.st_mode);
    if (*is_link && is_descriptor(&target->found)) {
        *is_link = false;
        target->is_direct = true;
        return stat(target->path, &target->found) == 0 ? 0 : errno;
    }
    target->is_direct = !S_ISREG(target->found.st_mode);
    error = check_owner(target->path, &target->found);
    if (error != 0 || !*is_link) {
        return error;
    }
    length = readlinkat(file, "", link, sizeof(link) - 1);
    if (length < 0) {
        return errno;
    }
    link[length] = '\0';
    return follow_link(target, link);
}

static int find_target(const char *path, struct target *target)
{
    bool is_link = true;
    int error = 0;

    if (path[0] == '\0' || strlen(path) >= sizeof(target->path)) {
        return path[0] == '\0' ? ENOENT : ENAMETOOLONG;
    }
    memcpy(target->path, path, strlen(path) + 1);
    for (int i = 0; error == 0 && is_link && i < LINKS_MAX; i++) {
        int file = open(target->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (file < 0) {
            target->exists = false;
            target->is_direct = false;
            return errno == ENOENT ? 0 : errno;
        }
        error = look_at(target, file, &is_link);
        close(file);
    }
    return error != 0 || !is_link ? error : ELOOP;
}

/* Gives the new file what the old one has, as far as the system allows. */
static int keep_permissions(int file, const struct stat *old)
{
    const mode_t bits = S_IRWXU | S_IRWXG | S_IRWXO;
    struct stat now;

    if (fstat(file, &now) != 0) {
        return errno;
    }
    if ((now.st_uid != old->st_uid || now.st_gid != old->st_gid) &&
        fchown(file, old->st_uid, old->st_gid) != 0) {
        errno = 0; /* only root may give files away: the new one stays the writer's */
    }
    return (now.st_mode & bits) == (old->st_mode & bits) || fchmod(file, old->st_mode & bits) == 0
               ? 0
               : errno;
}

/* Creates the new file. mkostemp(3) would ignore the umask. */
static int create_next_to(struct replacement *new)
{
    int folder = (int)folder_length(new->target.path);

    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        int length = snprintf(new->path, sizeof(new->path), "%.*s.capuchin-%ld-%d", folder,
                              new->target.path, (long)getpid(), i);

        if (length < 0 || (size_t)length >= sizeof(new->path)) {
            return ENAMETOOLONG;
        }
        new->file = open(new->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (new->file >= 0 || errno != EEXIST) {
            return new->file >= 0 ? 0 : errno;
        }
    }
    return EEXIST;
}

static void discard(struct replacement *new)
{
    close(new->file);
    if (new->path[0] != '\0') {
        unlink(new->path);
    }
}

static bool is_found(int file, const struct target *target)
{
    struct stat now;

    return fstat(file, &now) == 0 && now.st_dev == target->found.st_dev &&
           now.st_ino == target->found.st_ino;
}

/* Opens the old file without changing it: one that may not be written may not be replaced. Neither
   a link nor a FIFO can have taken its place. */
static int check_writable(const struct target *target)
{
    int file = open(target->path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is_same;

    if (file < 0) {
        return errno;
    }
    is_same = is_found(file, target);
    close(file);
    return is_same ? 0 : EAGAIN;
}

static int open_directly(struct replacement *new)
{
    new->file = open(new->target.path, O_WRONLY | O_CLOEXEC);
    if (new->file < 0) {
        return errno;
    }
    if (!is_found(new->file, &new->target)) {
        close(new->file);
        return EAGAIN;
    }
    if (S_ISREG(new->target.found.st_mode) && ftruncate(new->file, 0) != 0) {
        close(new->file);
        return errno;
    }
    return 0;
}

static int begin_replacement(struct replacement *new)
{
    int error = 0;

    new->path[0] = '\0';
    if (new->target.is_direct) {
        return open_directly(new);
    }
    if (new->target.exists) {
        error = check_writable(&new->target);
    }
    if (error == 0) {
        error = create_next_to(new);
    }
    if (error != 0 || !new->target.exists) {
        return error;
    }
    error = keep_permissions(new->file, &new->target.found);
    if (error != 0) {
        discard(new);
    }
    return error;
}

static int write_all(int file, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        ssize_t written = write(file, at, bytes);

        if (written > 0) {
            at += written;
            bytes -= (size_t)written;
        } else if (written == 0 || errno != EINTR) {
            return written == 0 ? EIO : errno;
        }
    }
    return 0;
}

/* Waits until the contents are on the disk: some file systems report only then that it is full, and
   after a crash the name must not lead to an empty file. Then the new file takes the name. */
static int commit_replacement(struct replacement *new)
{
    if (new->path[0] == '\0') {
        return 0;
    }
    if (fsync(new->file) != 0 && errno != EINVAL) {
        return errno;
    }
    return rename(new->path, new->target.path) == 0 ? 0 : errno;
}

/* Finds where a path leads, and begins. Some overlay file systems give a file another number once
   it is opened for writing; then, and if another user was faster, what is found has changed. */
static int find_and_begin(const char *path, bool is_check, struct replacement *new)
{
    int error = EAGAIN;

    for (int i = 0; error == EAGAIN && i < FINDS_MAX; i++) {
        error = find_target(path, &new->target);
        if (error == 0 && !(is_check && new->target.is_direct)) {
            error = begin_replacement(new);
        }
    }
    return error;
}

int files_check(const char *path)
{
    struct replacement new;
    int error = find_and_begin(path, true, &new);

    /* Opening a device or a pipe could have an effect. */
    if (error == 0 && new.target.is_direct) {
        return S_ISDIR(new.target.found.st_mode)                             ? EISDIR
               : faccessat(AT_FDCWD, new.target.path, W_OK, AT_EACCESS) == 0 ? 0
                                                                             : errno;
    }
    if (error == 0) {
        discard(&new);
    }
    return error;
}

int files_replace(const char *path, const void *data, size_t bytes, int *kept)
{
    struct replacement new;
    int error = find_and_begin(path, false, &new);

    if (error != 0) {
        return error;
    }
    error = write_all(new.file, data, bytes);
    if (error == 0) {
        error = commit_replacement(&new);
    }
    if (error != 0) {
        discard(&new);
        return error;
    }
    if (kept != NULL) {
        *kept = new.file;
        return 0;
    }
    return close(new.file) == 0 ? 0 : errno;
}

int files_append(int file, const void *data, size_t bytes)
{
    off_t before = lseek(file, 0, SEEK_END); /* fails if the file is a pipe */
    int error;

    ASSERT(file >= 0);
    error = write_all(file, data, bytes);
    if (error != 0 && before >= 0 && ftruncate(file, before) != 0) {
        return error; /* a device; nothing can be taken back */
    }
    return error;
}

bool files_are_same(const char *first, const char *second)
{
    struct target a;
    struct target b;
    struct stat folder_a;
    struct stat folder_b;
    size_t end_a;
    size_t end_b;

    if (find_target(first, &a) != 0 || find_target(second, &b) != 0 || a.exists != b.exists) {
        return false;
    }
    if (a.exists) {
        return !S_ISCHR(a.found.st_mode) && a.found.st_dev == b.found.st_dev &&
               a.found.st_ino == b.found.st_ino;
    }
    end_a = folder_length(a.path);
    end_b = folder_length(b.path);
    if (strcmp(a.path + end_a, b.path + end_b) != 0) {
        return false;
    }
    a.path[end_a] = '\0';
    b.path[end_b] = '\0';
    return stat(end_a > 0 ? a.path : ".", &folder_a) == 0 &&
           stat(end_b > 0 ? b.path : ".", &folder_b) == 0 && folder_a.st_dev == folder_b.st_dev &&
           folder_a.st_ino == folder_b.st_ino;
}

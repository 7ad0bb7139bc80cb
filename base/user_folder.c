/* The folders for sockets, see user_folder.h. */
#include "base/user_folder.h"

#include "base/environment.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int user_folder_path(size_t index, char path[USER_FOLDER_BYTES])
{
    const char *runtime = environment_path("XDG_RUNTIME_DIR");
    int length;

    if (index > 0) {
        length = snprintf(path, USER_FOLDER_BYTES, "/tmp/capuchin-%u", (unsigned)geteuid());
    } else if (runtime == NULL || runtime[0] != '/') {
        return ENOENT;
    } else {
        length = snprintf(path, USER_FOLDER_BYTES, "%s/capuchin", runtime);
    }
    return length < USER_FOLDER_BYTES ? 0 : ENAMETOOLONG;
}

int user_folder_check(const char *path)
{
    struct stat stat;

    /* A link could lead to another user's folder, which may change afterwards. */
    if (lstat(path, &stat) != 0) {
        return errno;
    }
    return !S_ISDIR(stat.st_mode)       ? ENOTDIR
           : stat.st_uid != geteuid()   ? EPERM
           : (stat.st_mode & 0077) != 0 ? EACCES
                                        : 0;
}

int user_folder_make(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return errno;
    }
    return user_folder_check(path);
}

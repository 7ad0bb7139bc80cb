/* The folders for sockets: where they are, and which are rejected. */
#include "base/user_folder.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/capuchin-folders-XXXXXX";

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
}

static void teardown(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(the_runtime_directory_comes_first)
{
    char path[USER_FOLDER_BYTES];
    char expected[128];

    ck_assert_int_eq(user_folder_path(0, path), 0);
    snprintf(expected, sizeof(expected), "%s/capuchin", folder);
    ck_assert_str_eq(path, expected);
    ck_assert_int_eq(user_folder_path(1, path), 0);
    snprintf(expected, sizeof(expected), "/tmp/capuchin-%u", (unsigned)geteuid());
    ck_assert_str_eq(path, expected);
}
END_TEST

START_TEST(a_runtime_directory_that_is_no_absolute_path_does_not_count)
{
    char path[USER_FOLDER_BYTES];
    char name[128];

    unsetenv("XDG_RUNTIME_DIR");
    ck_assert_int_eq(user_folder_path(0, path), ENOENT);
    setenv("XDG_RUNTIME_DIR", "run", 1);
    ck_assert_int_eq(user_folder_path(0, path), ENOENT);
    memset(name, 'x', sizeof(name));
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", name, 1);
    ck_assert_int_eq(user_folder_path(0, path), ENAMETOOLONG);
}
END_TEST

START_TEST(a_folder_is_made_for_the_user_alone)
{
    char path[USER_FOLDER_BYTES];
    struct stat stat;

    ck_assert_int_eq(user_folder_path(0, path), 0);
    ck_assert_int_eq(user_folder_check(path), ENOENT);
    umask(0);
    ck_assert_int_eq(user_folder_make(path), 0);
    ck_assert_int_eq(lstat(path, &stat), 0);
    ck_assert_uint_eq(stat.st_mode & 07777, 0700);
    ck_assert_int_eq(user_folder_make(path), 0);
    ck_assert_int_eq(user_folder_check(path), 0);
}
END_TEST

START_TEST(a_folder_that_is_not_safe_is_rejected)
{
    char path[USER_FOLDER_BYTES];
    char other[128];

    ck_assert_int_eq(user_folder_path(0, path), 0);
    ck_assert_int_eq(user_folder_make(path), 0);
    ck_assert_int_eq(chmod(path, 0710), 0);
    ck_assert_int_eq(user_folder_make(path), EACCES);
    ck_assert_int_eq(chmod(path, 0700), 0);
    if (geteuid() == 0) { /* only root can give a folder away */
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        ck_assert_int_eq(user_folder_make(path), EPERM);
        ck_assert_int_eq(chown(path, 0, 0), 0);
    }
    snprintf(other, sizeof(other), "%s/other", folder);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_int_eq(user_folder_make(path), ENOTDIR);
    ck_assert_int_eq(unlink(path), 0);
    setenv("XDG_RUNTIME_DIR", "/nowhere/at/all", 1);
    ck_assert_int_eq(user_folder_path(0, path), 0);
    ck_assert_int_eq(user_folder_make(path), ENOENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/user_folder");
    TCase *tests = tcase_create("user_folder");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_runtime_directory_comes_first);
    tcase_add_test(tests, a_runtime_directory_that_is_no_absolute_path_does_not_count);
    tcase_add_test(tests, a_folder_is_made_for_the_user_alone);
    tcase_add_test(tests, a_folder_that_is_not_safe_is_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

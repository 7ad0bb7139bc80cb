/*
 * Files that are replaced as a whole: what was there before survives every failure, links and
 * permissions stay, and no other file is left behind.
 */
#define _GNU_SOURCE /* renameat2 */
#include "base/files.h"

#include "tests/support/suite.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_BYTES 4096

static char folder[64];
static char large[2 * LIMIT_BYTES];

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/capuchin-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    memset(large, 'x', sizeof(large));
    umask(022);
}

static void teardown(void)
{
    char command[128];

    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *path, const char *text)
{
    ck_assert_int_eq(files_replace(path, text, strlen(text), NULL), 0);
}

static void check_text(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_uint_lt(fread(text, 1, sizeof(text) - 1, file), sizeof(text) - 1);
    ck_assert_str_eq(text, expected);
    fclose(file);
}

static void check_file_count(int expected)
{
    DIR *list = opendir(".");
    int count = 0;

    ck_assert_ptr_nonnull(list);
    while (readdir(list) != NULL) {
        count++;
    }
    closedir(list);
    ck_assert_int_eq(count - 2, expected); /* "." and ".." */
}

static mode_t mode_of(const char *path)
{
    struct stat found;

    ck_assert_int_eq(stat(path, &found), 0);
    return found.st_mode & 07777;
}

static ino_t inode_of(const char *path)
{
    struct stat found;

    ck_assert_int_eq(stat(path, &found), 0);
    return found.st_ino;
}

/* From here on no file can grow beyond LIMIT_BYTES, as on a full disk. */
static void fill_disk(void)
{
    const struct rlimit limit = {.rlim_cur = LIMIT_BYTES, .rlim_max = RLIM_INFINITY};

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void empty_disk(void)
{
    const struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_file_is_created_and_replaced)
{
    put("f", "a long text");
    check_text("f", "a long text");
    ck_assert_uint_eq(mode_of("f"), 0644);
    put("f", "short");
    check_text("f", "short");
    put("f", "");
    check_text("f", "");
    check_file_count(1);
}
END_TEST

START_TEST(permissions_stay)
{
    static const mode_t modes[] = {0600, 0640, 0666, 0755};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        put("f", "old");
        ck_assert_int_eq(chmod("f", modes[i]), 0);
        put("f", "new");
        ck_assert_uint_eq(mode_of("f"), modes[i]);
    }
}
END_TEST

START_TEST(owner_and_group_stay)
{
    struct stat found;

    put("f", "old");
    if (chown("f", 12, 34) != 0) {
        return; /* only root can give files away */
    }
    put("f", "new");
    ck_assert_int_eq(stat("f", &found), 0);
    ck_assert_uint_eq(found.st_uid, 12);
    ck_assert_uint_eq(found.st_gid, 34);
}
END_TEST

START_TEST(a_failed_write_leaves_the_old_file)
{
    int file = -1;

    put("f", "old");
    fill_disk();
    ck_assert_int_eq(files_replace("f", large, sizeof(large), NULL), EFBIG);
    ck_assert_int_eq(files_replace("f", large, sizeof(large), &file), EFBIG);
    ck_assert_int_eq(file, -1);
    ck_assert_int_eq(files_replace("new", large, sizeof(large), NULL), EFBIG);
    empty_disk();
    check_text("f", "old");
    check_file_count(1);
}
END_TEST

START_TEST(links_are_followed_and_stay)
{
    char absolute[128];
    struct stat found;

    snprintf(absolute, sizeof(absolute), "%s/b/target", folder);
    ck_assert_int_eq(mkdir("a", 0755) | mkdir("b", 0755), 0);
    ck_assert_int_eq(symlink("../b/absolute", "a/relative"), 0);
    ck_assert_int_eq(symlink(absolute, "b/absolute"), 0);
    put("a/relative", "new"); /* the target does not exist yet */
    check_text("b/target", "new");
    put("a/relative", "newer");
    check_text("b/target", "newer");
    ck_assert(lstat("a/relative", &found) == 0 && S_ISLNK(found.st_mode));
    ck_assert(lstat("b/absolute", &found) == 0 && S_ISLNK(found.st_mode));
    ck_assert(lstat("b/target", &found) == 0 && S_ISREG(found.st_mode));
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    ck_assert_int_eq(files_replace("loop", "", 0, NULL), ELOOP);
    ck_assert_int_eq(files_check("loop"), ELOOP);
    check_file_count(3);
}
END_TEST

START_TEST(long_names_work)
{
    char name[NAME_MAX + 2];

    memset(name, 'n', sizeof(name));
    name[NAME_MAX] = '\0';
    put(name, "old");
    put(name, "new");
    check_text(name, "new");
    name[NAME_MAX] = 'n';
    name[NAME_MAX + 1] = '\0';
    ck_assert_int_eq(files_replace(name, "", 0, NULL), ENAMETOOLONG);
    check_file_count(1);
}
END_TEST

/* The longest path that there can be: of a folder, whose last character is a slash. */
START_TEST(the_longest_path_works)
{
    char path[PATH_MAX];

    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(files_check(path), EISDIR);
    ck_assert_int_eq(files_replace(path, "", 0, NULL), EISDIR);
}
END_TEST

/* Files that a program which was killed left behind are in the way of no other. */
START_TEST(names_in_use_are_avoided)
{
    char name[64];

    snprintf(name, sizeof(name), ".capuchin-%ld-0", (long)getpid());
    put(name, "another's");
    put("f", "new");
    check_text(name, "another's");
    check_text("f", "new");
    check_file_count(2);
}
END_TEST

START_TEST(devices_and_pipes_are_written_directly)
{
    struct stat found;
    char text[8] = "";
    int pipe;

    put("/dev/null", "gone");
    ck_assert(stat("/dev/null", &found) == 0 && S_ISCHR(found.st_mode));
    ck_assert_int_eq(files_check("/dev/full"), 0);
    ck_assert_int_eq(files_replace("/dev/full", "text", 4, NULL), ENOSPC);
    ck_assert_int_eq(mkfifo("pipe", 0644), 0);
    ck_assert_int_eq(files_check("pipe"), 0); /* does not wait for a reader */
    pipe = open("pipe", O_RDONLY | O_NONBLOCK);
    put("pipe", "text");
    ck_assert_int_eq(read(pipe, text, sizeof(text)), 4);
    ck_assert_str_eq(text, "text");
    ck_assert(stat("pipe", &found) == 0 && S_ISFIFO(found.st_mode));
    close(pipe);
    check_file_count(1);
}
END_TEST

/* A shell that redirected standard output holds the file itself, not its name. */
START_TEST(open_descriptors_are_written_directly)
{
    char path[32];
    ino_t inode;
    int file;

    put("f", "old");
    inode = inode_of("f");
    file = open("f", O_WRONLY);
    ck_assert_int_ge(file, 0);
    snprintf(path, sizeof(path), "/dev/fd/%d", file);
    put(path, "new");
    ck_assert_int_eq(symlink(path, "link"), 0);
    put("link", "newer");
    check_text("f", "newer");
    ck_assert_uint_eq(inode_of("f"), inode);
    ck_assert_int_eq(close(file), 0);
    check_file_count(2);
}
END_TEST

START_TEST(a_check_changes_nothing)
{
    put("f", "old");
    ck_assert_int_eq(files_check("f"), 0);
    ck_assert_int_eq(files_check("new"), 0);
    ck_assert_int_eq(files_check(folder), EISDIR);
    ck_assert_int_eq(files_check("nowhere/new"), ENOENT);
    ck_assert_int_eq(files_check("f/new"), ENOTDIR);
    ck_assert_int_eq(files_check(""), ENOENT);
    check_text("f", "old");
    check_file_count(1);
}
END_TEST

/* What the permissions protect stays protected, although renaming does not ask the file. */
START_TEST(permissions_are_respected)
{
    put("f", "old");
    ck_assert_int_eq(mkdir("closed", 0755), 0);
    put("closed/f", "old");
    ck_assert_int_eq(chmod("f", 0444) | chmod("closed/f", 0666) | chmod("closed", 0555), 0);
    ck_assert_int_eq(chmod(".", 0777), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(seteuid(65534), 0);
    }
    ck_assert_int_eq(files_check("f"), EACCES);
    ck_assert_int_eq(files_replace("f", "new", 3, NULL), EACCES);
    ck_assert_int_eq(files_check("closed/f"), EACCES);
    ck_assert_int_eq(files_check("closed/new"), EACCES);
    put("allowed", "new");
    check_text("f", "old");
    check_text("closed/f", "old");
    if (getuid() == 0) {
        ck_assert_int_eq(seteuid(0), 0);
    }
    check_file_count(3);
    ck_assert_int_eq(chmod("closed", 0755), 0);
}
END_TEST

enum { OTHER_USER = 65533, FOLDER_OWNER = 65534 };

/* A folder like /tmp, with a file of root's and what others have put there. Root only. */
static void make_shared_folder(void)
{
    ck_assert_int_eq(mkdir("private", 0700) | mkdir("shared", 0755), 0);
    ck_assert_int_eq(chmod("shared", 01777) | chmod(".", 0755), 0);
    ck_assert_int_eq(chown("shared", FOLDER_OWNER, FOLDER_OWNER), 0);
    put("private/f", "root's");
}

static void give(const char *path, uid_t user)
{
    ck_assert_int_eq(lchown(path, user, user), 0);
}

START_TEST(what_others_put_into_a_shared_folder_is_rejected)
{
    static const char *const names[] = {"shared/link", "shared/new", "shared/file", "shared/fifo",
                                        "through"};

    if (geteuid() != 0) {
        return; /* only root can create files of other users */
    }
    make_shared_folder();
    ck_assert_int_eq(symlink("../private/f", "shared/link"), 0);
    ck_assert_int_eq(symlink("../private/new", "shared/new"), 0);
    ck_assert_int_eq(symlink("shared/link", "through"), 0);
    ck_assert_int_eq(mkfifo("shared/fifo", 0666), 0);
    put("shared/file", "another's");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], "through") != 0) {
            give(names[i], OTHER_USER);
        }
        ck_assert_int_eq(files_check(names[i]), EACCES);
        ck_assert_int_eq(files_replace(names[i], "new", 3, NULL), EACCES);
    }
    check_text("private/f", "root's");
    check_text("shared/file", "another's");
    ck_assert_int_ne(access("private/new", F_OK), 0);
    /* One's own, and what the folder's owner has put there: */
    give("shared/link", FOLDER_OWNER);
    put("shared/link", "new");
    give("shared/file", 0);
    put("shared/file", "newer");
    check_text("private/f", "new");
    check_text("shared/file", "newer");
}
END_TEST

/* In a child, as another user: the name is a file and a link by turns. */
static void keep_swapping(void)
{
    if (setgid(OTHER_USER) != 0 || setuid(OTHER_USER) != 0) {
        _exit(1);
    }
    for (;;) {
        int file = open("shared/next", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

        close(file);
        (void)rename("shared/next", "shared/f");
        (void)symlink("../nowhere/f", "shared/next");
        (void)rename("shared/next", "shared/f");
    }
}

/* What was a file when it was looked at may be a link when it is followed. A check that follows it
   does not find the folder. */
START_TEST(a_link_that_takes_the_place_of_a_file_is_rejected)
{
    pid_t child;

    if (geteuid() != 0) {
        return;
    }
    make_shared_folder();
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        keep_swapping();
    }
    while (access("shared/f", F_OK) != 0) {
        sched_yield();
    }
    for (int i = 0; i < 50000; i++) {
        ck_assert_int_ne(files_check("shared/f"), ENOENT);
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}
END_TEST

/* In a child: the name is a file and a FIFO by turns. */
static void keep_exchanging(void)
{
    for (;;) {
        (void)renameat2(AT_FDCWD, "f", AT_FDCWD, "fifo", RENAME_EXCHANGE);
    }
}

START_TEST(a_check_never_waits_for_a_reader)
{
    pid_t child;

    put("f", "old");
    ck_assert_int_eq(mkfifo("fifo", 0644), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        keep_exchanging();
    }
    for (int i = 0; i < 20000; i++) {
        (void)files_check("f");
    }
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    check_file_count(2);
}
END_TEST

START_TEST(a_failed_append_leaves_the_file_as_it_was)
{
    int file = -1;

    ck_assert_int_eq(files_replace("f", "one\n", 4, &file), 0);
    ck_assert_int_eq(files_append(file, "two\n", 4), 0);
    fill_disk();
    ck_assert_int_eq(files_append(file, large, sizeof(large)), EFBIG);
    check_text("f", "one\ntwo\n");
    ck_assert_int_eq(files_append(file, "three\n", 6), 0);
    check_text("f", "one\ntwo\nthree\n");
    ck_assert_int_eq(close(file), 0);
    file = -1;
    ck_assert_int_eq(files_replace("/dev/null", "one\n", 4, &file), 0);
    ck_assert_int_eq(files_append(file, "two\n", 4), 0);
    ck_assert_int_eq(close(file), 0);
}
END_TEST

START_TEST(the_same_file_is_recognised)
{
    char absolute[128];

    put("f", "");
    put("g", "");
    snprintf(absolute, sizeof(absolute), "%s/f", folder);
    ck_assert_int_eq(link("f", "hard") | symlink("f", "soft") | symlink("new", "soft-new"), 0);
    ck_assert(files_are_same("f", "f"));
    ck_assert(files_are_same("f", "./f"));
    ck_assert(files_are_same("f", absolute));
    ck_assert(files_are_same("f", "hard"));
    ck_assert(files_are_same("soft", "hard"));
    ck_assert(!files_are_same("f", "g"));
    ck_assert(!files_are_same("f", "new"));
    /* Files that do not exist yet: */
    snprintf(absolute, sizeof(absolute), "%s/new", folder);
    ck_assert(files_are_same("new", absolute));
    ck_assert(files_are_same("./new", "soft-new"));
    ck_assert(!files_are_same("new", "newer"));
    ck_assert(!files_are_same("nowhere/f", "nowhere/f"));
    ck_assert(!files_are_same("/dev/null", "/dev/null"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/files");
    TCase *tests = tcase_create("files");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_file_is_created_and_replaced);
    tcase_add_test(tests, permissions_stay);
    tcase_add_test(tests, owner_and_group_stay);
    tcase_add_test(tests, a_failed_write_leaves_the_old_file);
    tcase_add_test(tests, links_are_followed_and_stay);
    tcase_add_test(tests, long_names_work);
    tcase_add_test(tests, the_longest_path_works);
    tcase_add_test(tests, names_in_use_are_avoided);
    tcase_add_test(tests, devices_and_pipes_are_written_directly);
    tcase_add_test(tests, open_descriptors_are_written_directly);
    tcase_add_test(tests, a_check_changes_nothing);
    tcase_add_test(tests, permissions_are_respected);
    tcase_add_test(tests, what_others_put_into_a_shared_folder_is_rejected);
    tcase_add_test(tests, a_link_that_takes_the_place_of_a_file_is_rejected);
    tcase_add_test(tests, a_check_never_waits_for_a_reader);
    tcase_add_test(tests, a_failed_append_leaves_the_file_as_it_was);
    tcase_add_test(tests, the_same_file_is_recognised);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

/* The default host budget, from files in a folder that stands for the root of a machine. */
#include "runtime/context/device_choice.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

enum { FILES = 4 };

static const struct machine {
    const char *files[FILES][2]; /* path, text; the folders above are made */
    uint64_t available;
} machines[] = {
    {{{"/proc/meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   4194304 kB\n"}}, 4 * GIB},
    {{{NULL, NULL}}, UINT64_MAX},
    {{{"/proc/meminfo", "MemTotal: 9 kB\n"}}, UINT64_MAX},
    /* Version 2: the limit of the own group, of one above, none, and a group that is not there. */
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "0::/a/b\n"},
      {"/sys/fs/cgroup/a/b/memory.max", "1073741824\n"}},
     GIB},
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "0::/a/b\n"},
      {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
      {"/sys/fs/cgroup/a/memory.max", "2147483648\n"}},
     2 * GIB},
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "0::/\n"},
      {"/sys/fs/cgroup/memory.max", "max\n"}},
     4 * GIB},
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "0::/docker/0123\n"},
      {"/sys/fs/cgroup/memory.max", "1073741824\n"}},
     GIB},
    {{{"/proc/meminfo", "MemAvailable: 1048576 kB\n"},
      {"/proc/self/cgroup", "0::/\n"},
      {"/sys/fs/cgroup/memory.max", "2147483648\n"}},
     GIB},
    /* Version 1, where every controller has a line of its own. */
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/0123\n1:name=systemd:/\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "3221225472\n"}},
     3 * GIB},
    {{{"/proc/meminfo", "MemAvailable: 4194304 kB\n"},
      {"/proc/self/cgroup", "a line without colons\n5:memory\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n"}},
     4 * GIB},
};

static void write_file(const char *root, const char *path, const char *text)
{
    char name[256];
    FILE *file;

    snprintf(name, sizeof(name), "%s%s", root, path);
    for (char *at = name + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(name, 0755);
        *at = '/';
    }
    file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *root, const char *path)
{
    char name[256];

    snprintf(name, sizeof(name), "%s%s", root, path);
    unlink(name);
    for (char *slash = strrchr(name, '/'); slash > name + strlen(root);
         slash = strrchr(name, '/')) {
        *slash = '\0';
        rmdir(name);
    }
}

START_TEST(the_smaller_of_machine_and_container_counts)
{
    char root[] = "/tmp/host_memory_XXXXXX";
    const struct machine *machine = &machines[_i];

    ck_assert_ptr_nonnull(mkdtemp(root));
    for (size_t i = 0; i < FILES && machine->files[i][0] != NULL; i++) {
        write_file(root, machine->files[i][0], machine->files[i][1]);
    }
    ck_assert_uint_eq(host_memory_available(root), machine->available);
    ck_assert_uint_eq(host_memory_default_budget(root), machine->available == UINT64_MAX
                                                            ? UINT64_MAX
                                                            : machine->available / 100 * 40);
    for (size_t i = 0; i < FILES && machine->files[i][0] != NULL; i++) {
        remove_file(root, machine->files[i][0]);
    }
    ck_assert_int_eq(rmdir(root), 0);
}
END_TEST

START_TEST(this_machine_has_memory)
{
    uint64_t bytes = host_memory_available("");

    ck_assert_uint_gt(bytes, 1 << 20);
    ck_assert_uint_lt(bytes, UINT64_C(1) << 50);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host memory");
    TCase *cases = tcase_create("host memory");

    tcase_add_loop_test(cases, the_smaller_of_machine_and_container_counts, 0,
                        sizeof(machines) / sizeof(machines[0]));
    tcase_add_test(cases, this_machine_has_memory);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

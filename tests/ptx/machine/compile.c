/*
 * The compiler, see compile.h. An object is named after a hash of everything that it is made of:
 * the text, the prelude, the compiler and its options. It is written under another name and then
 * renamed, so that processes can share the folder.
 */
#include "tests/ptx/machine/compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 3072, OPTIONS_MOST = 20 };

extern char **environ;

static const char *const prelude[] = {"thread.h",       "prelude_memory.h", "prelude.h",
                                      "prelude_bits.h", "prelude_float.h",  "prelude_convert.h",
                                      "prelude_calls.h"};

/* Options of the compiler, and files. */
struct command {
    const char *words[OPTIONS_MOST];
    size_t count;
};

static const char *compiler(void)
{
    const char *named = getenv("PTX_CC");

    return named != NULL && *named != '\0' ? named : PTX_MACHINE_CC;
}

static bool has_fma(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma") != 0;
#else
    return false;
#endif
}

static struct command make_command(void)
{
    struct command command = {{compiler(), "-Og", "-w", "-std=gnu11", "-fPIC", "-shared",
                               "-ffp-contract=off", "-fno-math-errno", "-fwrapv",
                               "-fno-strict-aliasing", "-I" PTX_MACHINE_ROOT,
                               "-I" PTX_MACHINE_ROOT "/include"},
                              12};

    if (has_fma()) {
        command.words[command.count++] = "-mfma";
    }
    return command;
}

/* Two FNV hashes with different beginnings. */
struct hash {
    uint64_t one, other;
};

static void mix(struct hash *hash, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash->one = (hash->one ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
        hash->other = (hash->other ^ (unsigned char)text[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash->other ^= hash->other >> 29;
    }
}

static bool mix_file(struct hash *hash, const char *name)
{
    char path[PATH_BYTES];
    char buffer[4096];
    size_t count;
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/ptx/machine/%s", PTX_MACHINE_ROOT, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while ((count = fread(buffer, 1, sizeof(buffer), file)) > 0) {
        mix(hash, buffer, count);
    }
    return fclose(file) == 0;
}

static bool hash_of(const char *text, const struct command *command, struct hash *hash)
{
    *hash = (struct hash){UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};
    mix(hash, text, strlen(text));
    for (size_t i = 0; i < command->count; i++) {
        mix(hash, command->words[i], strlen(command->words[i]) + 1);
    }
    for (size_t i = 0; i < sizeof(prelude) / sizeof(prelude[0]); i++) {
        if (!mix_file(hash, prelude[i])) {
            return false;
        }
    }
    return true;
}

static capu_status make_folder(char path[PATH_BYTES], struct error_text *problem)
{
    const char *named = getenv("PTX_CACHE");
    const char *temporary = getenv("TMPDIR");

    if (named != NULL && *named != '\0') {
        snprintf(path, PATH_BYTES, "%s", named);
    } else {
        snprintf(path, PATH_BYTES, "%s/capuchin-ptx-%u",
                 temporary != NULL && *temporary != '\0' ? temporary : "/tmp", getuid());
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s: %s", path, strerror(errno));
    }
    return CAPU_OK;
}

/* Without what is preloaded here: the compiler is not part of the program under test. */
static char **clean_environment(void)
{
    size_t count = 0, kept = 0;
    char **cleaned;

    while (environ[count] != NULL) {
        count++;
    }
    cleaned = calloc(count + 1, sizeof(*cleaned));
    for (size_t i = 0; cleaned != NULL && i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 &&
            strncmp(environ[i], "LD_LIBRARY_PATH=", 16) != 0) {
            cleaned[kept++] = environ[i];
        }
    }
    return cleaned;
}

/* Runs the command, with its messages into a file. */
static capu_status run(const struct command *command, const char *messages,
                       struct error_text *problem)
{
    posix_spawn_file_actions_t actions;
    char **environment = clean_environment();
    pid_t child;
    int state = -1;
    int error = environment == NULL ? ENOMEM : posix_spawn_file_actions_init(&actions);

    if (error != 0) {
        free(environment);
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to run the compiler");
    }
    error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages,
                                             O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (error == 0) {
        error = posix_spawnp(&child, command->words[0], &actions, NULL,
                             (char *const *)command->words, environment);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    free(environment);
    if (error != 0) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s: %s", command->words[0],
                              strerror(error));
    }
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "%s does not compile what a module was translated to, see %s",
                              command->words[0], messages);
    }
    return CAPU_OK;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool is_written = file != NULL && fputs(text, file) >= 0;

    return file != NULL && fclose(file) == 0 && is_written;
}

static capu_status build(struct command command, const char *text, const char *path,
                         struct error_text *problem)
{
    char source[PATH_BYTES + 64], object[PATH_BYTES + 64], messages[PATH_BYTES + 64];
    capu_status status;

    snprintf(source, sizeof(source), "%s.%d.c", path, (int)getpid());
    snprintf(object, sizeof(object), "%s.%d.so", path, (int)getpid());
    snprintf(messages, sizeof(messages), "%s.%d.txt", path, (int)getpid());
    if (!write_text(source, text)) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s: %s", source, strerror(errno));
    }
    command.words[command.count++] = "-o";
    command.words[command.count++] = object;
    command.words[command.count++] = source;
    command.words[command.count++] = "-lm";
    status = run(&command, messages, problem);
    if (status == CAPU_OK && rename(object, path) != 0) {
        status = error_text_set(problem, CAPU_FILE_FAILED, "%s: %s", path, strerror(errno));
    }
    if (status == CAPU_OK) { /* else they show what was wrong */
        (void)unlink(source);
        (void)unlink(messages);
    }
    return status;
}

/* Builds it unless it is there. Another process may be building it, so only one at a time does. */
static capu_status build_once(struct command command, const char *text, const char *path,
                              struct error_text *problem)
{
    char name[PATH_BYTES + 64];
    capu_status status = CAPU_OK;
    int lock;

    if (access(path, R_OK) == 0) {
        return CAPU_OK;
    }
    snprintf(name, sizeof(name), "%s.lock", path);
    lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s: %s", name, strerror(errno));
    }
    while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
    }
    if (access(path, R_OK) != 0) {
        status = build(command, text, path, problem);
    }
    (void)close(lock);
    return status;
}

capu_status compile_load(const char *text, void **handle, struct error_text *problem)
{
    struct command command = make_command();
    char folder[PATH_BYTES];
    char path[PATH_BYTES + 48];
    struct hash hash;
    capu_status status = make_folder(folder, problem);

    if (status != CAPU_OK) {
        return status;
    }
    if (!hash_of(text, &command, &hash)) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s: the prelude cannot be read",
                              PTX_MACHINE_ROOT);
    }
    snprintf(path, sizeof(path), "%s/%016" PRIx64 "%016" PRIx64 ".so", folder, hash.one,
             hash.other);
    status = build_once(command, text, path, problem);
    if (status == CAPU_OK) {
        *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (*handle == NULL) {
            status = error_text_set(problem, CAPU_FILE_FAILED, "%s", dlerror());
        }
    }
    return status;
}

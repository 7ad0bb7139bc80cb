/* Reading what is declared, see declared.h. The lock guards everything here but the parts of an
   access, which belong to the thread that carries out work until no work is pending. */
#include "tests/ptx/driver/declared.h"

#include "base/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, EXIT_DIFFERENT = 99 };

struct operand {
    uint64_t address;
    uint64_t end;
    bool can_load;
    bool can_store;
    bool is_whole; /* to be written */
};

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process whose work is compared */
    int file;    /* 0: not opened yet */
    char *text;  /* that was read and is not yet a whole line */
    size_t count, capacity;
    struct declared *current;
    struct operand *operands; /* of the line that is read */
    size_t operand_count, operand_capacity;
    bool has_failed; /* a difference was printed */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool declared_is_on(void)
{
    return driver_settings()->operands != NULL;
}

static void fail(const char *what, const char *line)
{
    fprintf(stderr, "test driver: declared operands: %s: %s\n", what, line);
    list.has_failed = true;
}

static void finish(struct declared *access)
{
    for (size_t i = 0; i < access->part_count; i++) {
        free(access->parts[i].stored);
        free(access->parts[i].stored_before);
    }
    free(access->parts);
    free(access->name);
    free(access);
}

static bool check_part(const struct declared *access, const struct declared_part *part)
{
    uint64_t missing = 0;
    uint64_t first = 0;

    if (part->stored_before == NULL) {
        return true;
    }
    for (uint64_t at = part->end - part->address; at-- > 0;) {
        if ((part->stored_before[at / 8] >> at % 8 & 1) == 0) {
            missing++;
            first = part->address + at;
        }
    }
    if (missing > 0) {
        fprintf(stderr,
                "test driver: access %" PRIu64 " %s is declared to write 0x%" PRIx64
                " to 0x%" PRIx64 ", but does not store %" PRIu64
                " bytes of it, the first one at 0x%" PRIx64 "\n",
                access->number, access->name, part->address, part->end, missing, first);
    }
    return missing == 0;
}

/* Checks an access that is over. Pre: no work is pending. */
static void check_and_finish(struct declared *access)
{
    for (size_t i = 0; i < access->part_count && !access->has_failed; i++) {
        list.has_failed |= !check_part(access, &access->parts[i]);
    }
    finish(access);
}

/* Lines. */

static bool add_operand(struct operand operand)
{
    if (!array_reserve(&list.operands, &list.operand_capacity, list.operand_count + 1,
                       sizeof(list.operands[0]))) {
        return false;
    }
    list.operands[list.operand_count++] = operand;
    return true;
}

/* " read 0x1000 16 of 0x1000 64". */
static bool read_operand(const char *text, int *length)
{
    char role[8];
    uint64_t address, bytes;
    uint64_t whole = 0;
    uint64_t whole_bytes = 0;
    int more = 0;
    struct operand operand;

    if (sscanf(text, " %7s 0x%" SCNx64 " %" SCNu64 "%n", role, &address, &bytes, length) != 3) {
        return false;
    }
    if (sscanf(text + *length, " of 0x%" SCNx64 " %" SCNu64 "%n", &whole, &whole_bytes, &more) ==
        2) {
        *length += more;
    }
    operand = (struct operand){
        .address = address,
        .end = address + bytes,
        .can_load = strcmp(role, "write") != 0,
        .can_store = strcmp(role, "read") != 0,
        .is_whole = strcmp(role, "write") == 0,
    };
    if (bytes == 0 || (operand.can_load && operand.can_store && strcmp(role, "update") != 0) ||
        (whole_bytes > 0 && (address < whole || operand.end > whole + whole_bytes)) ||
        !add_operand(operand)) {
        return false;
    }
    if (operand.can_load && operand.end == whole + whole_bytes && operand.end % PAGE_BYTES != 0) {
        return add_operand((struct operand){
            operand.end, operand.end + PAGE_BYTES - operand.end % PAGE_BYTES, true, false, false});
    }
    return true;
}

static bool read_operands(const char *text)
{
    int length = 0;

    list.operand_count = 0;
    while (*text != '\0') {
        if (!read_operand(text, &length)) {
            return false;
        }
        text += length;
        if (*text == ',') {
            text++;
        } else if (*text != '\0') {
            return false;
        }
    }
    return true;
}

static int by_number(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

/* A part from one border to the next, if an operand covers it. */
static bool add_part(struct declared *access, uint64_t address, uint64_t end)
{
    struct declared_part part = {.address = address, .end = end};
    bool is_whole = false;

    for (size_t i = 0; i < list.operand_count; i++) {
        const struct operand *operand = &list.operands[i];

        if (operand->address <= address && operand->end >= end) {
            part.can_load |= operand->can_load;
            part.can_store |= operand->can_store;
            is_whole |= operand->is_whole;
        }
    }
    if (address == end || (!part.can_load && !part.can_store)) {
        return true;
    }
    if (is_whole) {
        part.stored = calloc((end - address) / 8 + 1, 1);
        part.stored_before = calloc((end - address) / 8 + 1, 1);
    }
    access->parts[access->part_count++] = part;
    return !is_whole || (part.stored != NULL && part.stored_before != NULL);
}

static bool make_parts(struct declared *access)
{
    size_t count = 0;
    uint64_t *borders = calloc(2 * list.operand_count + 1, sizeof(*borders));
    bool is_made = true;

    access->parts = calloc(2 * list.operand_count + 1, sizeof(*access->parts));
    if (borders == NULL || access->parts == NULL) {
        free(borders);
        return false;
    }
    for (size_t i = 0; i < list.operand_count; i++) {
        borders[count++] = list.operands[i].address;
        borders[count++] = list.operands[i].end;
    }
    qsort(borders, count, sizeof(borders[0]), by_number);
    for (size_t i = 0; i + 1 < count && is_made; i++) {
        is_made = add_part(access, borders[i], borders[i + 1]);
    }
    free(borders);
    return is_made;
}

static void end_current(void)
{
    struct declared *access = list.current;

    list.current = NULL;
    access->is_done = true;
    if (access->pending == 0) {
        check_and_finish(access);
    }
}

static void begin(uint64_t number, const char *name, size_t name_length)
{
    struct declared *access = calloc(1, sizeof(*access));

    if (access == NULL || (access->name = strndup(name, name_length)) == NULL ||
        !make_parts(access)) {
        fail("no memory", name);
        return;
    }
    access->number = number;
    list.current = access;
}

static void read_line(char *line)
{
    char *rest;
    char *colon = strrchr(line, ':');
    uint64_t number = strtoull(line, &rest, 10);

    if (strcmp(rest, " done") == 0) {
        if (list.current == NULL || list.current->number != number) {
            fail("not begun", line);
        } else {
            end_current();
        }
    } else if (list.current != NULL) {
        fail("begun inside another access", line);
    } else if (number == 0 || *rest != ' ' || colon == NULL || !read_operands(colon + 1)) {
        fail("not understood", line);
    } else {
        begin(number, rest + 1, (size_t)(colon - rest - 1));
    }
}

static void read_lines(void)
{
    char *end;
    size_t used = 0;

    while ((end = memchr(list.text + used, '\n', list.count - used)) != NULL) {
        *end = '\0';
        read_line(list.text + used);
        used = (size_t)(end - list.text) + 1;
    }
    memmove(list.text, list.text + used, list.count - used);
    list.count -= used;
}

/* Reads on to the end of the file. */
static void read_on(void)
{
    enum { CHUNK = 65536 };

    if (list.owner == 0) {
        list.owner = getpid();
    }
    if (list.owner != getpid()) {
        return;
    }
    if (list.file == 0) {
        int file = open(driver_settings()->operands, O_RDONLY | O_CLOEXEC);

        if (file < 0) {
            return; /* nothing was declared so far */
        }
        list.file = file;
    }
    for (;;) {
        ssize_t count = -1;

        if (array_reserve(&list.text, &list.capacity, list.count + CHUNK, 1)) {
            count = read(list.file, list.text + list.count, CHUNK);
        }
        if (count < 0) {
            fail("cannot be read", strerror(errno));
        }
        if (count <= 0) {
            return;
        }
        list.count += (size_t)count;
        read_lines();
    }
}

CUresult declared_take(struct declared **access)
{
    CUresult result = CUDA_SUCCESS;

    *access = NULL;
    if (!declared_is_on()) {
        return CUDA_SUCCESS;
    }
    pthread_mutex_lock(&list.lock);
    read_on();
    if (list.has_failed) {
        result = CUDA_ERROR_LAUNCH_FAILED;
    } else if (list.current != NULL) {
        list.current->pending++;
        *access = list.current;
    }
    pthread_mutex_unlock(&list.lock);
    return result;
}

void declared_note_difference(void)
{
    pthread_mutex_lock(&list.lock);
    list.has_failed = true;
    pthread_mutex_unlock(&list.lock);
}

void declared_release(struct declared *access)
{
    if (access == NULL) {
        return;
    }
    pthread_mutex_lock(&list.lock);
    if (--access->pending == 0 && access->is_done) {
        check_and_finish(access);
    }
    pthread_mutex_unlock(&list.lock);
}

/* The last accesses of the program: no call follows them. */
__attribute__((destructor)) static void check_last(void)
{
    if (!declared_is_on() || list.owner != getpid()) {
        return;
    }
    read_on();
    if (list.has_failed) {
        (void)fflush(NULL);
        _exit(EXIT_DIFFERENT);
    }
}

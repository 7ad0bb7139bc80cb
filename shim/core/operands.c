/* Operands of an access, see operands.h. */
#define _GNU_SOURCE /* open_memstream */
#include "shim/core/operands.h"

#include "shim/core/alloc.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/iteration.h"
#include "shim/driver/log.h"
#include "shim/driver/settings.h"

#include "base/array.h"
#include "runtime/api/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A list that no access uses, so that most need not be allocated. Guarded by the core's lock. */
static struct {
    capu_operand *list;
    size_t capacity;
} spare;

void operands_finish(struct operands *operands)
{
    if (operands->capacity > spare.capacity) {
        free(spare.list);
        spare.list = operands->list;
        spare.capacity = operands->capacity;
    } else {
        free(operands->list);
    }
    operands->list = NULL;
    operands->count = operands->capacity = 0;
}

static bool reserve_operands(struct operands *operands, size_t count)
{
    if (operands->list == NULL) {
        operands->list = spare.list;
        operands->capacity = spare.capacity;
        spare.list = NULL;
        spare.capacity = 0;
    }
    return array_reserve(&operands->list, &operands->capacity, operands->count + count,
                         sizeof(operands->list[0]));
}

static uint64_t sum_bytes(const capu_operand *list, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        bytes += list[i].bytes;
    }
    return bytes;
}

void operands_add_list(struct operands *operands, const capu_operand *list, size_t count)
{
    if (!reserve_operands(operands, count)) {
        operands->has_failed = true;
        return;
    }
    if (count > 0) {
        memcpy(operands->list + operands->count, list, count * sizeof(list[0]));
    }
    operands->count += count;
    operands->bytes += sum_bytes(list, count);
}

static void note_store(const capu_operand *operand)
{
    if (settings_get()->mode == CAPU_MODE_GUIDED && operand->role != CAPU_READ) {
        alloc_note_stored((uintptr_t)operand->address);
    }
}

uint64_t operands_sum(const struct operands *operands)
{
    return sum_bytes(operands->list, operands->count);
}

void operands_note_list(struct operands *operands)
{
    operands->bytes = operands_sum(operands);
    for (size_t i = 0; i < operands->count; i++) {
        note_store(&operands->list[i]);
    }
}

void operands_add(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);

    note_store(&operand);
    operands_add_list(operands, &operand, 1);
}

void operands_put(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const capu_operand operand = capu_operand_of((const void *)(uintptr_t)address, bytes, role);

    operands_add_list(operands, &operand, 1);
}

uint64_t operands_mix_pointer(uint64_t pointers, uint64_t address)
{
    const struct allocation *allocation = alloc_find(address);

    return allocation != NULL
               ? iteration_mix_pointer(pointers, allocation->ordinal, address - allocation->address)
               : pointers;
}

bool operands_is_data(uint64_t address)
{
    return iteration_is_loose() && alloc_find_data(address) != NULL;
}

uint64_t operands_mix_event(uint64_t pointers, uint64_t address)
{
    const struct allocation *allocation = alloc_note_place(address);

    return allocation == NULL ? pointers
                              : iteration_mix_pointer(
                                    pointers, allocation->ordinal,
                                    operands_is_data(address) ? 0 : address - allocation->address);
}

uint64_t operands_note_pointer(uint64_t pointers, uint64_t address)
{
    return settings_get()->mode == CAPU_MODE_GUIDED
               ? iteration_join_pointers(pointers, operands_mix_event(0, address))
               : pointers;
}

void operands_widen(uint64_t *address, uint64_t *bytes)
{
    const struct allocation *allocation = alloc_find(*address);
    struct describe_range first = {*address, *address + 1};
    struct describe_range last = {*address + *bytes - 1, *address + *bytes};
    capu_tensor_state state;
    uint64_t begin;
    uint64_t end;

    if (allocation == NULL || !describe_next(core_context(), &last, &state) ||
        !describe_next(core_context(), &first, &state)) {
        return;
    }
    begin = (uintptr_t)state.address;
    begin = begin > allocation->address ? begin : allocation->address;
    end = last.address - allocation->address < allocation->bytes
              ? last.address
              : allocation->address + allocation->bytes;
    *address = begin;
    *bytes = end - begin;
}

uint64_t operands_tensor_bytes(uint64_t address, uint64_t bytes)
{
    operands_widen(&address, &bytes);
    return bytes;
}

void operands_loosen(struct operands *operands)
{
    uint64_t budget = iteration_is_loose() && alloc_has_data()
                          ? capu_context_config(core_context())->budget_bytes
                          : 0;
    uint64_t needed = 0;
    capu_operand *list = operands->list;

    for (size_t i = 0; i < operands->count && budget > 0; i++) {
        needed += operands_tensor_bytes((uintptr_t)list[i].address, list[i].bytes);
    }
    for (size_t i = 0; i < operands->count && needed < budget / 2; i++) {
        uint64_t address = (uintptr_t)list[i].address;
        uint64_t bytes = list[i].bytes;

        if (list[i].role == CAPU_READ && operands_is_data(address)) {
            operands_widen(&address, &bytes);
            operands->bytes += bytes - list[i].bytes;
            list[i] = capu_operand_of((const void *)(uintptr_t)address, bytes, CAPU_READ);
        }
    }
}

static int by_address(const void *one, const void *other)
{
    uint64_t a = (uintptr_t)((const capu_operand *)one)->address;
    uint64_t b = (uintptr_t)((const capu_operand *)other)->address;

    return (a > b) - (a < b);
}

void operands_merge(struct operands *operands, bool joins)
{
    capu_operand *list = operands->list;
    size_t kept = 0;

    if (operands->count > 0) {
        qsort(list, operands->count, sizeof(list[0]), by_address);
    }
    operands->bytes = 0;
    for (size_t i = 0; i < operands->count; i++) {
        uint64_t address = (uintptr_t)list[i].address;
        uint64_t end = address + list[i].bytes;
        capu_operand *last = kept > 0 ? &list[kept - 1] : NULL;
        uint64_t last_end = last != NULL ? (uintptr_t)last->address + last->bytes : 0;

        if (last != NULL && (address < last_end || (joins && address == last_end))) {
            last->role =
                last->role == CAPU_READ && list[i].role == CAPU_READ ? CAPU_READ : CAPU_UPDATE;
            last->bytes += end > last_end ? end - last_end : 0;
            operands->bytes += end > last_end ? end - last_end : 0;
            continue;
        }
        list[kept] = list[i];
        list[kept].role = list[i].role == CAPU_READ ? CAPU_READ : CAPU_UPDATE;
        operands->bytes += list[kept++].bytes;
    }
    operands->count = kept;
}

void operands_add_all(struct operands *operands)
{
    size_t count;
    const struct allocation *list = alloc_list(&count);

    for (size_t i = 0; i < count; i++) {
        operands_add(operands, list[i].address, list[i].bytes, CAPU_UPDATE);
    }
}

void operands_add_allocation(struct operands *operands, uint64_t address, capu_role role)
{
    const struct allocation *allocation = alloc_find_pointer(address);

    if (allocation != NULL) {
        operands_add(operands, allocation->address, allocation->bytes, role);
    }
}

void operands_add_range(struct operands *operands, uint64_t address, uint64_t bytes, capu_role role)
{
    const struct allocation *allocation = alloc_find(address);
    uint64_t left;

    if (allocation == NULL && address != 0 && role != CAPU_READ) {
        code_note_stored(); /* it may be a variable */
    }
    if (allocation == NULL || bytes == 0) {
        return;
    }
    left = allocation->bytes - (address - allocation->address);
    bytes = role == CAPU_READ && bytes > left ? left : bytes;
    if (bytes <= left && !(role == CAPU_READ && operands_is_data(address))) {
        cut_range(core_context(), address, bytes);
    }
    operands_add(operands, address, bytes, role);
}

/*
 * `capuchin run --operands FILE`: a line for every access that is declared to the library, when it
 * has begun, and one when its work has been enqueued (on the host device: completed):
 *
 *     17 scale: read 0x7f1200000000 4096 of 0x7f1200000000 65536, update 0x7f1200010000 4096 of ...
 *     17 done
 *
 * A number from 1 in order, the kernel or function, and per operand its role, address and bytes,
 * and those of the allocation that it is in. A line is in the file before the work is enqueued, so
 * the last one without "done" is that of the call that a program died in.
 */

static struct {
    pthread_mutex_t lock; /* taken after the core's, if that is */
    int file;             /* 0: not opened yet; -1: cannot be written */
    uint64_t number;
} listing = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *role_name(uint32_t role)
{
    switch (role) {
    case CAPU_READ:
        return "read";
    case CAPU_WRITE:
        return "write";
    default:
        return "update";
    }
}

/* One call of the system per line: whoever reads the file meanwhile sees whole ones. */
static void write_line(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t written = write(listing.file, line, length);

        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            log_line("the list of operands cannot be written: %s", strerror(errno));
            (void)close(listing.file);
            listing.file = -1;
            return;
        }
        line += written;
        length -= (size_t)written;
    }
}

static bool is_listing(void)
{
    const char *path = settings_get()->operands_path;

    if (listing.file == 0 && path != NULL) {
        listing.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        if (listing.file < 0) {
            log_line("the list of operands %s cannot be written: %s", path, strerror(errno));
        }
    }
    return listing.file > 0;
}

static void print_operand(FILE *out, const capu_operand *operand)
{
    const struct allocation *allocation = alloc_find((uintptr_t)operand->address);

    fprintf(out, " %s 0x%" PRIxPTR " %zu", role_name(operand->role), (uintptr_t)operand->address,
            operand->bytes);
    if (allocation != NULL) {
        fprintf(out, " of 0x%" PRIx64 " %" PRIu64, allocation->address, allocation->bytes);
    }
}

char *operands_text(const capu_operand *operands, size_t count)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out;

    if (settings_get()->operands_path == NULL || (out = open_memstream(&text, &length)) == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s", i > 0 ? "," : "");
        print_operand(out, &operands[i]);
    }
    if (fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

void operands_write_begin(const char *name, const char *text)
{
    char *line = NULL;
    int length;

    (void)pthread_mutex_lock(&listing.lock);
    if (is_listing()) {
        length = asprintf(&line, "%" PRIu64 " %s:%s\n", ++listing.number, name, text);
        if (length > 0) {
            write_line(line, (size_t)length);
            free(line);
        }
    }
    (void)pthread_mutex_unlock(&listing.lock);
}

void operands_write_end(void)
{
    char line[64];
    int length;

    (void)pthread_mutex_lock(&listing.lock);
    if (is_listing()) {
        length = snprintf(line, sizeof(line), "%" PRIu64 " done\n", listing.number);
        write_line(line, (size_t)length);
    }
    (void)pthread_mutex_unlock(&listing.lock);
}

static void list_access(const char *name, const capu_operand *operands, size_t count)
{
    char *text = operands_text(operands, count);

    if (text != NULL) {
        operands_write_begin(name, text);
    }
    free(text);
}

__attribute__((constructor)) static void watch_accesses(void)
{
    core_watch(list_access, operands_write_end);
}

/* Comparing what work touches with what was declared, see declared.h. For the thread that carries
   out work. */
#include "tests/ptx/driver/declared.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct declared *access; /* that the work belongs to; NULL: none */
    size_t last;             /* the part that was hit last */
    struct memory_block own; /* the driver's memory that was hit last */
    bool has_failed;
    const char *problem;
    struct machine_access at;
} work;

void compare_begin(struct declared *access)
{
    work.access = access;
    work.last = 0;
    work.own.bytes = 0;
    work.has_failed = false;
}

/* The first part that ends after an address; the count of parts: none. */
static size_t find(const struct declared *access, uint64_t address)
{
    size_t low = 0;
    size_t high = access->part_count;

    if (work.last < high && address - access->parts[work.last].address <
                                access->parts[work.last].end - access->parts[work.last].address) {
        return work.last;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (access->parts[middle].end > address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool is_own(uint64_t address, uint64_t bytes)
{
    if (work.own.bytes == 0 || address - work.own.address >= work.own.bytes ||
        bytes > work.own.bytes - (address - work.own.address)) {
        if (!memory_find(address, &work.own) && !module_find_variable(address, &work.own)) {
            work.own.bytes = 0;
            return host_memory_is_pinned((const void *)(uintptr_t)address, bytes);
        }
    }
    return bytes <= work.own.bytes - (address - work.own.address);
}

static bool has_all(const unsigned char *bits, uint64_t from, uint64_t count)
{
    for (uint64_t at = from; at < from + count; at++) {
        if ((bits[at / 8] >> at % 8 & 1) == 0) {
            return false;
        }
    }
    return true;
}

/* What is wrong about touching a range inside a part; NULL: nothing. */
static const char *touch(const struct declared_part *part, uint64_t address, uint64_t bytes,
                         bool is_loaded, bool is_stored)
{
    uint64_t from = address - part->address;

    if (is_loaded && !part->can_load &&
        (part->stored_before == NULL || !has_all(part->stored_before, from, bytes))) {
        return "loads from what is declared to be written";
    }
    if (is_stored && !part->can_store) {
        return "stores to what is declared to be read";
    }
    if (is_stored && part->stored != NULL) {
        for (uint64_t at = from; at < from + bytes; at++) {
            part->stored[at / 8] |= (unsigned char)(1u << at % 8);
        }
    }
    return NULL;
}

/* The same for any range; what no operand covers may be the driver's own, or anything. */
static const char *touch_all(uint64_t address, uint64_t bytes, bool is_loaded, bool is_stored,
                             bool may_be_any)
{
    uint64_t end = address + bytes;
    const char *problem = NULL;

    while (address < end && problem == NULL) {
        const struct declared_part *part = NULL;
        uint64_t next = end;

        if (work.access != NULL) {
            size_t index = find(work.access, address);

            if (index < work.access->part_count) {
                part = &work.access->parts[index];
                work.last = index;
            }
        }
        if (part != NULL && part->address <= address) {
            next = part->end < end ? part->end : end;
            problem = touch(part, address, next - address, is_loaded, is_stored);
        } else {
            next = part != NULL && part->address < end ? part->address : end;
            problem = may_be_any || is_own(address, next - address) ? NULL
                      : is_stored && is_loaded                      ? "updates what is not declared"
                      : is_stored ? "stores to what is not declared"
                                  : "loads what is not declared";
        }
        address = next;
    }
    return problem;
}

/* Kept and printed later: here is the small stack of a fiber. */
static void note(const char *problem, const struct machine_access *at)
{
    if (!work.has_failed) {
        work.has_failed = true;
        work.problem = problem;
        work.at = *at;
    }
}

bool compare_observe(void *unused, const struct machine_access *access)
{
    const char *problem = touch_all(access->address, access->bytes, access->kind != MACHINE_WRITE,
                                    access->kind != MACHINE_READ, false);

    (void)unused;
    if (problem != NULL) {
        note(problem, access);
    }
    return problem == NULL;
}

void compare_moved(uint64_t address, uint64_t bytes, bool is_written)
{
    const char *problem =
        declared_is_on() ? touch_all(address, bytes, !is_written, is_written, true) : NULL;

    if (problem != NULL) {
        note(problem, &(struct machine_access){.address = address, .bytes = (uint32_t)bytes});
    }
}

static void print_problem(void)
{
    const struct machine_access *at = &work.at;

    fprintf(stderr, "test driver: ");
    if (work.access != NULL) {
        fprintf(stderr, "access %" PRIu64 " %s: ", work.access->number, work.access->name);
    }
    if (at->function == NULL) {
        fprintf(stderr, "a copy or fill");
    } else {
        fprintf(stderr,
                "kernel %s, line %" PRIu32 ", block %" PRIu32 ",%" PRIu32 ",%" PRIu32
                ", thread %" PRIu32 ",%" PRIu32 ",%" PRIu32,
                at->function->name, at->line, at->block[0], at->block[1], at->block[2],
                at->thread[0], at->thread[1], at->thread[2]);
    }
    fprintf(stderr, " %s: %" PRIu32 " bytes at 0x%" PRIx64 "\n", work.problem, at->bytes,
            at->address);
}

CUresult compare_end(CUresult result)
{
    if (work.has_failed) {
        print_problem();
        declared_note_difference();
        result = CUDA_ERROR_LAUNCH_FAILED;
    }
    if (work.access != NULL) {
        work.access->has_failed |= result != CUDA_SUCCESS;
        for (size_t i = 0; i < work.access->part_count; i++) {
            const struct declared_part *part = &work.access->parts[i];

            for (uint64_t at = 0; part->stored != NULL && at <= (part->end - part->address) / 8;
                 at++) {
                part->stored_before[at] |= part->stored[at];
                part->stored[at] = 0;
            }
        }
    }
    work.access = NULL;
    return result;
}

/* What ops outside iterations need, see outside.h. */
#include "runtime/record/outside.h"

#include "runtime/record/records.h"

/* In another page, an op with somewhat fewer bytes may need more. */
enum { NEARLY = 8 };

/* The bytes of the operands, and of all small tensors. */
static uint64_t least_bytes(const struct records *records, const struct op *op)
{
    uint64_t bytes = slabs_used_bytes(records->memory->slabs);

    for (size_t i = 0; i < op->access_count; i++) {
        bytes += op->accesses[i].tensor->bytes;
    }
    return bytes;
}

static uint64_t own_pages(const struct op *op)
{
    uint64_t pages = 0;

    for (size_t i = 0; i < op->access_count; i++) {
        pages += op->accesses[i].tensor->page_count;
    }
    return pages;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void outside_note(struct records *records, const struct op *op)
{
    const struct page_census *census = &records->memory->census;
    struct outside *outside = &records->outside;
    struct page_sums sums[CENSUS_LEVELS];
    uint64_t bytes = least_bytes(records, op);
    uint64_t own;

    if (bytes < outside->least_bytes - outside->least_bytes / NEARLY) {
        return;
    }
    outside->least_bytes = larger(outside->least_bytes, bytes);
    own = (own_pages(op) + memory_fixed_pages(records->memory)) *
          pages_bytes_each(records->memory->pages);
    if (outside->op == NULL || own > outside->own_bytes) {
        outside->own_bytes = own;
        outside->op = op->call.name;
    }
    page_census_read(census, sums);
    for (size_t level = 0; level < census->level_count; level++) {
        uint64_t pages = sums[level].edges + sums[level].slabs;

        for (size_t i = 0; i < op->access_count; i++) {
            pages += page_census_pages(census, level, op->accesses[i].tensor);
        }
        outside->bytes[level] =
            larger(outside->bytes[level], pages * census->levels[level].page_bytes);
    }
}

uint64_t outside_bytes(const struct records *records, uint64_t page_bytes)
{
    const struct page_census *census = &records->memory->census;

    for (size_t level = 0; level < census->level_count; level++) {
        if (census->levels[level].page_bytes == page_bytes) {
            return records->outside.bytes[level];
        }
    }
    return records->outside.own_bytes;
}

/* What a finished iteration needs, in pages of any size: see page_figures.h. */
#include "runtime/record/page_figures.h"

#include "runtime/record/records.h"

#include <string.h>

/* How much lower a floor must be to be worth mentioning: a twentieth of it. */
#define WORTH_MENTIONING 20

/* All in pages of page_bytes. */
struct figures {
    uint64_t page_bytes;
    uint64_t live;     /* the most pages of managed tensors that are alive at once */
    uint64_t operands; /* of the op that needs most */
    uint64_t next;     /* of the op that needs most after that */
    const char *op;
    uint64_t edges;
    uint64_t slabs;
};

static uint64_t live_bytes(const struct figures *figures)
{
    return (figures->live + figures->edges + figures->slabs) * figures->page_bytes;
}

static uint64_t floor_bytes(const struct figures *figures)
{
    return (figures->operands + figures->edges + figures->slabs) * figures->page_bytes;
}

/* Where a tensor begins in its allocation, less whole pages. Addresses of allocations with pages
   are multiples of the device's page, and so of every smaller one. */
static uint64_t offset_of(const struct record_tensor *tensor, uint64_t page_bytes)
{
    return tensor->is_small ? tensor->extent : (uintptr_t)tensor->address % page_bytes;
}

/* The pages that are a tensor's own. */
static uint32_t pages_at(const struct page_census *census, const struct record_tensor *tensor,
                         uint64_t page_bytes)
{
    bool is_small = census->threshold_bytes != 0
                        ? tensor->is_small
                        : (uint64_t)1 << tensor->size_log2 < page_bytes / 2;

    return is_small
               ? 0
               : (uint32_t)page_census_within(offset_of(tensor, page_bytes), tensor->tensor_bytes,
                                              tensor->is_last, page_bytes);
}

uint64_t page_figures_span(const struct records *records, const struct record_tensor *tensor,
                           uint64_t page_bytes)
{
    uint64_t pages = pages_at(&records->memory->census, tensor, page_bytes);
    uint64_t offset = offset_of(tensor, page_bytes);
    uint64_t first = (offset + page_bytes - 1) / page_bytes * page_bytes;
    uint64_t end = first + pages * page_bytes;

    end = end < offset + tensor->tensor_bytes ? end : offset + tensor->tensor_bytes;
    return pages > 0 ? end - first : 0;
}

/* Counts the pages of each tensor into tracker.pages. A level that does not exist is the device's
   own page. */
static void count_pages(struct records *records, const struct record *record, size_t level)
{
    const struct page_census *census = &records->memory->census;
    uint32_t *pages = records->tracker.pages;

    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        pages[i] = level < census->level_count
                       ? pages_at(census, tensor, census->levels[level].page_bytes)
                       : record_tensor_pages(tensor);
    }
}

/* Finds the op from which each tensor is alive, for tracker.births: its first one; UINT32_MAX:
   none. capu_zero clears what is always resident at once, and is recorded. Of a tensor with pages
   it only notes that it is zero, so one that would have them is alive from the next op on. */
static void find_births(struct tracker *tracker, const struct record *record)
{
    uint32_t *births = tracker->births;
    size_t unborn = 0; /* tensors without a birth so far */

    for (size_t i = 0; i < record->tensor_count; i++) {
        births[i] = record->tensors[i].first_op;
    }
    for (size_t i = 0; i < record->op_count; i++) {
        bool is_zero = record->sites[record->ops[i].site].kind == CALL_ZERO;
        size_t count = is_zero || unborn > 0 ? record_access_count(record, i) : 0;

        for (size_t k = 0; k < count; k++) {
            record_access access = record->accesses[record->ops[i].first_access + k];
            uint32_t index = record_access_tensor(access);

            if (births[index] == UINT32_MAX && !is_zero) {
                births[index] = (uint32_t)i;
                unborn--;
            } else if (births[index] == i && is_zero && !record_access_is_partial(access) &&
                       record_tensor_pages(&record->tensors[index]) == 0 &&
                       tracker->pages[index] > 0) {
                births[index] = UINT32_MAX;
                unborn++;
            }
        }
    }
}

/* The largest number of pages of managed tensors that are alive at once. Persistent tensors are
   alive all the time, the others from their birth to their last access. `untouched`: pages of
   persistent tensors that the record does not have. */
static uint64_t live_peak(struct tracker *tracker, const struct record *record, uint64_t untouched)
{
    int64_t *profile = tracker->profile;
    uint64_t persistent = untouched;
    int64_t live = 0;
    int64_t most = 0;

    memset(profile, 0, (record->op_count + 1) * sizeof(*profile));
    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        if (tensor->is_persistent) {
            persistent += tracker->pages[i];
        } else if (tracker->births[i] != UINT32_MAX) {
            profile[tracker->births[i]] += tracker->pages[i];
            profile[tensor->last_op + 1] -= tracker->pages[i];
        }
    }
    for (size_t i = 0; i < record->op_count; i++) {
        live += profile[i];
        most = live > most ? live : most;
    }
    return persistent + (uint64_t)most;
}

static uint64_t operand_pages(const struct tracker *tracker, const struct record *record, size_t op)
{
    const record_access *accesses = &record->accesses[record->ops[op].first_access];
    size_t count = record_access_count(record, op);
    uint64_t pages = 0;

    for (size_t i = 0; i < count; i++) {
        pages += tracker->pages[record_access_tensor(accesses[i])];
    }
    return pages;
}

/* The op that needs the most pages sets the floor. The runner-up shows how far splitting that op
   could lower it. */
static void find_floor(const struct tracker *tracker, const struct record *record,
                       struct figures *figures)
{
    figures->op = "";
    for (size_t i = 0; i < record->op_count; i++) {
        uint64_t pages = operand_pages(tracker, record, i);

        if (pages > figures->operands) {
            figures->next = figures->operands;
            figures->operands = pages;
            figures->op = record->ops[i].name;
        } else if (pages > figures->next) {
            figures->next = pages;
        }
    }
}

static uint64_t held_pages(const struct tracker *tracker, const struct record *record)
{
    uint64_t pages = 0;

    for (size_t i = 0; i < record->tensor_count; i++) {
        pages += record->tensors[i].is_held ? tracker->pages[i] : 0;
    }
    return pages;
}

/* Pre: the scratch arrays of the tracker have room for the record. */
static struct figures measure(struct records *records, const struct record *record, size_t level)
{
    struct tracker *tracker = &records->tracker;
    bool is_own = level >= records->memory->census.level_count;
    struct figures figures = {.page_bytes = record->page_bytes,
                              .edges = record->edge_pages,
                              .slabs = record->fixed_pages - record->edge_pages};
    uint64_t untouched = record->untouched_pages;
    uint64_t held;

    count_pages(records, record, level);
    if (!is_own) {
        figures.page_bytes = records->memory->census.levels[level].page_bytes;
        figures.edges = record->sums[level].edges;
        figures.slabs = record->sums[level].slabs;
        untouched = record->sums[level].persistent;
        held = held_pages(tracker, record);
        /* What was touched may have become longer since. */
        untouched = untouched > held ? untouched - held : 0;
    }
    find_births(tracker, record);
    figures.live = live_peak(tracker, record, untouched);
    find_floor(tracker, record, &figures);
    return figures;
}

static uint64_t chosen_page(const struct records *records, uint64_t budget_bytes)
{
    return device_choose_page(&records->lanes->device->capabilities.page_rule, budget_bytes);
}

/* The figures for a budget of the live peak. Both grow with the page, so the smallest page that
   such a budget could have is the one it would get. */
static struct figures measure_within(struct records *records, const struct record *record)
{
    for (size_t i = 0;
         i < records->memory->census.level_count && !records->settings->is_page_pinned; i++) {
        struct figures figures = measure(records, record, i);

        if (chosen_page(records, live_bytes(&figures)) <= figures.page_bytes) {
            return figures;
        }
    }
    return measure(records, record, records->memory->census.level_count);
}

/* The page that the device would choose for the budget, if its floor is lower. */
static void suggest_page(struct records *records, struct record *record)
{
    uint64_t page_bytes = chosen_page(records, records->settings->full_budget_bytes);
    struct report *report = &record->report;

    for (size_t i = 0; i < records->memory->census.level_count && records->settings->is_page_pinned;
         i++) {
        if (records->memory->census.levels[i].page_bytes == page_bytes) {
            struct figures figures = measure(records, record, i);
            uint64_t better_bytes = floor_bytes(&figures);

            if (better_bytes + report->floor_bytes / WORTH_MENTIONING < report->floor_bytes) {
                report->better_page_bytes = page_bytes;
                report->better_floor_bytes = better_bytes;
            }
        }
    }
}

/* What the iterations and the ops outside them have needed so far. */
static void find_program_floor(struct records *records, struct record *record)
{
    struct outside *outside = &records->outside;
    struct report *report = &record->report;
    uint64_t outside_needs = outside_bytes(records, report->floor_page_bytes);

    if (report->floor_bytes > outside->iteration_bytes) {
        outside->iteration_bytes = report->floor_bytes;
    }
    record->program_floor_op = "";
    report->program_floor_bytes = outside->iteration_bytes;
    if (outside_needs > report->program_floor_bytes) {
        report->program_floor_bytes = outside_needs;
        record->program_floor_op = outside->op;
    }
}

capu_status page_figures_report(struct records *records, struct record *record)
{
    struct tracker *tracker = &records->tracker;
    struct report *report = &record->report;
    struct figures figures;
    capu_status status = tracker_grow(&tracker->profile, &tracker->profile_capacity,
                                      record->op_count + 1, sizeof(*tracker->profile));

    if (status == CAPU_OK) {
        status = tracker_grow(&tracker->pages, &tracker->page_capacity, record->tensor_count + 1,
                              sizeof(*tracker->pages));
    }
    if (status == CAPU_OK) {
        status = tracker_grow(&tracker->births, &tracker->birth_capacity, record->tensor_count + 1,
                              sizeof(*tracker->births));
    }
    if (status != CAPU_OK) {
        return status;
    }
    figures = measure_within(records, record);
    report->page_bytes = record->page_bytes;
    report->fixed_bytes = record->fixed_pages * record->page_bytes;
    report->floor_page_bytes = figures.page_bytes;
    report->live_peak_bytes = live_bytes(&figures);
    report->floor_bytes = floor_bytes(&figures);
    report->next_floor_bytes = (figures.next + figures.edges + figures.slabs) * figures.page_bytes;
    report->floor_operands_bytes = figures.operands * figures.page_bytes;
    report->floor_edges_bytes = figures.edges * figures.page_bytes;
    report->floor_slabs_bytes = figures.slabs * figures.page_bytes;
    report->floor_op = figures.op;
    suggest_page(records, record);
    find_program_floor(records, record);
    return CAPU_OK;
}

void page_figures_kinds(struct tracker *tracker, const struct record *record,
                        uint64_t bytes[LIVE_KINDS])
{
    int64_t *profile = tracker->profile; /* has room since the report was completed */
    int64_t alive = 0;
    int64_t most = 0;
    size_t peak = 0;

    memset(profile, 0, (record->op_count + 1) * sizeof(*profile));
    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        if (!tensor->is_persistent) {
            profile[tensor->first_op] += (int64_t)tensor->tensor_bytes;
            profile[tensor->last_op + 1] -= (int64_t)tensor->tensor_bytes;
        }
    }
    for (size_t i = 0; i < record->op_count; i++) {
        alive += profile[i];
        if (alive > most) {
            most = alive;
            peak = i;
        }
    }
    memset(bytes, 0, LIVE_KINDS * sizeof(*bytes));
    for (size_t i = 0; i < record->tensor_count; i++) {
        const struct record_tensor *tensor = &record->tensors[i];

        if (tensor->is_persistent || (tensor->first_op <= peak && peak <= tensor->last_op)) {
            bytes[tensor->kind] += tensor->tensor_bytes;
        }
    }
}

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

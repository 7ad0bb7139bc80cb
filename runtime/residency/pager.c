/* Demand paging of tensors, see pager.h. */
#include "runtime/residency/pager.h"

#include "base/assert.h"
#include "base/size_text.h"
#include "runtime/context/failure.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/order.h"

#include <stdio.h>

capu_status pager_evict(struct residency *residency, struct tensor *tensor)
{
    struct departure *departure = departure_take(&residency->departures);
    bool is_copied = !tensor_is_empty(tensor) && !tensor_on_host(tensor);
    uint32_t method = tensor_is_empty(tensor)               ? CAPU_METHOD_EMPTY
                      : is_copied || tensor->state.is_saved ? CAPU_METHOD_SWAP
                                                            : CAPU_METHOD_CLEAN;
    struct departure_queue *queue = &residency->departures.leaving;
    capu_status status;

    ASSERT(tensor->state.pages == PAGES_OWN);
    if (departure == NULL) {
        return failure_set(residency->failure, CAPU_NO_HOST_MEMORY,
                           "no memory to note an eviction");
    }
    if (is_copied) {
        status = swap_out(residency, tensor, true);
        if (status != CAPU_OK) {
            departure_recycle(&residency->departures, departure);
            return status;
        }
        queue = &residency->departures.copying;
    }
    if (method != CAPU_METHOD_SWAP) {
        traffic_dropped(residency->records, tensor, method);
    }
    departure->tensor = tensor;
    departure->page_count = tensor->page_count;
    departure->after[0] = tensor->used;
    departure->after[1] = tensor->left;
    departure->after[2] = tensor->ready;
    tensor_state_leaves(tensor, departure);
    tensor_list_remove(tensor, RESIDENCY);
    departure_append(&residency->departures, queue, departure);
    tracker_evicted(residency->records, tensor, method);
    return strict_is_on(residency->settings) ? departure_wait(residency, departure) : CAPU_OK;
}

/* Gives back the pages of empty slabs, after the work that used them: of all, or of those that the
   program has not needed for a while. False: none. */
static bool trim_slabs(struct residency *residency, bool is_all, capu_status *status)
{
    if (!is_all &&
        slabs_page_count(residency->memory->slabs) <= slabs_kept_count(residency->memory->slabs)) {
        return false;
    }
    *status = failure_check(residency->failure, lane_synchronize(&residency->lanes->compute),
                            "waiting for the last use of small tensors");
    return *status == CAPU_OK && slabs_trim(residency->memory->slabs, is_all) > 0;
}

capu_status pager_leave_guide_for(struct residency *residency, size_t page_count)
{
    return residency->guided->active != NULL &&
                   pages_available(residency->memory->pages) < page_count
               ? leave_guide(residency)
               : CAPU_OK;
}

capu_status pager_make_room(struct residency *residency, size_t page_count)
{
    capu_status status = pager_leave_guide_for(residency, page_count);

    while (status == CAPU_OK && pages_available(residency->memory->pages) < page_count) {
        struct tensor *victim = NULL;

        status = departures_reap(residency);
        if (status != CAPU_OK || pages_available(residency->memory->pages) >= page_count) {
            break;
        }
        if (trim_slabs(residency, false, &status) || status != CAPU_OK) {
            continue;
        }
        if (pages_available(residency->memory->pages) + residency->departures.leaving_pages <
            page_count) {
            victim = victims_choose(residency);
        }
        if (victim != NULL) {
            status = pager_evict(residency, victim);
        } else if (departures_any(residency)) {
            status = departures_wait_oldest(residency);
        } else if (!trim_slabs(residency, true, &status) && status == CAPU_OK) {
            status = failure_set(residency->failure, CAPU_OVER_BUDGET,
                                 "%zu more pages are needed, and nothing is left to evict: "
                                 "%zu of %zu pages are always resident",
                                 page_count - pages_available(residency->memory->pages),
                                 memory_fixed_pages(residency->memory),
                                 pages_limit(residency->memory->pages));
        }
    }
    return status;
}

void pager_claim(struct residency *residency, struct tensor *tensor)
{
    if (tensor->state.departure != NULL) {
        departure_cancel(&residency->departures, tensor->state.departure);
    }
    victims_touch(residency, tensor);
}

/* Takes pages for a span. The device may have fewer than the budget, because other programs use it,
   and that is known only when it refuses one. Then room is made among those that there are. */
static capu_status take_span_pages(struct residency *residency, struct tensor *tensor)
{
    capu_status status = pages_take(residency->memory->pages, tensor->page_count, tensor->pages);

    if (status == CAPU_OVER_BUDGET) {
        status = pager_make_room(residency, tensor->page_count);
        if (status != CAPU_OK) {
            return status;
        }
        status = pages_take(residency->memory->pages, tensor->page_count, tensor->pages);
    }
    return failure_check(residency->failure, status, "taking device memory");
}

/* Maps new pages to a span. */
static capu_status map_span(struct residency *residency, struct tensor *tensor)
{
    capu_status status = take_span_pages(residency, tensor);

    if (status != CAPU_OK) {
        return status;
    }
    status = device_map(residency->lanes->device, tensor->span, tensor->pages, tensor->page_count);
    if (status != CAPU_OK) {
        pages_give(residency->memory->pages, tensor->pages, tensor->page_count);
        return failure_check(residency->failure, status, "mapping device memory");
    }
    TRACKER_ADD(residency->records, map_count, 1);
    tensor_state_mapped(tensor);
    timeline_log_take(residency->records, tensor);
    return CAPU_OK;
}

static capu_status fill_span(struct residency *residency, struct tensor *tensor, unsigned char byte)
{
    capu_status status = order_access(&residency->lanes->compute, tensor, CAPU_WRITE);

    if (status == CAPU_OK) {
        status = device_fill(residency->lanes->device, residency->lanes->compute.stream,
                             tensor->span, byte, tensor->span_bytes);
    }
    if (status == CAPU_OK) {
        status = tracker_mark_end(residency->records, &tensor->written);
    }
    if (status == CAPU_OK) {
        order_used(tensor, tensor->written);
    }
    if (status != CAPU_OK) {
        lanes_quiesce(residency->lanes,
                      &residency->lanes->compute); /* no position says when the fill has finished */
    }
    return failure_check(residency->failure, status, "filling device memory");
}

/* Fills the known zeros of a tensor into its pages. It is an op of its own in the record. */
static capu_status materialise_zeros(struct residency *residency, struct tensor *tensor)
{
    capu_operand operand = capu_operand_of(tensor->span, tensor->span_bytes, CAPU_WRITE);
    struct call call = {.kind = CALL_FILL,
                        .name = "capu_zero",
                        .is_once = tensor->zeroed == 0 ||
                                   tensor->zeroed + 1 < residency->iteration->number,
                        .is_replayable = true,
                        .operands = &operand,
                        .operand_count = 1};
    struct lane_position start;
    capu_status status = tracker_mark_begin(residency->records, &start);
    size_t op;

    if (status != CAPU_OK) {
        return failure_check(residency->failure, status, "marking the compute stream");
    }
    status = fill_span(residency, tensor, 0);
    if (status != CAPU_OK) {
        return status;
    }
    op = tracker_op(residency->records, &call, true);
    tracker_access(residency->records, tensor, CAPU_WRITE);
    tracker_marks(residency->records, op, &call, start, tensor->used);
    tensor_state_filled(tensor);
    return CAPU_OK;
}

/* Starts the copy back. Accesses follow it (order.h). */
static capu_status fetch_span(struct residency *residency, struct tensor *tensor)
{
    capu_status status = failure_check(
        residency->failure, order_all(&residency->lanes->h2d, tensor), "ordering a copy");

    if (status == CAPU_OK) {
        status = swap_in(residency, tensor);
    }
    residency->records->traffic.has_waited =
        residency->records->traffic.has_waited || status == CAPU_OK;
    return status;
}

capu_status pager_bring(struct residency *residency, struct tensor *tensor, bool needs_contents)
{
    capu_status status = CAPU_OK;

    if (!tensor_is_mapped(tensor)) {
        ASSERT(pages_available(residency->memory->pages) >= tensor->page_count);
        status = map_span(residency, tensor);
        if (status == CAPU_OK && strict_is_on(residency->settings)) {
            status = fill_span(residency, tensor, STRICT_POISON);
        }
    }
    if (status == CAPU_OK && needs_contents && tensor_is_zero(tensor)) {
        status = materialise_zeros(residency, tensor);
    } else if (status == CAPU_OK && needs_contents && tensor_is_defined(tensor) &&
               !tensor_on_device(tensor)) {
        status = fetch_span(residency, tensor);
    } else if (status == CAPU_OK && !needs_contents && tensor->state.contents == CONTENTS_HOST) {
        residency->records->traffic.totals.overwritten_bytes += tensor->span_bytes;
    }
    victims_touch(residency, tensor);
    return status;
}

/*
 * Making the operands of an op resident.
 */

/* Says so if few small tensors keep many pages. */
static const char *explain_slabs(const struct residency *residency, char *text, size_t bytes)
{
    uint64_t page_bytes = pages_bytes_each(residency->memory->pages);
    uint64_t kept_bytes = slabs_used_count(residency->memory->slabs) * page_bytes;
    uint64_t used_bytes = slabs_used_bytes(residency->memory->slabs);

    text[0] = '\0';
    if (kept_bytes > page_bytes && used_bytes < kept_bytes / 2) {
        snprintf(text, bytes, ", of which small tensors keep %s as slabs and take %s",
                 size_text(kept_bytes).text, size_text(used_bytes).text);
    }
    return text;
}

static capu_status fail_budget(struct residency *residency, const struct op *op, size_t pages,
                               size_t operand_pages)
{
    uint64_t page_bytes = pages_bytes_each(residency->memory->pages);
    char slabs[200];

    return failure_set(residency->failure, CAPU_OVER_BUDGET,
                       "op '%s' needs %s of device memory at once (%s for its operands, %s always "
                       "resident%s), and the budget is %s: raise it, or split the op",
                       op->call.name, size_text(pages * page_bytes).text,
                       size_text(operand_pages * page_bytes).text,
                       size_text((pages - operand_pages) * page_bytes).text,
                       explain_slabs(residency, slabs, sizeof(slabs)),
                       size_text(residency->settings->config.budget_bytes).text);
}

/* The operands together must fit next to what is always resident. */
static inline capu_status check_budget(struct residency *residency, const struct op *op,
                                       size_t operand_pages)
{
    size_t pages = operand_pages + memory_fixed_pages(residency->memory);

    return pages <= pages_limit(residency->memory->pages)
               ? CAPU_OK
               : fail_budget(residency, op, pages, operand_pages);
}

/* Makes every operand resident. Zeros are filled in before other contents are copied back, so that
   the ops of the record are in the order of the work. */
static capu_status make_resident(struct residency *residency, const struct op *op)
{
    size_t operand_pages = 0;
    size_t missing = 0;
    bool is_complete = residency->settings->is_paging;
    capu_status status;

    for (size_t i = 0; i < op->access_count; i++) {
        struct tensor *tensor = op->accesses[i].tensor;

        operand_pages += tensor->page_count;
        if (residency->settings->is_paging && tensor->page_count > 0) {
            pager_claim(residency, tensor);
            missing += tensor_is_mapped(tensor) ? 0 : tensor->page_count;
            is_complete = is_complete && tensor_on_device(tensor);
        }
    }
    status = check_budget(residency, op, operand_pages);
    if (is_complete) {
        return status; /* all are resident, and claimed in order */
    }
    traffic_wait_begin(residency->records);
    if (status == CAPU_OK && missing > 0) {
        status = pager_make_room(residency, missing);
    }
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < op->access_count && status == CAPU_OK; i++) {
            const struct access *access = &op->accesses[i];
            bool is_zeros = access_needs_contents(access) && tensor_is_zero(access->tensor);

            if (tensor_is_managed(access->tensor) && is_zeros == (pass == 0)) {
                status = pager_bring(residency, access->tensor, access_needs_contents(access));
            }
        }
    }
    return status;
}

/* Compute waits for the copies of all operands, whether they were just started here or are those
   that a plan has started for the next iteration. */
static capu_status follow_copies(struct residency *residency, const struct op *op)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < op->access_count && status == CAPU_OK; i++) {
        const struct access *access = &op->accesses[i];

        status = order_access(&residency->lanes->compute, access->tensor, access->role);
    }
    return failure_check(residency->failure, status, "ordering an op after a copy");
}

capu_status pager_make_ready(struct residency *residency, const struct op *op)
{
    capu_status status = make_resident(residency, op);

    return status != CAPU_OK ? status : follow_copies(residency, op);
}

/* Making operands resident, see resident.h. */
#include "runtime/residency/resident.h"

#include "base/size_text.h"
#include "runtime/context/failure.h"
#include "runtime/op/op.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/tensor/order.h"

#include <stdio.h>

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

capu_status resident_make_ready(struct residency *residency, const struct op *op)
{
    capu_status status = make_resident(residency, op);

    return status != CAPU_OK ? status : follow_copies(residency, op);
}

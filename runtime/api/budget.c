/*
 * The budget changes: see capu_budget_set in capuchin/memory.h.
 *
 * A lower one is prepared as if the pages that it takes away were about to be taken by a tensor:
 * room is made for them, and then the pool gives them back to the device instead. So whatever
 * fails, the old budget still holds.
 */
#include "base/size_text.h"
#include "runtime/api/context.h"
#include "runtime/context/failure.h"
#include "runtime/follow/recovery.h"
#include "runtime/plan/planning.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"

static const char call[] = "capu_budget_set";

/* Usable between capu_access_begin and capu_access_end, too. */
static capu_status check_call(capu_context **context)
{
    capu_status status = context_usable(context);

    if (status != CAPU_OK) {
        return status;
    }
    if (op_is_under_way(&(*context)->op) && (*context)->lanes.capture.is_open) {
        return failure_set(&(*context)->failure, CAPU_WRONG_ORDER,
                           "%s while an iteration is captured", call);
    }
    return op_is_under_way(&(*context)->op) ? CAPU_OK : context_uncaptured(context, call);
}

/* Takes pages away from tensors, until so many are available. */
static capu_status make_budget_room(capu_context *context, size_t page_count)
{
    capu_status status;

    if (pages_available(context->memory.pages) >= page_count &&
        context->guided.owed.guide == NULL) {
        return CAPU_OK;
    }
    if (op_is_under_way(&context->op)) {
        if (context->guided.active != NULL || context->guided.owed.guide != NULL) {
            return failure_set(&context->failure, CAPU_WRONG_ORDER,
                               "%s between capu_access_begin and capu_access_end, when a plan has "
                               "to be left for it",
                               call);
        }
        return pager_make_room(&context->residency,
                               page_count); /* not from the operands of the access */
    }
    status = pager_leave_guide_for(&context->residency, page_count);
    if (status == CAPU_OK) {
        status = recovery_before_fixed(&context->following, page_count);
    }
    victims_spare(&context->residency.victims);
    return status != CAPU_OK ? status : pager_make_room(&context->residency, page_count);
}

static capu_status lower_budget(capu_context *context, uint64_t bytes)
{
    size_t limit = (size_t)(bytes / pages_bytes_each(context->memory.pages));
    size_t before = pages_limit(context->memory.pages);

    return before > limit ? make_budget_room(context, before - limit) : CAPU_OK;
}

static capu_status check_new_budget(capu_context *context, uint64_t bytes)
{
    uint64_t page_bytes = pages_bytes_each(context->memory.pages);

    if (bytes > context->settings.full_budget_bytes) {
        return failure_set(&context->failure, CAPU_OVER_BUDGET,
                           "%s: %s is above the %s that the context was created with", call,
                           size_text(bytes).text,
                           size_text(context->settings.full_budget_bytes).text);
    }
    if (bytes < page_bytes) {
        return failure_set(&context->failure, CAPU_OVER_BUDGET, "%s: %s is below one page of %s",
                           call, size_text(bytes).text, size_text(page_bytes).text);
    }
    return CAPU_OK;
}

capu_status capu_budget_set(capu_context *context, uint64_t bytes)
{
    struct record *record;
    capu_status status = check_call(&context);

    if (status != CAPU_OK) {
        return status;
    }
    bytes = bytes != 0 ? bytes : context->settings.full_budget_bytes;
    status = check_new_budget(context, bytes);
    if (status == CAPU_OK && bytes < context->settings.config.budget_bytes) {
        status = lower_budget(context, bytes);
    }
    if (status == CAPU_OK) {
        status = failure_check(&context->failure, pages_set_budget(context->memory.pages, bytes),
                               "changing the budget");
    }
    if (status != CAPU_OK) {
        return status;
    }
    record = context->records.tracker.open;
    if (record != NULL && record->report.budget_bytes < context->settings.config.budget_bytes) {
        record->report.budget_bytes = context->settings.config.budget_bytes;
    }
    context->settings.config.budget_bytes = bytes;
    context->settings.shown.budget_bytes = bytes;
    planning_note_budget(&context->plans);
    return CAPU_OK;
}

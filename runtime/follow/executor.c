/* Carrying out plans, see executor.h. */
#include "runtime/follow/executor.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/context/internal.h"
#include "runtime/follow/recovery.h"
#include "runtime/follow/replay.h"
#include "runtime/guide/feedback.h"
#include "runtime/residency/leave.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/stock.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/access.h"
#include "runtime/tensor/order.h"

#include <string.h>

/* After so many iterations that overwrote a tensor before they read it, the next one is expected to
   do so, too. */
enum { SURE_OVERWRITES = 8 };

static struct tensor *tensor_at(const capu_context *context, uint32_t index)
{
    return context->guided.binding.tensors[index].tensor;
}

static capu_status follow_previous(capu_context *context, const struct guide *guide,
                                   struct guide_part previous, struct lane *lane)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < previous.count && status == CAPU_OK; i++) {
        status = order_all(lane, tensor_at(context, guide->previous[previous.first + i]));
    }
    return failure_check(&context->failure, status, "ordering work after a page's last use");
}

/* A tensor takes its pages. */
static capu_status take_pages(capu_context *context, struct tensor *tensor)
{
    capu_status status = stock_is_used(&context->residency)
                             ? stock_take(&context->residency, tensor)
                             : strict_map(&context->strict, tensor);

    if (status != CAPU_OK) {
        return status;
    }
    context->guided.binding.tensors[tensor->guide_index].taken = ++context->guided.binding.takes;
    tensor_state_takes(tensor);
    timeline_log_take(&context->records, tensor);
    return strict_poison_mapped(&context->strict, tensor);
}

/* A tensor gives its pages up. Ops that take pages next follow the copies that the plan makes. The
   copy of the install is not one of them, so compute follows it here. `is_owed`: contents that only
   those pages hold will be recomputed. Its bytes stay in the pages until another tensor takes one:
   if the guide is left before that, it gets them back. */
static capu_status give_pages(capu_context *context, struct tensor *tensor, bool is_owed)
{
    struct bound_tensor *bound = &context->guided.binding.tensors[tensor->guide_index];
    capu_status status = CAPU_OK;

    if (bound->is_arriving) {
        status =
            failure_check(&context->failure, lane_follow(&context->lanes.compute, tensor->ready),
                          "giving pages up");
        bound->is_arriving = status != CAPU_OK;
    }
    if (status == CAPU_OK) {
        status = stock_is_used(&context->residency) ? stock_give(&context->residency, tensor)
                                                    : strict_unmap(&context->strict, tensor);
    }
    if (status == CAPU_OK) {
        bound->has_left_newest = tensor->state.contents == CONTENTS_DEVICE;
        tensor_state_gives(tensor, is_owed);
    }
    return status;
}

static capu_status save(capu_context *context, struct tensor *tensor, bool behind_reads)
{
    capu_status status = CAPU_OK;

    if (tensor->state.contents == CONTENTS_DEVICE) {
        status = swap_out(&context->residency, tensor, behind_reads);
        if (status == CAPU_OK) {
            tensor_state_saved(tensor);
        }
    }
    return status;
}

/* An eviction for which a copy was made, just now or ahead of time, counts as swapped, not as
 * clean.
 */
static void note_evicted(capu_context *context, struct tensor *tensor, uint32_t method)
{
    if (method == CAPU_METHOD_CLEAN && tensor->state.is_saved) {
        method = CAPU_METHOD_SWAP;
    } else {
        traffic_dropped(&context->records, tensor, method);
    }
    tensor_state_save_used(tensor);
    tracker_evicted(&context->records, tensor, method);
}

static capu_status evict(capu_context *context, struct tensor *tensor)
{
    bool has_bytes = tensor_on_device(tensor);
    capu_status status;

    if (!tensor_is_mapped(tensor)) {
        return stock_is_used(&context->residency) ? stock_give(&context->residency, tensor)
                                                  : CAPU_OK;
    }
    status = save(context, tensor, true);
    if (status != CAPU_OK) {
        return status;
    }
    note_evicted(context, tensor, has_bytes ? CAPU_METHOD_CLEAN : CAPU_METHOD_EMPTY);
    return give_pages(context, tensor, false);
}

/* The last access of a transient tensor is over. A copy that was made to keep its contents makes
   this an eviction. */
static capu_status release(capu_context *context, struct tensor *tensor)
{
    if (tensor->state.is_saved && tensor_is_mapped(tensor)) {
        note_evicted(context, tensor, CAPU_METHOD_CLEAN);
    } else {
        timeline_log_end(&context->records, tensor);
    }
    return give_pages(context, tensor, false);
}

/* Whether the drop would discard contents that are needed this time. Either the plan expects them
   to be zeros by now and the program has not zeroed them; or a part is written next, and when the
   plan was recorded the rest of the tensor was undefined. */
static bool is_needed_still(const capu_context *context, const struct guide_item *item)
{
    uint32_t zeroed_op = context->guided.active->guide->tensors[item->subject].zeroed_op;

    return item->is_begun ||
           (item->is_filled && (zeroed_op == 0 || context->guided.binding.next > zeroed_op));
}

/* Whether the plan drops what earlier iterations left in a tensor, because the recorded iteration
   overwrote it, although this iteration may read it. Programs that accumulate over several
   iterations do so, and programs that swap two buffers. */
static bool may_be_read(const struct tensor *tensor, const struct guide_item *item)
{
    return item->is_older && (tensor->is_carried || tensor->overwrites < SURE_OVERWRITES);
}

/* NOT_READY: the tensor's contents are still needed, unlike in the plan. */
static capu_status drop(capu_context *context, const struct guide_item *item)
{
    struct tensor *tensor = tensor_at(context, item->subject);
    bool has_bytes = tensor_on_device(tensor);

    if (!tensor_is_mapped(tensor)) {
        return stock_is_used(&context->residency) ? stock_give(&context->residency, tensor)
                                                  : CAPU_OK;
    }
    if (has_bytes && !tensor_on_host(tensor) && is_needed_still(context, item)) {
        return CAPU_NOT_READY;
    }
    if (has_bytes && may_be_read(tensor, item)) {
        if (!tensor_on_host(tensor) && !tensor->is_carried) {
            feedback_disregard(&context->guided.active->feedback);
        }
        return evict(context, tensor);
    }
    note_evicted(context, tensor,
                 has_bytes && tensor_on_host(tensor) ? CAPU_METHOD_CLEAN
                 : has_bytes && item->is_owed        ? CAPU_METHOD_RECOMPUTE
                                                     : CAPU_METHOD_EMPTY);
    tensor_state_not_owed(tensor);
    return give_pages(context, tensor, item->is_owed);
}

/* Starts the copy back into pages that the tensor takes. */
static capu_status bring(capu_context *context, struct tensor *tensor)
{
    capu_status status =
        failure_check(&context->failure, order_all(&context->lanes.h2d, tensor), "ordering a copy");

    if (status == CAPU_OK) {
        status = take_pages(context, tensor);
    }
    if (status == CAPU_OK) {
        tracker_triggered(&context->records, tensor);
        status = swap_in(&context->residency, tensor);
    }
    return status;
}

/* Starts copies for which there were no pages, in order: those up to this tensor's, for which it
   waits if it must (NULL: no tensor's), and then as long as there are pages. */
static capu_status bring_expected(capu_context *context, const struct tensor *until)
{
    struct tensor *tensor = stock_expected(&context->residency);
    capu_status status = CAPU_OK;

    while (tensor != NULL && status == CAPU_OK) {
        bool has_room = until != NULL && stock_is_expected(&context->residency, until);

        if (!has_room) {
            status = stock_check(&context->residency, tensor, &has_room);
        }
        if (status != CAPU_OK || !has_room) {
            return status;
        }
        /* It may have been zeroed or freed since: there is nothing to copy then. */
        status = tensor_on_host(tensor) ? bring(context, tensor)
                                        : stock_give(&context->residency, tensor);
        tensor = stock_expected(&context->residency);
    }
    return status;
}

/* Whether a prefetch has to wait for pages, because there are none yet for it or an earlier one.
   A tensor that is still mapped needs none. */
static capu_status expect(capu_context *context, struct tensor *tensor, bool *is_expected)
{
    bool has_room = false;
    capu_status status = CAPU_OK;

    /* It is expected already if the op failed before and now runs again. */
    *is_expected =
        stock_is_used(&context->residency) && stock_is_expected(&context->residency, tensor);
    if (!stock_is_used(&context->residency) || *is_expected) {
        return CAPU_OK;
    }
    if (stock_expected(&context->residency) == NULL ||
        stock_has_left(&context->residency, tensor->guide_index)) {
        status = stock_check(&context->residency, tensor, &has_room);
    }
    if (status == CAPU_OK && !has_room) {
        stock_expect(&context->residency, tensor);
        *is_expected = true;
    }
    return status;
}

/* NOT_READY: there is nothing to bring back, unlike in the plan. */
static capu_status prefetch(capu_context *context, const struct guide *guide,
                            const struct guide_item *item)
{
    struct tensor *tensor = tensor_at(context, item->subject);
    struct lane_position newest = lane_newest(&context->lanes.compute);
    bool has_bytes = tensor_is_defined(tensor) && !tensor_is_zero(tensor);
    bool is_expected;
    capu_status status;

    if (tensor_is_mapped(tensor)) {
        return CAPU_NOT_READY;
    }
    if (!has_bytes) {
        status = follow_previous(context, guide, item->previous, &context->lanes.compute);
        return status != CAPU_OK ? status : take_pages(context, tensor);
    }
    if (!tensor_on_host(tensor)) {
        return CAPU_NOT_READY;
    }
    status = expect(context, tensor, &is_expected);
    if (status != CAPU_OK || is_expected) {
        return status;
    }
    status = follow_previous(context, guide, item->previous, &context->lanes.h2d);
    if (status == CAPU_OK) {
        status = failure_check(&context->failure, lane_follow(&context->lanes.h2d, newest),
                               "ordering a copy");
    }
    return status == CAPU_OK ? bring(context, tensor) : status;
}

/* Compute waits for what an access needs: a copy in, and before a write the copies out. */
static capu_status follow_copies(capu_context *context, struct tensor *tensor, uint32_t role)
{
    if (tensor->ready.lane == NULL && role == CAPU_READ) {
        return CAPU_OK;
    }
    context->operands.has_waited =
        context->operands.has_waited ||
        (tracker_is_timing(&context->records) && !lane_has_passed(tensor->ready));
    return failure_check(&context->failure, order_access(&context->lanes.compute, tensor, role),
                         "ordering an op after a copy");
}

/* Why an op of the plan runs: the program runs it, it fills in zeros first, or it runs again. */
enum purpose { AT_HAND, FILLING, REPLAYING };

/* The managed tensor of an op's n-th access; NULL: it is always resident. The tensors of the op at
   hand are those of the plan, and in the cache already. */
static struct tensor *tensor_of(const capu_context *context, const struct guide_access *access,
                                uint32_t n, enum purpose purpose)
{
    if (!access->is_managed) {
        return NULL;
    }
    return purpose == AT_HAND ? context->operands.accesses[n].tensor
                              : tensor_at(context, access->tensor);
}

/* What an op needs of its managed tensors. NOT_READY: it is not as planned. */
static capu_status make_ready(capu_context *context, const struct guide *guide,
                              const struct guide_op *op, struct guide_part previous,
                              enum purpose purpose)
{
    const struct guide_access *accesses = guide->accesses + op->accesses.first;
    bool may_expect = stock_is_used(&context->residency);
    bool takes = false;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        bool needs_contents = accesses[i].needs_contents;
        const struct tensor *tensor = tensor_of(context, &accesses[i], i, purpose);

        if (tensor == NULL) {
            continue;
        }
        if (needs_contents && may_expect && stock_is_expected(&context->residency, tensor)) {
            status = bring_expected(context, tensor);
        }
        if (status != CAPU_OK) {
            return status;
        }
        if (needs_contents &&
            (!tensor_on_device(tensor) ||
             (purpose == REPLAYING &&
              tensor->version != context->guided.binding.versions[op->accesses.first + i]))) {
            return CAPU_NOT_READY;
        }
        takes = takes || !tensor_is_mapped(tensor);
    }
    if (takes && previous.count > 0) {
        context->operands.has_waited = true;
        status = follow_previous(context, guide, previous, &context->lanes.compute);
    }
    for (uint32_t i = 0; i < op->accesses.count && status == CAPU_OK; i++) {
        struct tensor *tensor = tensor_of(context, &accesses[i], i, purpose);

        if (tensor != NULL && !tensor_is_mapped(tensor)) {
            status = take_pages(context, tensor);
        }
        if (tensor != NULL && status == CAPU_OK) {
            status = follow_copies(context, tensor, accesses[i].role);
        }
    }
    return status;
}

static capu_status replay(capu_context *context, const struct guide *guide,
                          const struct guide_item *item)
{
    const struct guide_op *op = &guide->ops[item->subject];
    capu_status status = make_ready(context, guide, op, item->previous, REPLAYING);

    return status != CAPU_OK ? status : replay_run(context, guide, item->subject);
}

static capu_status carry_out(capu_context *context, const struct guide *guide,
                             struct guide_part part)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < part.count && status == CAPU_OK; i++) {
        const struct guide_item *item = &guide->items[part.first + i];

        switch (item->kind) {
        case ACTION_PREFETCH:
            status = prefetch(context, guide, item);
            break;
        case ACTION_REPLAY:
            status = replay(context, guide, item);
            break;
        case ACTION_EVICT:
            status = evict(context, tensor_at(context, item->subject));
            break;
        case ACTION_SAVE:
            status = save(context, tensor_at(context, item->subject), false);
            break;
        case ACTION_DROP:
            status = drop(context, item);
            break;
        default:
            status = release(context, tensor_at(context, item->subject));
            break;
        }
    }
    return status;
}

static bool is_same_call(const struct call *planned, const struct call *call)
{
    return planned->kind == call->kind && planned->name == call->name &&
           planned->run == call->run && planned->replay == call->replay &&
           planned->key == call->key && planned->is_replayable == call->is_replayable &&
           planned->operand_count == call->operand_count &&
           (call->operand_count == 0 || memcmp(planned->operands, call->operands,
                                               call->operand_count * sizeof(*call->operands)) == 0);
}

/* Whether it is the tensor that the plan knows. Always-resident tensors are not bound: they are
   compared by address, where another may have been allocated between iterations. */
static bool is_planned_tensor(const capu_context *context, const struct guide *guide,
                              const struct guide_access *access, const struct tensor *tensor)
{
    const struct guide_tensor *planned;

    if (access->is_managed) {
        bool is_bound = tensor_is_placed(tensor) && tensor->guide_index == access->tensor;

        ASSERT(is_bound == (tensor_at(context, access->tensor) == tensor));
        return is_bound;
    }
    planned = &guide->tensors[access->tensor];
    return planned->address == tensor->address && planned->bytes == tensor->bytes &&
           !tensor_is_managed(tensor);
}

/* Whether the op at hand does to the same tensors what the planned one does. A plan that discards a
   tensor after its last access that is to outlive the iteration this time is wrong. */
static bool is_planned_op(const capu_context *context, const struct guide *guide)
{
    const struct operands *operands = &context->operands;
    const struct guide_op *op = &guide->ops[context->guided.binding.next];

    if (context->guided.binding.next >= guide->op_count ||
        !is_same_call(&op->call, &operands->call) || op->accesses.count != operands->access_count ||
        context->guided.binding.free_count < op->free_count) {
        return false;
    }
    for (uint32_t i = 0; i < op->accesses.count; i++) {
        const struct guide_access *planned = &guide->accesses[op->accesses.first + i];
        const struct access *access = &operands->accesses[i];

        if (!is_planned_tensor(context, guide, planned, access->tensor)) {
            return false;
        }
        if (planned->is_managed && planned->is_let_die && access->tensor->is_persistent) {
            context->guided.active->feedback.is_wrong = true;
            return false;
        }
        if (planned->role != access_role(access) ||
            (tensor_is_zero(access->tensor) && access_needs_contents(access))) {
            return false;
        }
    }
    return true;
}

/* An operand of the op that must be filled with zeros first, as an op of its own; NULL: none. */
static struct tensor *tensor_to_fill(const capu_context *context)
{
    const struct operands *operands = &context->operands;

    for (size_t i = 0; i < operands->access_count; i++) {
        const struct access *access = &operands->accesses[i];

        if (tensor_is_managed(access->tensor) && tensor_is_zero(access->tensor) &&
            access_needs_contents(access)) {
            return access->tensor;
        }
    }
    return NULL;
}

static void note_versions(capu_context *context, const struct guide_op *op)
{
    const struct operands *operands = &context->operands;
    uint64_t *versions = context->guided.binding.versions + op->accesses.first;

    for (uint32_t i = 0; i < op->accesses.count; i++) {
        versions[i] = operands->accesses[i].tensor->version;
    }
}

/* Fills a tensor that is known to be zero, as planned. NOT_READY: the plan has something else next.
 */
static capu_status fill_zeros(capu_context *context, const struct guide *guide,
                              struct tensor *tensor)
{
    const struct guide_op *op = &guide->ops[context->guided.binding.next];
    capu_status status;

    if (context->guided.binding.next >= guide->op_count || op->call.kind != CALL_FILL ||
        context->guided.binding.free_count < op->free_count ||
        tensor_at(context, guide->accesses[op->accesses.first].tensor) != tensor) {
        return CAPU_NOT_READY;
    }
    status = carry_out(context, guide, op->before);
    if (status == CAPU_OK) {
        status = make_ready(context, guide, op, op->previous, FILLING);
    }
    if (status == CAPU_OK) {
        status = pager_bring(&context->residency, tensor, true);
    }
    if (status != CAPU_OK) {
        return status;
    }
    context->guided.binding.versions[op->accesses.first] = tensor->version;
    context->guided.binding.next++;
    return carry_out(context, guide, op->after);
}

/* Everything up to the op itself. */
static capu_status carry_out_before(capu_context *context, const struct guide *guide)
{
    struct tensor *zeros = tensor_to_fill(context);
    capu_status status = CAPU_OK;

    while (zeros != NULL && status == CAPU_OK) {
        status = fill_zeros(context, guide, zeros);
        zeros = tensor_to_fill(context);
    }
    if (status == CAPU_OK && !is_planned_op(context, guide)) {
        status = CAPU_NOT_READY;
    }
    if (status == CAPU_OK) {
        status = carry_out(context, guide, guide->ops[context->guided.binding.next].before);
    }
    if (status == CAPU_OK) {
        const struct guide_op *op = &guide->ops[context->guided.binding.next];

        status = make_ready(context, guide, op, op->previous, AT_HAND);
    }
    return status;
}

capu_status executor_begin(capu_context *context, bool *is_planned)
{
    capu_status status;

    ASSERT(context->guided.active != NULL && context->iteration.is_open);
    status = stock_is_used(&context->residency) ? bring_expected(context, NULL) : CAPU_OK;
    if (status == CAPU_OK) {
        status = carry_out_before(context, context->guided.active->guide);
    }

    *is_planned = status == CAPU_OK;
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    return context->failure.lost != CAPU_OK ? context->failure.lost
                                            : leave_guide(&context->residency);
}

capu_status executor_before_zero(capu_context *context, const struct tensor *tensor)
{
    const struct record *record = context->records.tracker.open;

    /* No replay reads what the tensor held before the iteration. And if the plan knows of this
       zero, the ops that read the tensor before it are not replayed. */
    if (context->guided.active == NULL || record == NULL || !tensor_is_placed(tensor) ||
        tensor->in_record.stamp != record->stamp ||
        context->guided.binding.next <=
            context->guided.active->guide->tensors[tensor->guide_index].zeroed_op) {
        return CAPU_OK;
    }
    return leave_guide(&context->residency);
}

capu_status executor_visit(capu_context *context)
{
    const struct operands *operands = &context->operands;
    capu_status status = CAPU_OK;
    bool is_served = true;

    for (size_t i = 0; i < operands->access_count && status == CAPU_OK; i++) {
        const struct tensor *tensor = operands->accesses[i].tensor;

        if (tensor_is_placed(tensor) && stock_is_used(&context->residency) &&
            stock_is_expected(&context->residency, tensor)) {
            status = bring_expected(context, tensor);
        }
        is_served = is_served && (!tensor_is_placed(tensor) || tensor_is_mapped(tensor));
    }
    if (status == CAPU_OK && is_served) {
        return CAPU_OK;
    }
    return context->failure.lost != CAPU_OK ? context->failure.lost
                                            : leave_guide(&context->residency);
}

bool executor_is_followed(const capu_context *context)
{
    return context->guided.active->guide->is_unplaced ||
           context->guided.active->guide->ops[context->guided.binding.next].is_followed;
}

void executor_note_run(capu_context *context, struct bound_op bound)
{
    context->guided.binding.ops[context->guided.binding.next] = bound;
}

capu_status executor_end(capu_context *context)
{
    const struct guide *guide = context->guided.active->guide;
    const struct guide_op *op = &guide->ops[context->guided.binding.next];
    capu_status status;

    ASSERT(context->guided.binding.next < guide->op_count);
    note_versions(context, op);
    context->guided.binding.next++;
    status = carry_out(context, guide, op->after);
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    /* The op is done: a failure of what the plan has after it costs the plan, not the op. */
    return context->failure.lost != CAPU_OK ? context->failure.lost
                                            : leave_guide(&context->residency);
}

capu_status executor_finish(capu_context *context)
{
    bool is_over = context->guided.active == NULL ||
                   (context->guided.binding.next == context->guided.active->guide->op_count &&
                    !recovery_must_begin(context));

    return is_over ? CAPU_OK : leave_guide(&context->residency);
}

/* Carrying out plans, see executor.h. */
#include "runtime/follow/executor.h"

#include "base/assert.h"
#include "runtime/context/failure.h"
#include "runtime/follow/following.h"
#include "runtime/follow/recovery.h"
#include "runtime/guide/feedback.h"
#include "runtime/op/op.h"
#include "runtime/residency/free_list.h"
#include "runtime/residency/pager.h"
#include "runtime/residency/residency.h"
#include "runtime/residency/swap.h"
#include "runtime/strict/strict.h"
#include "runtime/tensor/order.h"

#include <string.h>

/* After so many iterations that overwrote a tensor before they read it, the next one is expected to
   do so, too. */
enum { SURE_OVERWRITES = 8 };

static struct tensor *tensor_at(const struct following *following, uint32_t index)
{
    return following->guided->binding.tensors[index].tensor;
}

static capu_status follow_previous(struct following *following, const struct guide *guide,
                                   struct guide_part previous, struct lane *lane)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < previous.count && status == CAPU_OK; i++) {
        status = order_all(lane, tensor_at(following, guide->previous[previous.first + i]));
    }
    return failure_check(following->failure, status, "ordering work after a page's last use");
}

/* A tensor takes its pages. */
static capu_status take_pages(struct following *following, struct tensor *tensor)
{
    capu_status status = free_list_is_used(following->residency)
                             ? free_list_take(following->residency, tensor)
                             : strict_map(following->strict, tensor);

    if (status != CAPU_OK) {
        return status;
    }
    following->guided->binding.tensors[tensor->guide_index].taken =
        ++following->guided->binding.takes;
    tensor_state_takes(tensor);
    timeline_log_take(following->records, tensor);
    return strict_poison_mapped(following->strict, tensor);
}

/* A tensor gives its pages up. Ops that take pages next follow the copies that the plan makes. The
   copy of the install is not one of them, so compute follows it here. `is_owed`: contents that only
   those pages hold will be recomputed. Its bytes stay in the pages until another tensor takes one:
   if the guide is left before that, it gets them back. */
static capu_status give_pages(struct following *following, struct tensor *tensor, bool is_owed)
{
    struct bound_tensor *bound = &following->guided->binding.tensors[tensor->guide_index];
    capu_status status = CAPU_OK;

    if (bound->is_arriving) {
        status = failure_check(following->failure,
                               lane_follow(&following->lanes->compute, tensor->ready),
                               "giving pages up");
        bound->is_arriving = status != CAPU_OK;
    }
    if (status == CAPU_OK) {
        status = free_list_is_used(following->residency)
                     ? free_list_give(following->residency, tensor)
                     : strict_unmap(following->strict, tensor);
    }
    if (status == CAPU_OK) {
        bound->has_left_newest = tensor->state.contents == CONTENTS_DEVICE;
        tensor_state_gives(tensor, is_owed);
    }
    return status;
}

static capu_status save_tensor(struct following *following, struct tensor *tensor,
                               bool behind_reads)
{
    capu_status status = CAPU_OK;

    if (tensor->state.contents == CONTENTS_DEVICE) {
        status = swap_out(following->residency, tensor, behind_reads);
        if (status == CAPU_OK) {
            tensor_state_saved(tensor);
        }
    }
    return status;
}

/* An eviction for which a copy was made, just now or ahead of time, counts as swapped, not as
 * clean.
 */
static void note_evicted(struct following *following, struct tensor *tensor, uint32_t method)
{
    if (method == CAPU_METHOD_CLEAN && tensor->state.is_saved) {
        method = CAPU_METHOD_SWAP;
    } else {
        traffic_dropped(following->records, tensor, method);
    }
    tensor_state_save_used(tensor);
    tracker_evicted(following->records, tensor, method);
}

static capu_status evict_tensor(struct following *following, struct tensor *tensor)
{
    bool has_bytes = tensor_on_device(tensor);
    capu_status status;

    if (!tensor_is_mapped(tensor)) {
        return free_list_is_used(following->residency)
                   ? free_list_give(following->residency, tensor)
                   : CAPU_OK;
    }
    status = save_tensor(following, tensor, true);
    if (status != CAPU_OK) {
        return status;
    }
    note_evicted(following, tensor, has_bytes ? CAPU_METHOD_CLEAN : CAPU_METHOD_EMPTY);
    return give_pages(following, tensor, false);
}

/* The last access of a transient tensor is over. A copy that was made to keep its contents makes
   this an eviction. */
static capu_status release_transient(struct following *following, struct tensor *tensor)
{
    if (tensor->state.is_saved && tensor_is_mapped(tensor)) {
        note_evicted(following, tensor, CAPU_METHOD_CLEAN);
    } else {
        timeline_log_end(following->records, tensor);
    }
    return give_pages(following, tensor, false);
}

/* Whether the drop would discard contents that are needed this time. Either the plan expects them
   to be zeros by now and the program has not zeroed them; or a part is written next, and when the
   plan was recorded the rest of the tensor was undefined. */
static bool is_needed_still(const struct following *following, const struct guide_item *item)
{
    uint32_t zeroed_op = following->guided->active->guide->tensors[item->subject].zeroed_op;

    return item->next == NEXT_PART ||
           (item->next == NEXT_FILL &&
            (zeroed_op == 0 || following->guided->binding.next > zeroed_op));
}

/* Whether the plan drops what earlier iterations left in a tensor, because the recorded iteration
   overwrote it, although this iteration may read it. Programs that accumulate over several
   iterations do so, and programs that swap two buffers. */
static bool may_be_read(const struct tensor *tensor, const struct guide_item *item)
{
    return item->is_older && (tensor->is_live_in || tensor->overwrites < SURE_OVERWRITES);
}

/* NOT_READY: the tensor's contents are still needed, unlike in the plan. */
static capu_status drop_tensor(struct following *following, const struct guide_item *item)
{
    struct tensor *tensor = tensor_at(following, item->subject);
    bool has_bytes = tensor_on_device(tensor);

    if (!tensor_is_mapped(tensor)) {
        return free_list_is_used(following->residency)
                   ? free_list_give(following->residency, tensor)
                   : CAPU_OK;
    }
    if (has_bytes && !tensor_on_host(tensor) && is_needed_still(following, item)) {
        return CAPU_NOT_READY;
    }
    if (has_bytes && may_be_read(tensor, item)) {
        if (!tensor_on_host(tensor) && !tensor->is_live_in) {
            feedback_disregard(&following->guided->active->feedback);
        }
        return evict_tensor(following, tensor);
    }
    note_evicted(following, tensor,
                 has_bytes && tensor_on_host(tensor)      ? CAPU_METHOD_CLEAN
                 : has_bytes && item->next == NEXT_REPLAY ? CAPU_METHOD_RECOMPUTE
                                                          : CAPU_METHOD_EMPTY);
    tensor_state_not_owed(tensor);
    return give_pages(following, tensor, item->next == NEXT_REPLAY);
}

/* Starts the copy back into pages that the tensor takes. */
static capu_status bring_tensor(struct following *following, struct tensor *tensor)
{
    capu_status status = failure_check(
        following->failure, order_all(&following->lanes->h2d, tensor), "ordering a copy");

    if (status == CAPU_OK) {
        status = take_pages(following, tensor);
    }
    if (status == CAPU_OK) {
        tracker_triggered(following->records, tensor);
        status = swap_in(following->residency, tensor);
    }
    return status;
}

/* Starts copies for which there were no pages, in order: those up to this tensor's, for which it
   waits if it must (NULL: no tensor's), and then as long as there are pages. */
static capu_status bring_expected(struct following *following, const struct tensor *until)
{
    struct tensor *tensor = free_list_expected(following->residency);
    capu_status status = CAPU_OK;

    while (tensor != NULL && status == CAPU_OK) {
        bool has_room = until != NULL && free_list_is_expected(following->residency, until);

        if (!has_room) {
            status = free_list_check(following->residency, tensor, &has_room);
        }
        if (status != CAPU_OK || !has_room) {
            return status;
        }
        /* It may have been zeroed or freed since: there is nothing to copy then. */
        status = tensor_on_host(tensor) ? bring_tensor(following, tensor)
                                        : free_list_give(following->residency, tensor);
        tensor = free_list_expected(following->residency);
    }
    return status;
}

/* Whether a prefetch has to wait for pages, because there are none yet for it or an earlier one.
   A tensor that is still mapped needs none. */
static capu_status expect_pages(struct following *following, struct tensor *tensor,
                                bool *is_expected)
{
    bool has_room = false;
    capu_status status = CAPU_OK;

    /* It is expected already if the op failed before and now runs again. */
    *is_expected = free_list_is_used(following->residency) &&
                   free_list_is_expected(following->residency, tensor);
    if (!free_list_is_used(following->residency) || *is_expected) {
        return CAPU_OK;
    }
    if (free_list_expected(following->residency) == NULL ||
        free_list_has_left(following->residency, tensor->guide_index)) {
        status = free_list_check(following->residency, tensor, &has_room);
    }
    if (status == CAPU_OK && !has_room) {
        free_list_expect(following->residency, tensor);
        *is_expected = true;
    }
    return status;
}

/* NOT_READY: there is nothing to bring back, unlike in the plan. */
static capu_status prefetch_tensor(struct following *following, const struct guide *guide,
                                   const struct guide_item *item)
{
    struct tensor *tensor = tensor_at(following, item->subject);
    struct lane_position newest = lane_newest(&following->lanes->compute);
    bool has_bytes = tensor_is_defined(tensor) && !tensor_is_zero(tensor);
    bool is_expected;
    capu_status status;

    if (tensor_is_mapped(tensor)) {
        return CAPU_NOT_READY;
    }
    if (!has_bytes) {
        status = follow_previous(following, guide, item->previous, &following->lanes->compute);
        return status != CAPU_OK ? status : take_pages(following, tensor);
    }
    if (!tensor_on_host(tensor)) {
        return CAPU_NOT_READY;
    }
    status = expect_pages(following, tensor, &is_expected);
    if (status != CAPU_OK || is_expected) {
        return status;
    }
    status = follow_previous(following, guide, item->previous, &following->lanes->h2d);
    if (status == CAPU_OK) {
        status = failure_check(following->failure, lane_follow(&following->lanes->h2d, newest),
                               "ordering a copy");
    }
    return status == CAPU_OK ? bring_tensor(following, tensor) : status;
}

/* Compute waits for what an access needs: a copy in, and before a write the copies out. */
static capu_status follow_copies(struct following *following, struct tensor *tensor, uint32_t role)
{
    if (tensor->ready.lane == NULL && role == CAPU_READ) {
        return CAPU_OK;
    }
    following->records->traffic.has_waited =
        following->records->traffic.has_waited ||
        (tracker_is_timing(following->records) && !lane_has_passed(tensor->ready));
    return failure_check(following->failure, order_access(&following->lanes->compute, tensor, role),
                         "ordering an op after a copy");
}

/* The managed tensor of an op's n-th access; NULL: it is always resident. The tensors of the op at
   hand are those of the plan, and in the cache already. */
static struct tensor *tensor_of(const struct following *following, const struct op *op,
                                const struct guide_access *access, uint32_t n)
{
    if (!access->is_managed) {
        return NULL;
    }
    return op != NULL ? op->accesses[n].tensor : tensor_at(following, access->tensor);
}

/* What a planned op needs of its managed tensors. `op`: it is that one; NULL: the plan runs it.
   `replay`: it runs again; NULL: for the first time. NOT_READY: it is not as planned. */
static capu_status make_ready(struct following *following, const struct guide *guide,
                              const struct guide_op *planned, const struct op *op,
                              const struct guide_item *replay)
{
    const struct guide_access *accesses = guide->accesses + planned->accesses.first;
    struct guide_part previous = replay != NULL ? replay->previous : planned->previous;
    bool may_expect = free_list_is_used(following->residency);
    bool takes = false;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < planned->accesses.count; i++) {
        bool needs_contents = accesses[i].needs_contents;
        const struct tensor *tensor = tensor_of(following, op, &accesses[i], i);

        if (tensor == NULL) {
            continue;
        }
        if (needs_contents && may_expect && free_list_is_expected(following->residency, tensor)) {
            status = bring_expected(following, tensor);
        }
        if (status != CAPU_OK) {
            return status;
        }
        if (needs_contents &&
            (!tensor_on_device(tensor) ||
             (replay != NULL &&
              tensor->version !=
                  following->guided->binding.versions[planned->accesses.first + i]))) {
            return CAPU_NOT_READY;
        }
        takes = takes || !tensor_is_mapped(tensor);
    }
    if (takes && previous.count > 0) {
        following->records->traffic.has_waited = true;
        status = follow_previous(following, guide, previous, &following->lanes->compute);
    }
    for (uint32_t i = 0; i < planned->accesses.count && status == CAPU_OK; i++) {
        struct tensor *tensor = tensor_of(following, op, &accesses[i], i);

        if (tensor != NULL && !tensor_is_mapped(tensor)) {
            status = take_pages(following, tensor);
        }
        if (tensor != NULL && status == CAPU_OK) {
            status = follow_copies(following, tensor, accesses[i].role);
        }
    }
    return status;
}

static capu_status replay_op(struct following *following, const struct guide *guide,
                             const struct guide_item *item)
{
    capu_status status = make_ready(following, guide, &guide->ops[item->subject], NULL, item);

    return status != CAPU_OK ? status : replay_run(following, guide, item->subject);
}

static capu_status carry_out_part(struct following *following, const struct guide *guide,
                                  struct guide_part part)
{
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < part.count && status == CAPU_OK; i++) {
        const struct guide_item *item = &guide->items[part.first + i];

        switch (item->kind) {
        case ACTION_PREFETCH:
            status = prefetch_tensor(following, guide, item);
            break;
        case ACTION_REPLAY:
            status = replay_op(following, guide, item);
            break;
        case ACTION_EVICT:
            status = evict_tensor(following, tensor_at(following, item->subject));
            break;
        case ACTION_SAVE:
            status = save_tensor(following, tensor_at(following, item->subject), false);
            break;
        case ACTION_DROP:
            status = drop_tensor(following, item);
            break;
        default:
            status = release_transient(following, tensor_at(following, item->subject));
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
static bool is_planned_tensor(const struct following *following, const struct guide *guide,
                              const struct guide_access *access, const struct tensor *tensor)
{
    const struct guide_tensor *planned;

    if (access->is_managed) {
        bool is_bound = tensor_is_placed(tensor) && tensor->guide_index == access->tensor;

        ASSERT(is_bound == (tensor_at(following, access->tensor) == tensor));
        return is_bound;
    }
    planned = &guide->tensors[access->tensor];
    return planned->address == tensor->address && planned->bytes == tensor->bytes &&
           !tensor_is_managed(tensor);
}

/* Whether the op at hand does to the same tensors what the planned one does. A plan that discards a
   tensor after its last access that is to outlive the iteration this time is wrong. */
static bool is_planned_op(const struct following *following, const struct guide *guide,
                          const struct op *op)
{
    const struct guide_op *next = &guide->ops[following->guided->binding.next];

    if (following->guided->binding.next >= guide->op_count ||
        !is_same_call(&next->call, &op->call) || next->accesses.count != op->access_count ||
        following->guided->binding.free_count < next->free_count) {
        return false;
    }
    for (uint32_t i = 0; i < next->accesses.count; i++) {
        const struct guide_access *planned = &guide->accesses[next->accesses.first + i];
        const struct access *access = &op->accesses[i];

        if (!is_planned_tensor(following, guide, planned, access->tensor)) {
            return false;
        }
        if (planned->is_managed && planned->is_let_die && access->tensor->is_persistent) {
            following->guided->active->feedback.is_wrong = true;
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
static struct tensor *tensor_to_fill(const struct op *op)
{
    for (size_t i = 0; i < op->access_count; i++) {
        const struct access *access = &op->accesses[i];

        if (tensor_is_managed(access->tensor) && tensor_is_zero(access->tensor) &&
            access_needs_contents(access)) {
            return access->tensor;
        }
    }
    return NULL;
}

static void note_versions(struct following *following, const struct guide_op *planned,
                          const struct op *op)
{
    uint64_t *versions = following->guided->binding.versions + planned->accesses.first;

    for (uint32_t i = 0; i < planned->accesses.count; i++) {
        versions[i] = op->accesses[i].tensor->version;
    }
}

/* Fills a tensor that is known to be zero, as planned. NOT_READY: the plan has something else next.
 */
static capu_status fill_zeros(struct following *following, const struct guide *guide,
                              struct tensor *tensor)
{
    const struct guide_op *op = &guide->ops[following->guided->binding.next];
    capu_status status;

    if (following->guided->binding.next >= guide->op_count || op->call.kind != CALL_FILL ||
        following->guided->binding.free_count < op->free_count ||
        tensor_at(following, guide->accesses[op->accesses.first].tensor) != tensor) {
        return CAPU_NOT_READY;
    }
    status = carry_out_part(following, guide, op->before);
    if (status == CAPU_OK) {
        status = make_ready(following, guide, op, NULL, NULL);
    }
    if (status == CAPU_OK) {
        status = pager_bring(following->residency, tensor, true);
    }
    if (status != CAPU_OK) {
        return status;
    }
    following->guided->binding.versions[op->accesses.first] = tensor->version;
    following->guided->binding.next++;
    return carry_out_part(following, guide, op->after);
}

/* Everything up to the op itself. */
static capu_status carry_out_before(struct following *following, const struct guide *guide,
                                    const struct op *op)
{
    struct tensor *zeros = tensor_to_fill(op);
    capu_status status = CAPU_OK;

    while (zeros != NULL && status == CAPU_OK) {
        status = fill_zeros(following, guide, zeros);
        zeros = tensor_to_fill(op);
    }
    if (status == CAPU_OK && !is_planned_op(following, guide, op)) {
        status = CAPU_NOT_READY;
    }
    if (status == CAPU_OK) {
        status =
            carry_out_part(following, guide, guide->ops[following->guided->binding.next].before);
    }
    if (status == CAPU_OK) {
        status =
            make_ready(following, guide, &guide->ops[following->guided->binding.next], op, NULL);
    }
    return status;
}

capu_status executor_begin(struct following *following, struct op *op)
{
    capu_status status;

    ASSERT(following->guided->active != NULL && following->iteration->is_open);
    status = free_list_is_used(following->residency) ? bring_expected(following, NULL) : CAPU_OK;
    if (status == CAPU_OK) {
        status = carry_out_before(following, following->guided->active->guide, op);
    }
    if (status == CAPU_OK) {
        op->stage = OP_PLANNED;
        return CAPU_OK;
    }
    return following->failure->lost != CAPU_OK ? following->failure->lost
                                               : leave_guide(following->residency);
}

capu_status executor_before_zero(struct following *following, const struct tensor *tensor)
{
    const struct record *record = following->records->tracker.open;

    /* No replay reads what the tensor held before the iteration. And if the plan knows of this
       zero, the ops that read the tensor before it are not replayed. */
    if (following->guided->active == NULL || record == NULL || !tensor_is_placed(tensor) ||
        tensor->in_record.stamp != record->stamp ||
        following->guided->binding.next <=
            following->guided->active->guide->tensors[tensor->guide_index].zeroed_op) {
        return CAPU_OK;
    }
    return leave_guide(following->residency);
}

capu_status executor_visit(struct following *following, const struct op *op)
{
    capu_status status = CAPU_OK;
    bool is_served = true;

    for (size_t i = 0; i < op->access_count && status == CAPU_OK; i++) {
        const struct tensor *tensor = op->accesses[i].tensor;

        if (tensor_is_placed(tensor) && free_list_is_used(following->residency) &&
            free_list_is_expected(following->residency, tensor)) {
            status = bring_expected(following, tensor);
        }
        is_served = is_served && (!tensor_is_placed(tensor) || tensor_is_mapped(tensor));
    }
    if (status == CAPU_OK && is_served) {
        return CAPU_OK;
    }
    return following->failure->lost != CAPU_OK ? following->failure->lost
                                               : leave_guide(following->residency);
}

bool executor_is_followed(const struct following *following)
{
    return following->guided->active->guide->is_unplaced ||
           following->guided->active->guide->ops[following->guided->binding.next].is_followed;
}

void executor_note_run(struct following *following, struct bound_op bound)
{
    following->guided->binding.ops[following->guided->binding.next] = bound;
}

capu_status executor_end(struct following *following, const struct op *op)
{
    const struct guide *guide = following->guided->active->guide;
    const struct guide_op *planned = &guide->ops[following->guided->binding.next];
    capu_status status;

    ASSERT(following->guided->binding.next < guide->op_count);
    note_versions(following, planned, op);
    following->guided->binding.next++;
    status = carry_out_part(following, guide, planned->after);
    if (status == CAPU_OK) {
        return CAPU_OK;
    }
    /* The op is done: a failure of what the plan has after it costs the plan, not the op. */
    return following->failure->lost != CAPU_OK ? following->failure->lost
                                               : leave_guide(following->residency);
}

capu_status executor_finish(struct following *following)
{
    bool is_over = following->guided->active == NULL ||
                   (following->guided->binding.next == following->guided->active->guide->op_count &&
                    !recovery_must_begin(following));

    return is_over ? CAPU_OK : leave_guide(following->residency);
}

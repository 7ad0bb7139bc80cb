/*
 * Which tensors outlive their last access for the sake of replays.
 *
 * In networks like DenseNet one small input is read by many replayable ops with larger outputs. If
 * it were dropped after its last use in forward, each replay of those ops would have to make it
 * again, in a chain. Keeping it longer costs its bytes once and makes each chain a single op. A
 * tensor qualifies if at least two ops whose outputs are used later read it, and those outputs are
 * together more than twice as large. Linear in the accesses.
 */
#include "policy/extended_life.h"

bool extended_life_choose(const struct trace_index *trace_index, struct lower *lower,
                          uint32_t *extended_life)
{
    const struct trace *trace = trace_index->trace;
    bool has_any = false;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t last = trace_index->first[t + 1];
        uint64_t bytes = 0;
        uint32_t readers = 0;
        uint32_t until = 0;

        extended_life[t] = 0;
        if (trace->tensors[t].persistent || trace_index->rounded[t] == 0) {
            continue;
        }
        for (uint32_t slot = trace_index->first[t]; slot < last; slot++) {
            const struct trace_op *op = &trace->ops[trace_index->op[slot]];
            uint64_t own = 0;

            for (uint32_t i = 0; trace_index->role[slot] == USE_READ && i < op->write_count; i++) {
                uint32_t w = trace_writes(trace, op)[i];
                uint32_t end_slot = trace_index->first[w + 1] - 1;

                if (op->replayable && trace_index->op[end_slot] > trace_index->op[last - 1] &&
                    trace_index->op[end_slot] > trace_index->op[slot] + 1 &&
                    end_slot > trace_index->first[w] && lower_can_drop(lower, end_slot - 1)) {
                    own += trace_index->rounded[w];
                    until = trace_index->op[end_slot] > until ? trace_index->op[end_slot] : until;
                }
            }
            readers += own > 0;
            bytes += own;
        }
        if (readers >= 2 && bytes > 2 * trace_index->rounded[t] &&
            until > trace_index->op[last - 1]) {
            extended_life[t] = until;
            has_any = true;
        }
    }
    return has_any;
}

/* Forward and backward, as far as a trace shows them. */
#include "policy/passes.h"

#include <string.h>
#include <strings.h>

uint32_t passes_idle_gap(const struct uses *uses, uint32_t tensor)
{
    uint32_t end = uses->first[tensor + 1];

    if (uses->rounded[tensor] == 0 || uses->trace->tensors[tensor].persistent) {
        return USES_NONE;
    }
    for (uint32_t gap = uses->first[tensor]; gap + 1 < end; gap++) {
        if (uses->op[gap] <= uses->peak_op && uses->op[gap + 1] > uses->peak_op) {
            return uses->role[gap + 1] != USE_WRITE ? gap : USES_NONE;
        }
    }
    return USES_NONE;
}

bool passes_has_weights(const struct trace *trace, uint32_t op)
{
    const struct trace_op *entry = &trace->ops[op];

    for (uint32_t i = 0; i < entry->read_count; i++) {
        if (trace->tensors[trace_reads(trace, entry)[i]].kind == TENSOR_PARAMETER) {
            return true;
        }
    }
    return false;
}

static bool is_named_product(const char *name)
{
    static const char *const words[] = {"conv",   "matmul", "gemm",    "linear",
                                        "einsum", "flash",  "attn.qk", "attn.pv"};
    const char *slash = strrchr(name, '/');

    name = slash != NULL ? slash + 1 : name;
    for (; *name != '\0'; name++) {
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (strncasecmp(name, words[i], strlen(words[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool passes_is_product(const struct trace *trace, uint32_t op, uint64_t mean_bytes)
{
    const struct trace_op *entry = &trace->ops[op];

    for (uint32_t i = 0; i < entry->read_count; i++) {
        const struct trace_tensor *tensor = &trace->tensors[trace_reads(trace, entry)[i]];

        if (tensor->kind == TENSOR_PARAMETER && tensor->bytes >= mean_bytes / 16) {
            return true;
        }
    }
    return is_named_product(trace_op_name(trace, op));
}

uint64_t passes_mean_parameter(const struct trace *trace)
{
    uint64_t bytes = 0;
    uint64_t count = 0;

    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        if (trace->tensors[t].kind == TENSOR_PARAMETER) {
            bytes += trace->tensors[t].bytes;
            count++;
        }
    }
    return count > 0 ? bytes / count : 0;
}

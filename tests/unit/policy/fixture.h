/* Hand-made traces and plans from text, for the tests of this folder. */
#ifndef CAPU_TESTS_UNIT_POLICY_FIXTURE_H
#define CAPU_TESTS_UNIT_POLICY_FIXTURE_H

#include "policy/format/plan.h"
#include "policy/format/trace.h"
#include "policy/model/trace_index.h"

#include "tests/support/suite.h"

#include <string.h>

#define TRACE_LINE "{\"type\":\"trace\",\"version\":1,\"name\":\"t\"}\n"
/* One byte per nanosecond, 10 ns per copy. */
#define MACHINE_LINE                                                                   \
    "{\"type\":\"machine\",\"name\":\"m\",\"memory_bytes\":10000,\"d2h_bytes_per_s\":" \
    "1000000000,\"h2d_bytes_per_s\":1000000000,\"copy_latency_ns\":10}\n"
#define TENSOR_LINE(id, name, bytes, kind)                                        \
    "{\"type\":\"tensor\",\"id\":" #id ",\"name\":\"" name "\",\"bytes\":" #bytes \
    ",\"kind\":\"" kind "\"}\n"
#define OP_LINE(name, ns, reads, writes, updates, replayable)                                      \
    "{\"type\":\"op\",\"name\":\"" name "\",\"ns\":" #ns ",\"reads\":" reads ",\"writes\":" writes \
    ",\"updates\":" updates ",\"replayable\":" replayable "}\n"
#define END_LINE(tensors, ops) "{\"type\":\"end\",\"tensors\":" #tensors ",\"ops\":" #ops "}\n"
#define PLAN_LINE(budget, rest) \
    "{\"type\":\"plan\",\"version\":1,\"trace\":\"t\",\"budget_bytes\":" #budget rest "}\n"
#define AFTER(kind, tensor, op) "{\"type\":\"" kind "\",\"tensor\":" #tensor ",\"after\":" #op "}\n"
#define PREFETCH(tensor, op) "{\"type\":\"prefetch\",\"tensor\":" #tensor ",\"before\":" #op "}\n"
#define RECOMPUTE(op, replays) \
    "{\"type\":\"recompute\",\"before\":" #op ",\"replays\":[" replays "]}\n"
#define REPLAY(op, drops) "{\"op\":" #op ",\"drop\":" drops "}"

static inline void read_trace(struct trace *trace, const char *text)
{
    struct error_text error = {""};

    ck_assert_msg(trace_read(trace, "trace", text, strlen(text), &error) == CAPU_OK, "%s",
                  error.text);
}

static inline void read_plan(struct plan *plan, const char *text)
{
    struct error_text error = {""};

    ck_assert_msg(plan_read(plan, "plan", text, strlen(text), &error) == CAPU_OK, "%s", error.text);
}

/*
 * x is made from w by op 0 and used by ops 1 and 3; z and y are as large; g is small. With
 * everything kept: 3100 bytes at op 2. The largest op is the last: 2050 bytes.
 */
#define CHAIN_TRACE                                                                     \
    TRACE_LINE MACHINE_LINE TENSOR_LINE(0, "w", 100, "parameter")                       \
        TENSOR_LINE(1, "x", 1000, "activation") TENSOR_LINE(2, "y", 1000, "activation") \
            TENSOR_LINE(3, "z", 1000, "activation") TENSOR_LINE(4, "g", 50, "gradient") \
                OP_LINE("f0", 2000, "[0]", "[1]", "[]", "true")                         \
                    OP_LINE("f1", 2000, "[1]", "[2]", "[]", "true")                     \
                        OP_LINE("f2", 3000, "[2]", "[3]", "[]", "true")                 \
                            OP_LINE("b0", 2000, "[1,3]", "[4]", "[]", "false") END_LINE(5, 4)

#endif

/*
 * How much host memory is resident for what is evicted: tensors of one size and of mixed sizes are
 * updated in turn under a device budget of an eighth of them, so that most of them are in host
 * memory, in passive and in guided mode, on the host device. Device memory there is shared memory,
 * so the anonymous memory of the process that is resident, less what was resident before the first
 * eviction, is host memory for evicted tensors, records and plans. It is compared with what the
 * report says is taken (host_bytes), and with the bytes of the tensors that are out.
 */
#include "bench/runtime/bench.h"
#include "tools/output/progress.h"

#include "runtime/api/context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { TENSORS = 1000, ITERATIONS = 6, PAGE = 1 << 16, OPERANDS = 2 };

static capu_status touch(capu_stream stream, const void *arguments)
{
    unsigned char *const *tensor = arguments;

    (void)stream;
    (**tensor)++;
    return CAPU_OK;
}

/* 256 KiB each, or from 64 KiB to 1 MiB. */
static uint64_t draw_bytes(bool is_mixed, uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return !is_mixed ? 4 * PAGE : (uint64_t)PAGE << (*random >> 33) % 5;
}

struct loop {
    capu_context *context;
    void *tensors[TENSORS];
    uint64_t bytes;
};

static void start(struct loop *loop, bool is_mixed, uint32_t mode)
{
    capu_config config = CAPU_CONFIG_INIT;
    uint64_t sizes[TENSORS];
    uint64_t random = 3;
    char text[256] = "";

    loop->bytes = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        sizes[i] = draw_bytes(is_mixed, &random);
        loop->bytes += sizes[i];
    }
    config.device = "host";
    config.mode = mode;
    config.budget_bytes = loop->bytes / 8;
    config.page_bytes = PAGE;
    config.wait_for_plan = 1;
    config.error = text;
    config.error_bytes = sizeof(text);
    if (capu_context_create(&config, &loop->context) != CAPU_OK) {
        fprintf(stderr, "context: %s\n", text);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < TENSORS; i++) {
        BENCH_OK(loop->context, capu_malloc(loop->context, sizes[i], &loop->tensors[i]));
    }
}

static void iterate(struct loop *loop, bool is_first)
{
    BENCH_OK(loop->context, capu_iteration_begin(loop->context, "train"));
    for (size_t i = 0; i < TENSORS; i++) {
        capu_operand operands[OPERANDS] = {is_first ? capu_writes(loop->tensors[i])
                                                    : capu_updates(loop->tensors[i]),
                                           capu_reads(loop->tensors[i > 0 ? i - 1 : 0])};
        capu_op op = {.size = sizeof(op),
                      .name = "touch",
                      .run = touch,
                      .arguments = &loop->tensors[i],
                      .argument_bytes = sizeof(loop->tensors[i]),
                      .operands = operands,
                      .operand_count = i > 0 ? OPERANDS : 1};

        BENCH_OK(loop->context, capu_run(loop->context, &op));
    }
    BENCH_OK(loop->context, capu_iteration_end(loop->context));
    BENCH_OK(loop->context, capu_synchronize(loop->context));
}

static void measure(bool is_mixed, uint32_t mode, bool wants_json)
{
    static const char *const modes[] = {"", "off", "passive", "guided"};
    const char *sizes = is_mixed ? "mixed" : "equal";
    uint64_t host_bytes;
    uint64_t before;
    uint64_t resident;
    uint64_t stored;
    struct loop loop;

    start(&loop, is_mixed, mode);
    before = bench_resident_bytes();
    for (size_t i = 0; i < ITERATIONS; i++) {
        iterate(&loop, i == 0);
    }
    host_bytes = bench_report(loop.context).host_bytes;
    stored = host_arena_used_bytes(loop.context->memory.arena);
    resident = bench_resident_bytes() - before;
    bench_expect(stored >= loop.bytes / 2, "most tensors are in host memory");
    progress_clear();
    printf(wants_json
               ? "{\"bench\":\"host\",\"sizes\":\"%s\",\"mode\":\"%s\",\"stored_bytes\":%" PRIu64
                 ",\"host_bytes\":%" PRIu64 ",\"resident_bytes\":%" PRIu64
                 ",\"resident_per_host\":%.3f,\"host_per_stored\":%.3f}\n"
               : "%-6s %-8s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %8.3f %8.3f\n",
           sizes, modes[mode], wants_json ? stored : stored >> 10,
           wants_json ? host_bytes : host_bytes >> 10, wants_json ? resident : resident >> 10,
           (double)resident / (double)host_bytes, (double)host_bytes / (double)stored);
    capu_context_destroy(loop.context);
}

int main(int count, char **arguments)
{
    bool wants_json = bench_wants_json(
        count, arguments, "bench_host [--json]: host memory that is resident, taken and used\n");

    if (!wants_json) {
        printf("KiB of host memory for evicted tensors, %d tensors\n%-6s %-8s %10s %10s %10s %8s "
               "%8s\n",
               TENSORS, "sizes", "mode", "stored", "reported", "resident", "res/rep", "rep/sto");
    }
    progress_begin("measuring", 4, 0.0);
    for (uint32_t i = 0; i < 4 && !progress_should_stop(NULL); i++) {
        measure(i % 2 == 1, i < 2 ? CAPU_MODE_PASSIVE : CAPU_MODE_GUIDED, wants_json);
        progress_step();
    }
    return progress_end() ? EXIT_STOPPED : EXIT_SUCCESS;
}

/*
 * The report: written when the process exits, to the file that `capuchin run --report` names. No
 * call of CUDA or of the library that could wait; a process that is ended otherwise leaves none.
 */
#include "shim/core/alloc.h"
#include "shim/core/code.h"
#include "shim/core/core.h"
#include "shim/core/cut.h"
#include "shim/core/floor.h"
#include "shim/core/iteration.h"
#include "shim/core/outside.h"
#include "shim/driver/log.h"
#include "shim/driver/settings.h"
#include "shim/driver/symbol.h"
#include "shim/graph/graph.h"
#include "shim/launch/launch.h"
#include "shim/launch/reach.h"

#include "base/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How many allocations are listed at most. */
enum { MOST_MOVED = 10 };

/* Names of kernels are any bytes: a line break in one would forge a line of the report. */
static void write_named(FILE *file, const char *before, const char *name)
{
    fputs(before, file);
    printable_print(file, name);
}

/* How a kernel's operands were found. */
static void write_slice(FILE *file, const struct code_kernel *kernel)
{
    struct reach_summary summary;
    const char *reason;

    if (!reach_summarise(kernel, &summary)) {
        return;
    }
    write_named(file, "slice of ", kernel->name);
    if (summary.reason != NULL) {
        write_named(file, ": none: ", summary.reason);
        fputc('\n', file);
        return;
    }
    fprintf(file, ": launched %" PRIu64 " times, not needed for %" PRIu64 " launches",
            summary.run_count, summary.repeat_count);
    if (summary.whole_count > 0) {
        fprintf(file, ", without results for %" PRIu64, summary.whole_count);
    }
    if (summary.read_count > 0) {
        fprintf(file, ", indices read for %" PRIu64, summary.read_count);
    }
    if (summary.written_bytes > 0) {
        fprintf(file, ", %" PRIu64 " bytes written as a whole", summary.written_bytes);
    }
    for (size_t i = 0; i < kernel->roles->word_count; i++) {
        reason = reach_whole_reason(kernel, i);
        if (reason != NULL) {
            fprintf(file, "; parameter %" PRIu32, kernel->roles->words[i].parameter);
            if (kernel->roles->words[i].offset != 0 && kernel->roles->words[i].offset != PTX_NONE) {
                fprintf(file, "+%" PRIu32, kernel->roles->words[i].offset);
            }
            fprintf(file, " as whole allocations: %s", reason);
        }
    }
    fputc('\n', file);
}

static void write_slices(FILE *file)
{
    struct reach_summary all = {0};
    unsigned loaded = 0;

    for (const struct code_kernel *kernel = code_kernels(); kernel != NULL; kernel = kernel->next) {
        struct reach_summary one;

        if (reach_summarise(kernel, &one)) {
            all.run_count += one.run_count;
            all.repeat_count += one.repeat_count;
            loaded += one.is_loaded;
        }
    }
    fprintf(file,
            "slices: launched %" PRIu64 " times, not needed for %" PRIu64
            " launches, %u loaded at the end\n",
            all.run_count, all.repeat_count, loaded);
}

static void write_kernels(FILE *file)
{
    uint64_t closed = 0;
    uint64_t open = 0;

    for (const struct code_kernel *kernel = code_kernels(); kernel != NULL; kernel = kernel->next) {
        *(kernel->reason == NULL ? &closed : &open) += kernel->launch_count;
    }
    fprintf(file, "launches: %" PRIu64 " of closed kernels, %" PRIu64 " of open ones\n", closed,
            open);
    write_slices(file);
    for (const struct code_kernel *kernel = code_kernels(); kernel != NULL; kernel = kernel->next) {
        if (kernel->launch_count + kernel->failed_count > 0) {
            write_named(file, "kernel ", kernel->name);
            write_named(file, kernel->reason == NULL ? ": closed" : ": open: ",
                        kernel->reason == NULL ? "" : kernel->reason);
            fprintf(file,
                    "%s, %" PRIu64 " launches, at most %" PRIu64 " bytes of operands, %" PRIu64
                    " launches failed\n",
                    kernel->is_trusted ? " (its parameters are trusted)" : "", kernel->launch_count,
                    kernel->most_bytes, kernel->failed_count);
            write_slice(file, kernel);
        }
    }
}

static void write_repeated(FILE *file)
{
    uint64_t kept = 0;
    uint64_t repeated = 0;

    if (!settings_get()->recomputes) {
        return;
    }
    for (const struct code_kernel *kernel = code_kernels(); kernel != NULL; kernel = kernel->next) {
        uint64_t count = __atomic_load_n(&kernel->repeat_count, __ATOMIC_RELAXED);

        kept += kernel->kept_count;
        repeated += count;
        if (kernel->kept_count > 0) {
            write_named(file, "repeatable ", kernel->name);
            fprintf(file, ": %" PRIu64 " launches, repeated %" PRIu64 " times\n",
                    kernel->kept_count, count);
        }
    }
    fprintf(file, "repeatable launches: %" PRIu64 ", repeated %" PRIu64 " times\n", kept, repeated);
}

static void write_graphs(FILE *file)
{
    for (const struct graph *graph = graph_list(); graph != NULL; graph = graph->next) {
        fprintf(file,
                "%s: %" PRIu64 " launches, at most %" PRIu64 " bytes of operands, %" PRIu64
                " launches failed\n",
                graph->name, graph->launch_count, graph->most_bytes, graph->failed_count);
    }
}

static void write_memory(FILE *file, const capu_context *context)
{
    uint64_t held = 0;
    uint64_t peak = 0;
    uint64_t host = 0;

    capu_memory_usage(context, &held, &peak, &host);
    fprintf(file, "budget: %" PRIu64 " bytes of device memory\n", core_full_budget());
    fprintf(file, "peak: %" PRIu64 " bytes of device memory\n", peak);
    fprintf(file, "floor: %" PRIu64 " bytes of device memory\n",
            floor_bytes(context, cut_edge_bytes()) + outside_needed_bytes());
    fprintf(file,
            "taken by others: %" PRIu64 " bytes of device memory at the end, at most %" PRIu64 "\n",
            outside_bytes(), outside_peak_bytes());
    if (outside_reserved_bytes() > 0) {
        fprintf(file, "reserved for libraries: %" PRIu64 " bytes of device memory at the end\n",
                outside_reserved_bytes());
    }
    fprintf(file, "host memory: %" PRIu64 " bytes\n", host);
    fprintf(file, "allocations at the end: %" PRIu64 " bytes, at most %" PRIu64 "\n", alloc_bytes(),
            alloc_peak_bytes());
}

static void write_traffic(FILE *file, capu_context *context)
{
    capu_traffic traffic = {.size = sizeof(traffic)};

    if (capu_traffic_get(context, &traffic) != CAPU_OK) {
        return;
    }
    fprintf(file, "copied to the host: %" PRIu64 " bytes in %" PRIu64 " copies\n",
            traffic.out_bytes, traffic.out_count);
    fprintf(file, "copied back: %" PRIu64 " bytes in %" PRIu64 " copies\n", traffic.back_bytes,
            traffic.back_count);
    fprintf(file,
            "evicted without a copy: %" PRIu64 " bytes with a valid copy, %" PRIu64
            " bytes without contents, %" PRIu64 " bytes to be recomputed\n",
            traffic.clean_bytes, traffic.empty_bytes, traffic.discarded_bytes);
    fprintf(file, "overwritten without being copied back: %" PRIu64 " bytes\n",
            traffic.overwritten_bytes);
    fprintf(file, "compute waited for memory: %" PRIu64 " ns\n", traffic.stall_ns);
    fprintf(file, "the program waited for evictions: %" PRIu64 " ns\n", traffic.host_wait_ns);
}

/* The allocations of which most was copied. */
static void write_moved(FILE *file, capu_context *context)
{
    size_t alive;
    const struct allocation *allocations;
    const struct moved *moved;
    size_t count;

    if (!core_try_lock()) {
        return; /* a thread that goes on may be changing them */
    }
    allocations = alloc_list(&alive);
    for (size_t i = 0; i < alive; i++) {
        alloc_note_moved(context, &allocations[i]);
    }
    count = alloc_sort_moved(&moved);
    for (size_t i = 0; i < count && i < MOST_MOVED; i++) {
        fprintf(file, "moved: allocation %" PRIu64 ": %" PRIu64 " bytes out, %" PRIu64 " back; ",
                moved[i].ordinal + 1, moved[i].out_bytes, moved[i].back_bytes);
        if (moved[i].count > 1) {
            fprintf(file, "%" PRIu64 " of them, at most ", moved[i].count);
        }
        fprintf(file, "%" PRIu64 " bytes, %sat 0x%" PRIx64 "\n", moved[i].bytes,
                moved[i].count > 1 ? "the last " : "", moved[i].address);
    }
    if (count > MOST_MOVED) {
        fprintf(file, "moved: %zu other allocations\n", count - MOST_MOVED);
    }
    core_unlock();
}

static void write_verified(FILE *file, const struct settings *settings)
{
    uint64_t watched;
    uint64_t failed;

    verify_figures(&watched, &failed);
    if (settings->is_strict && settings->mode != CAPU_MODE_GUIDED && !core_is_host()) {
        fprintf(file, "verified: %" PRIu64 " launches, %" PRIu64 " of them changed other memory\n",
                watched, failed);
    }
}

static void write_passed(FILE *file)
{
    struct passed passed;

    for (size_t i = 0; outside_call(i, &passed); i++) {
        fprintf(file, "passed through: %s: %" PRIu64 " calls, %" PRIu64 " bytes in all\n",
                passed.name, passed.call_count, passed.bytes);
    }
}

static const char *anchor_text(enum period_anchor anchor)
{
    switch (anchor) {
    case PERIOD_BY_COPY:
        return "a copy from the host";
    case PERIOD_BY_WAIT:
        return "what follows the longest wait";
    case PERIOD_BY_PLACE:
        return "one that occurs once";
    default:
        return settings_get()->iteration_range != NULL ? "as --iteration-range says"
                                                       : "as --iteration-kernel says";
    }
}

static void write_iterations(FILE *file, const capu_context *context)
{
    struct iteration_figures figures;

    if (capu_context_config(context)->mode != CAPU_MODE_GUIDED) {
        return;
    }
    figures = iteration_figures();
    fprintf(file, "iterations: %" PRIu64 "\n", figures.count);
    if (figures.state.anchor == PERIOD_NONE) {
        fprintf(file, "no period was found\n");
        return;
    }
    fprintf(file, "period: %zu calls", figures.state.events);
    write_named(file, ", begun by ", figures.name != NULL ? figures.name : "none");
    fprintf(file, " (%s), found %" PRIu64 " times, %" PRIu64 " pauses\n",
            anchor_text(figures.state.anchor), figures.state.found_count,
            figures.state.pause_count);
    fprintf(file, "guided iterations: %" PRIu64 ", %" PRIu64 " of them by a plan without places\n",
            figures.guided_count, figures.unplaced_count);
    fprintf(file, "iterations that left their plan: %" PRIu64 "\n", figures.diverged_count);
    fprintf(file, "iterations without a plan: %" PRIu64 "\n", figures.unplanned_count);
    fprintf(file, "stalls: %" PRIu64 " ns in the %" PRIu64 " iterations that were timed\n",
            figures.stall_ns, figures.timed_count);
}

static void write_report(const struct settings *settings)
{
    FILE *file = fopen(settings->report_path, "we");
    bool is_written;

    if (file == NULL) {
        log_line("the report %s cannot be written: %s", settings->report_path, strerror(errno));
        return;
    }
    if (core_context() != NULL) {
        write_memory(file, core_context());
        write_traffic(file, core_context());
        write_moved(file, core_context());
        write_iterations(file, core_context());
    }
    write_kernels(file);
    write_repeated(file);
    write_verified(file, settings);
    write_graphs(file);
    write_passed(file);
    for (size_t i = 0; symbol_refused(i) != NULL; i++) {
        fprintf(file, "refused: %s\n", symbol_refused(i));
    }
    fprintf(file, "not carried out: %" PRIu64 " launches, copies and memsets\n", core_undone());
    is_written = ferror(file) == 0;
    if (fclose(file) != 0 || !is_written) {
        log_line("the report %s cannot be written: %s", settings->report_path, strerror(errno));
    }
}

__attribute__((destructor)) static void report_at_exit(void)
{
    const struct settings *settings = settings_get();

    /* A process that has managed nothing has nothing to report, but for what was refused. */
    if ((core_context() == NULL && symbol_refused(0) == NULL) ||
        !core_takes(CALLER_PROGRAM, false)) {
        return;
    }
    /* Waits for the thread that writes the file, and for no work of the device. */
    if (settings->iterations_path != NULL && core_context() != NULL &&
        capu_flush(core_context()) != CAPU_OK) {
        log_line("--iterations: %s", capu_last_error(core_context()));
    }
    if (settings->report_path != NULL) {
        write_report(settings);
    }
    if (core_undone() > 0) {
        log_line("launches, copies or memsets not carried out: %" PRIu64
                 ", see the lines above; if "
                 "the program has not handled these errors, its results are wrong",
                 core_undone());
    }
}

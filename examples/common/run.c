/* The context of a training run, its budget and its summary. */
#include "examples/common/run.h"

#include "examples/common/try.h"

#include "kernels/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_BYTES 512

/* Asking for the page size needs a context, and a context a budget. Nothing is allocated from it,
   and nothing copied. */
#define PROBE_BUDGET_BYTES (UINT64_C(64) << 20)
#define PROBE_RATE "1e9"

/* What a dry run finds out. */
struct footprint {
    uint64_t live_peak_bytes;
    uint64_t floor_bytes;
    char floor_op[128];
};

const char *run_size_text(uint64_t bytes, char text[RUN_SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024.0;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(text, RUN_SIZE_TEXT, "%" PRIu64 " B", bytes);
        return text;
    }
    while (value >= 1024.0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024.0;
        unit++;
    }
    snprintf(text, RUN_SIZE_TEXT, "%.1f %s", value, units[unit]);
    return text;
}

/* Reports a failed call. `detail` is the error text of the context, or of its creation. */
static void say(const char *what, capu_status status, const char *detail)
{
    fprintf(stderr, "%s: %s: %s%s%s\n", program_invocation_short_name, what,
            capu_status_text(status), *detail != '\0' ? ": " : "", detail);
}

/* The same for an op, which may lack a library that the context knows nothing of. */
static void say_why(const char *what, capu_status status, capu_context *context)
{
    char reason[ERROR_BYTES] = "";

    if (status == CAPU_UNSUPPORTED || status == CAPU_INVALID) {
        launch_reason(context, reason, sizeof(reason));
    }
    say(what, status, *reason != '\0' ? reason : capu_last_error(context));
}

static capu_status create(const capu_config *wanted, capu_context **context)
{
    char error[ERROR_BYTES] = "";
    capu_config config = *wanted;
    capu_status status;

    config.error = error;
    config.error_bytes = sizeof(error);
    status = capu_context_create(&config, context);
    if (status != CAPU_OK) {
        say("cannot open the device", status, error);
    }
    return status;
}

/* The page size that the device of the run has with this budget: the dry run must round sizes to
   the same pages. It stays as it is if the device has less memory. */
static capu_status find_page_bytes(const struct options *options, uint64_t budget_bytes,
                                   uint64_t *page_bytes)
{
    char error[ERROR_BYTES] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    capu_status status;

    config.device = options->device;
    config.mode = CAPU_MODE_PASSIVE;
    config.budget_bytes = budget_bytes;
    /* Rates that are given are not measured. */
    (void)capu_config_set(&config, "d2h", PROBE_RATE);
    (void)capu_config_set(&config, "h2d", PROBE_RATE);
    (void)capu_config_set(&config, "copy_latency", "1");
    config.error = error;
    config.error_bytes = sizeof(error);
    status = capu_context_create(&config, &context);
    if (status == CAPU_OVER_BUDGET && *page_bytes != 0) {
        return CAPU_OK;
    }
    if (status != CAPU_OK) {
        say("cannot open the device", status, error);
        return status;
    }
    *page_bytes = capu_context_config(context)->page_bytes;
    capu_context_destroy(context);
    return CAPU_OK;
}

static capu_status read_footprint(capu_context *context, struct footprint *footprint)
{
    capu_report report = CAPU_REPORT_INIT;

    TRY(capu_synchronize(context));
    TRY(capu_report_get(context, &report));
    footprint->live_peak_bytes = report.live_peak_bytes;
    footprint->floor_bytes = report.floor_bytes;
    snprintf(footprint->floor_op, sizeof(footprint->floor_op), "%s", report.floor_op);
    return CAPU_OK;
}

/* Finds out what a run in pages of this size needs. */
static capu_status dry_run_in(uint64_t page_bytes, run_dry_function dry, void *argument,
                              struct footprint *footprint)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    capu_status status;

    config.device = "sim";
    config.mode = CAPU_MODE_PASSIVE;
    config.page_bytes = page_bytes;
    TRY(create(&config, &context));
    status = dry(context, argument);
    if (status == CAPU_OK) {
        status = read_footprint(context, footprint);
    }
    if (status != CAPU_OK) {
        say("the dry run failed", status, capu_last_error(context));
    }
    capu_context_destroy(context);
    return status;
}

/* The page depends on the budget. Unless that is known, it is the one that a budget of what the run
   needs would have. That grows with the page, so the search begins with small ones. */
static capu_status dry_run(const struct options *options, run_dry_function dry, void *argument,
                           struct footprint *footprint)
{
    bool is_known = options->budget_kind == BUDGET_BYTES;
    uint64_t next_bytes = 0;
    uint64_t page_bytes;

    TRY(find_page_bytes(options, PROBE_BUDGET_BYTES, &next_bytes));
    if (is_known) {
        TRY(find_page_bytes(options, options->budget_bytes, &next_bytes));
    }
    do {
        page_bytes = next_bytes;
        TRY(dry_run_in(page_bytes, dry, argument, footprint));
        if (!is_known) {
            TRY(find_page_bytes(options, footprint->live_peak_bytes, &next_bytes));
        }
    } while (next_bytes > page_bytes);
    return CAPU_OK;
}

/* Rejects a budget in which the run cannot work, and reports why. */
static bool is_feasible(const struct run *run, const struct footprint *footprint)
{
    char budget[RUN_SIZE_TEXT];
    char floor[RUN_SIZE_TEXT];

    if (run->options->mode == CAPU_MODE_OFF && run->budget_bytes < footprint->live_peak_bytes) {
        fprintf(stderr, "%s: a budget of %s is below the %s that this run needs with --mode off\n",
                program_invocation_short_name, run_size_text(run->budget_bytes, budget),
                run_size_text(footprint->live_peak_bytes, floor));
        return false;
    }
    if (run->budget_bytes >= footprint->floor_bytes) {
        return true;
    }
    if (footprint->floor_op[0] == '\0') {
        fprintf(stderr,
                "%s: a budget of %s (%" PRIu64 " bytes) is below the %s (%" PRIu64
                " bytes) that are always resident; smaller pages reduce that\n",
                program_invocation_short_name, run_size_text(run->budget_bytes, budget),
                run->budget_bytes, run_size_text(footprint->floor_bytes, floor),
                footprint->floor_bytes);
        return false;
    }
    fprintf(stderr,
            "%s: a budget of %s (%" PRIu64 " bytes) is below the floor of %s (%" PRIu64
            " bytes), set by the op %s\n",
            program_invocation_short_name, run_size_text(run->budget_bytes, budget),
            run->budget_bytes, run_size_text(footprint->floor_bytes, floor), footprint->floor_bytes,
            footprint->floor_op);
    return false;
}

static bool resolve_budget(struct run *run, run_dry_function dry, void *argument)
{
    const struct options *options = run->options;
    struct footprint footprint = {0};

    if (dry_run(options, dry, argument, &footprint) != CAPU_OK) {
        return false;
    }
    run->live_peak_bytes = footprint.live_peak_bytes;
    if (options->budget_kind == BUDGET_NONE) {
        return true;
    }
    run->budget_bytes = options->budget_bytes;
    if (options->budget_kind == BUDGET_PERCENT) {
        /* Dividing first avoids overflow and loses less than 100 bytes. */
        run->budget_bytes = footprint.live_peak_bytes / 100 * options->budget_percent;
    }
    return is_feasible(run, &footprint);
}

/* --budget overrides it; the context reports the budget that is in effect. */
static bool has_budget_in_environment(void)
{
    const char *text = getenv("CAPUCHIN_BUDGET");

    return text != NULL && text[0] != '\0';
}

static bool has_peers(const struct run *run)
{
    return run->peers != NULL && run->peers->count > 1;
}

bool run_agree(const struct run_peers *peers, bool is_fine)
{
    return peers != NULL && peers->count > 1 ? peers->agree(is_fine) : is_fine;
}

/* Begins a line of this process. */
static void print_rank(const struct run *run)
{
    if (has_peers(run)) {
        printf("rank %" PRIu32 ": ", run->peers->rank);
    }
}

/* Adds what the others imply. */
static capu_status configure(const struct run *run, capu_config *config)
{
    char error[ERROR_BYTES] = "";
    capu_status status;

    if (run->peers == NULL || run->peers->configure == NULL) {
        return CAPU_OK;
    }
    config->error = error;
    config->error_bytes = sizeof(error);
    status = run->peers->configure(config);
    if (status != CAPU_OK) {
        say("cannot prepare for the other processes", status, error);
    }
    return status;
}

static bool create_for(struct run *run)
{
    const struct options *options = run->options;
    capu_config config = CAPU_CONFIG_INIT;

    config.device = options->device;
    config.mode = options->mode;
    config.strict = options->is_strict;
    config.budget_bytes = run->budget_bytes;
    config.report_path = options->report;
    config.trace_path = options->trace;
    (void)capu_config_set(&config, "planner", options->planner);
    (void)capu_config_set(&config, "effort", options->effort);
    config.wait_for_plan = options->waits_for_plan;
    (void)capu_config_set(&config, "plan", options->plan);
    if (configure(run, &config) != CAPU_OK) {
        return false;
    }
    return run_agree(run->peers, create(&config, &run->context) == CAPU_OK);
}

bool run_open(struct run *run, const struct options *options, const struct run_peers *peers,
              run_dry_function dry, void *argument)
{
    char budget[RUN_SIZE_TEXT];
    char peak[RUN_SIZE_TEXT];

    *run = (struct run){.options = options, .peers = peers};
    if (!run_agree(run->peers, resolve_budget(run, dry, argument)) || !create_for(run)) {
        capu_context_destroy(run->context);
        return false;
    }
    if (has_budget_in_environment()) {
        run->budget_bytes = capu_context_config(run->context)->budget_bytes;
    }
    print_rank(run);
    if (run->budget_bytes == 0) {
        printf("device %s, no budget; this run needs %s\n", capu_context_device(run->context),
               run_size_text(run->live_peak_bytes, peak));
    } else {
        printf("device %s, budget %s of the %s that this run needs without a limit\n",
               capu_context_device(run->context), run_size_text(run->budget_bytes, budget),
               run_size_text(run->live_peak_bytes, peak));
    }
    return true;
}

capu_status run_print_report(struct run *run)
{
    capu_report report = CAPU_REPORT_INIT;
    capu_status status;

    TRY(capu_synchronize(run->context));
    status = capu_report_get(run->context, &report);
    if (status == CAPU_UNSUPPORTED) {
        return CAPU_OK; /* the mode off keeps no records */
    }
    TRY(status);
    return report.eviction_count > 0 ? capu_report_print(&report, stdout) : CAPU_OK;
}

static void print_peak(const struct run *run)
{
    uint64_t bytes = 0;
    char peak[RUN_SIZE_TEXT];
    char budget[RUN_SIZE_TEXT];

    capu_memory_usage(run->context, NULL, &bytes, NULL);
    print_rank(run);
    if (run->budget_bytes == 0) {
        /* Without a limit the library never has to release memory that it could reuse. */
        printf("peak memory %s, no budget\n", run_size_text(bytes, peak));
        return;
    }
    printf("peak memory %s of a budget of %s (%.1f %%)\n", run_size_text(bytes, peak),
           run_size_text(run->budget_bytes, budget),
           100.0 * (double)bytes / (double)run->budget_bytes);
}

int run_close(struct run *run, capu_status status)
{
    if (status == CAPU_OK) {
        status = capu_synchronize(run->context);
    }
    if (status != CAPU_OK) {
        fflush(stdout);
        say_why("training failed", status, run->context);
        if (status == CAPU_OVER_BUDGET) {
            capu_memory_print(run->context, stderr);
        }
    } else {
        print_peak(run);
        status = capu_flush(run->context);
        if (status != CAPU_OK) {
            say("cannot write the report or the trace", status, capu_last_error(run->context));
        }
    }
    capu_context_destroy(run->context);
    run->context = NULL;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return OPTIONS_EXIT_FAILED;
    }
    return status == CAPU_OK ? OPTIONS_EXIT_OK : OPTIONS_EXIT_FAILED;
}

/* Contexts for tests, see rig.h. */
#include "tests/support/rig.h"

#include "capuchin/private.h"
#include "runtime/context/config.h"
#include "tests/support/adaptor_count.h"
#include "tests/support/adaptor_delay.h"
#include "tests/support/adaptor_fault.h"
#include "tests/support/mixing.h"

#include <check.h>
#include <string.h>

enum { DEFAULT_BUDGET_PAGES = 1024, LONGEST_DELAY_NS = 200000 };

/* The delays for a seed: either some of all work, or most copies in one direction. The latter makes
   anything that should wait for such a copy, but does not, overtake it. */
static struct adaptor_delay_plan delays(uint64_t seed)
{
    static const struct adaptor_delay_plan kinds[] = {
        {.longest_ns = LONGEST_DELAY_NS, .one_in = 8},
        {.longest_ns = 4 * LONGEST_DELAY_NS, .one_in = 2, .slots = 1 << ADAPTOR_COPY_IN},
        {.longest_ns = 4 * LONGEST_DELAY_NS, .one_in = 2, .slots = 1 << ADAPTOR_COPY_OUT},
    };
    size_t kind = seed % (sizeof(kinds) / sizeof(kinds[0]));
    struct adaptor_delay_plan plan = kinds[kind];

    plan.seed = seed;
    /* Delays begin late, after the runtime has measured fast links and made plans for them: that
       reveals the most mistakes. */
    plan.quiet = kind > 0 ? 64 : 0;
    return plan;
}

_Thread_local size_t (*rig_ranges)(const struct device_work *work,
                                   struct adaptor_order_range *ranges, size_t most);

/* What an op of the tests touches, for the check of its order. */
static size_t ranges_of(const struct device_work *work, struct adaptor_order_range *ranges,
                        size_t most)
{
    const struct mixing *mixing = work->arguments;
    size_t count = 0;

    for (size_t i = 0; work->run == mixing_run && i < mixing->count && i < most; i++) {
        const struct mixing_operand *operand = &mixing->operands[i];

        ranges[count++] = (struct adaptor_order_range){.address = operand->address,
                                                       .bytes = operand->bytes,
                                                       .is_written = operand->role != CAPU_READ};
    }
    if (work->run != mixing_run && rig_ranges != NULL) {
        count = rig_ranges(work, ranges, most);
    }
    return count;
}

static struct device *check_order(struct device *device, bool is_late)
{
    const struct adaptor_order_plan plan = {.ranges = ranges_of, .is_late = is_late};

    ck_assert_int_eq(adaptor_order_create(device, &plan, &device), CAPU_OK);
    return device;
}

static struct device *create_device(const struct rig_options *options, uint64_t budget)
{
    struct device_options device = {.memory_bytes = budget,
                                    .page_bytes = RIG_PAGE,
                                    .d2h_bytes_per_s = options->link_bytes_per_s,
                                    .h2d_bytes_per_s = options->link_bytes_per_s,
                                    .d2h_duplex_bytes_per_s = options->duplex_bytes_per_s,
                                    .h2d_duplex_bytes_per_s = options->duplex_bytes_per_s};
    struct device *created = NULL;
    char text[256] = "";
    capu_status status = options->is_sim ? sim_device_create(&device, &created, text, sizeof(text))
                                         : rig_device_create(&device, &created, text, sizeof(text));

    ck_assert_msg(status == CAPU_OK, "device: %s", text);
    if (options->hides_duplex) {
        created->capabilities.link.d2h_duplex_bytes_per_s = 0;
        created->capabilities.link.h2d_duplex_bytes_per_s = 0;
    }
    return created;
}

void rig_init(struct rig *rig, const struct rig_options *options)
{
    uint64_t pages = options->budget_pages > 0 ? options->budget_pages : DEFAULT_BUDGET_PAGES;
    capu_config config = CAPU_CONFIG_INIT;
    struct device *device = create_device(options, pages * RIG_PAGE);
    struct config complete;
    char text[512] = "";
    capu_status status;

    memset(rig, 0, sizeof(*rig));
    if (!options->any_order && !options->is_sim) {
        device = check_order(device, options->is_late);
        rig->order = device;
    }
    if (options->delay_seed != 0) {
        struct adaptor_delay_plan plan = delays(options->delay_seed);

        ck_assert_int_eq(adaptor_delay_create(device, &plan, &device), CAPU_OK);
    }
    if (options->has_faults) {
        ck_assert_int_eq(adaptor_fault_create(device, &device), CAPU_OK);
        rig->faults = device;
    }
    ck_assert_int_eq(adaptor_count_create(device, &device), CAPU_OK);
    rig->count = device;
    config.mode = options->mode;
    config.strict = options->strict;
    config_set_number(&config, "clear_fresh", options->clear_fresh);
    config.budget_bytes = pages * RIG_PAGE;
    config.host_budget_bytes =
        options->host_budget_bytes != 0 ? options->host_budget_bytes : UINT64_MAX;
    config.report_path = options->report_path;
    config.trace_path = options->trace_path;
    config_set_number(&config, "trace_iteration", options->trace_iteration);
    (void)capu_config_set(&config, "planner", options->planner);
    config.wait_for_plan = options->wait_for_plan;
    config_set_number(&config, "keep_contents", options->keep_contents);
    config_set_number(&config, "timeline", options->timeline);
    (void)capu_config_set(&config, "plan", options->plan_path);
    config_set_number(&config, "sample_every", options->sample_every);
    config_set_number(&config, "plan_memory", options->plan_memory_bytes);
    (void)capu_config_set(&config, "effort", "quick");
    status = config_resolve(&config, &complete, text, sizeof(text));
    ck_assert_msg(status == CAPU_OK, "config: %s", text);
    if (options->creation_fault != NULL) {
        adaptor_fault_arm(rig->faults, options->creation_fault);
    }
    status = context_create_on(device, &complete, &rig->context, text, sizeof(text));
    if (status != CAPU_OK && options->creation_fault != NULL) {
        ck_assert_int_gt(adaptor_fault_hits(rig->faults), 0);
        config_finish(&complete);
        device_destroy(device);
        rig->faults = NULL;
        rig->order = NULL;
        return;
    }
    ck_assert_msg(status == CAPU_OK, "context: %s: %s", capu_status_name(status), text);
    rig->context->plans.places_nothing = options->places_nothing;
}

uint64_t rig_pages(const struct rig *rig)
{
    struct adaptor_counts counts;

    adaptor_count_read(rig->count, &counts);
    return counts.pages_peak;
}

void rig_check(const struct rig *rig)
{
    const capu_config *config = capu_context_config(rig->context);
    struct adaptor_counts counts;
    const char *what = "";

    ck_assert_msg(context_validate(rig->context, &what), "the context is inconsistent: %s", what);
    if (rig->order != NULL) {
        const char *finding = adaptor_order_finding(rig->order);

        ck_assert_msg(finding == NULL, "wrong order: %s", finding);
    }
    adaptor_count_read(rig->count, &counts);
    ck_assert_uint_le(counts.pages_peak * RIG_PAGE, rig->context->settings.full_budget_bytes);
    ck_assert_uint_le(counts.pages * RIG_PAGE, config->budget_bytes);
    /* A placed plan maps pages more than once, and strict mode those of small tensors. */
    if (config->mode != CAPU_MODE_GUIDED && config->strict == 0) {
        ck_assert_uint_le(counts.mapped_bytes_peak, rig->context->settings.full_budget_bytes);
    }
}

struct report rig_report(const struct rig *rig)
{
    capu_report report = CAPU_REPORT_INIT;
    const struct report *whole;

    RIG_OK(rig, capu_report_get(rig->context, &report));
    whole = &rig->context->records.tracker.newest->report;
    ck_assert_uint_eq(report.mode, whole->mode);
    ck_assert_ptr_eq(report.evictions, whole->evictions);
    ck_assert_ptr_eq(report.stalls, whole->stalls);
#define SAME(name, unit, text) ck_assert_uint_eq(report.name, whole->name);
    CAPU_REPORT_COUNTERS(SAME)
#undef SAME
    return *whole;
}

void rig_finish(struct rig *rig)
{
    rig_check(rig);
    capu_context_destroy(rig->context);
    memset(rig, 0, sizeof(*rig));
}

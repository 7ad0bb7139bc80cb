/* Configs: the environment, its errors, and the drop-in calls. */
#include "tests/api/steps.h"

#include "capuchin/drop_in.h"
#include "capuchin/private.h"

static void clear_environment(void)
{
    static const char *const names[] = {"DEVICE",
                                        "MODE",
                                        "STRICT",
                                        "CLEAR_FRESH",
                                        "BUDGET",
                                        "HOST_BUDGET",
                                        "PAGE",
                                        "D2H",
                                        "H2D",
                                        "REPORT",
                                        "TRACE",
                                        "COPY_LATENCY",
                                        "TRACE_ITERATION",
                                        "RANK",
                                        "RANKS",
                                        "LOCAL_RANKS",
                                        "LINK_D2H",
                                        "LINK_H2D",
                                        "D2H_DUPLEX",
                                        "H2D_DUPLEX",
                                        "SLAB_THRESHOLD"};
    char name[64];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(name, sizeof(name), "CAPUCHIN_%s", names[i]);
        unsetenv(name);
    }
}

START_TEST(every_variable_is_read)
{
    capu_context *context;
    const capu_config *config;

    clear_environment();
    setenv("CAPUCHIN_DEVICE", "sim", 1);
    setenv("CAPUCHIN_MODE", "off", 1);
    setenv("CAPUCHIN_STRICT", "1", 1);
    setenv("CAPUCHIN_CLEAR_FRESH", "1", 1);
    setenv("CAPUCHIN_BUDGET", "32MiB", 1);
    setenv("CAPUCHIN_HOST_BUDGET", "3e6", 1);
    setenv("CAPUCHIN_PAGE", "64KiB", 1);
    setenv("CAPUCHIN_SLAB_THRESHOLD", "1KiB", 1);
    setenv("CAPUCHIN_D2H", "1GB", 1);
    setenv("CAPUCHIN_H2D", "2GB", 1);
    setenv("CAPUCHIN_COPY_LATENCY", "77", 1);
    setenv("CAPUCHIN_REPORT", "/dev/null", 1);
    setenv("CAPUCHIN_TRACE", "/dev/null", 1);
    setenv("CAPUCHIN_TRACE_ITERATION", "5", 1);
    setenv("CAPUCHIN_RANK", "2", 1);
    setenv("CAPUCHIN_RANKS", "7", 1);
    setenv("CAPUCHIN_LOCAL_RANKS", "3", 1);
    setenv("CAPUCHIN_LINK_D2H", "3GB", 1);
    setenv("CAPUCHIN_LINK_H2D", "4GB", 1);
    setenv("CAPUCHIN_D2H_DUPLEX", "5e8", 1);
    setenv("CAPUCHIN_H2D_DUPLEX", "6e8", 1);
    ck_assert_int_eq(capu_context_create(NULL, &context), CAPU_OK);
    config = capu_context_config(context);
    ck_assert_str_eq(capu_context_device(context), "sim");
    ck_assert_uint_eq(config->mode, CAPU_MODE_OFF);
    ck_assert_uint_eq(config->strict, 1);
    ck_assert_uint_eq(context->settings.config.clear_fresh, 1);
    ck_assert_uint_eq(config->budget_bytes, 32 << 20);
    ck_assert_uint_eq(config->host_budget_bytes, 3000000);
    ck_assert_uint_eq(config->page_bytes, 64 << 10);
    ck_assert_uint_eq(context->settings.config.slab_threshold_bytes, 1024);
    ck_assert_uint_eq(context->settings.config.d2h_bytes_per_s, 1000000000);
    ck_assert_uint_eq(context->settings.config.h2d_bytes_per_s, 2000000000);
    ck_assert_uint_eq(context->settings.config.copy_latency_ns, 77);
    ck_assert_str_eq(config->report_path, "/dev/null");
    ck_assert_str_eq(config->trace_path, "/dev/null");
    ck_assert_uint_eq(context->settings.config.trace_iteration, 5);
    ck_assert_uint_eq(context->settings.config.rank, 2);
    ck_assert_uint_eq(context->settings.config.rank_count, 7);
    ck_assert_uint_eq(context->settings.config.local_rank_count, 3);
    ck_assert_uint_eq(context->settings.config.link_d2h_bytes_per_s, 3000000000);
    ck_assert_uint_eq(context->settings.config.link_h2d_bytes_per_s, 4000000000);
    ck_assert_uint_eq(context->lanes.device->capabilities.link.d2h_duplex_bytes_per_s, 500000000);
    ck_assert_uint_eq(context->lanes.device->capabilities.link.h2d_duplex_bytes_per_s, 600000000);
    capu_context_destroy(context);
}
END_TEST

/* Pinned memory cannot be swapped out, so there is a limit by default; what is simulated has none,
   because it must not depend on the machine. */
START_TEST(the_host_budget_has_a_default)
{
    static const char *const devices[] = {"host", "sim"};

    for (size_t i = 0; i < 4; i++) {
        capu_config config = CAPU_CONFIG_INIT;
        bool is_limited = i == 0;
        capu_context *context;

        config.device = devices[i % 2];
        config.budget_bytes = 8 << 20;
        config.host_budget_bytes = i < 2 ? 0 : UINT64_MAX;
        ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
        ck_assert_int_eq(capu_context_config(context)->host_budget_bytes < UINT64_MAX, is_limited);
        ck_assert_uint_gt(capu_context_config(context)->host_budget_bytes, 1 << 20);
        capu_context_destroy(context);
    }
}
END_TEST

/* Names of files have the rank in them; without it, several ranks would write the same file. */
START_TEST(names_of_files_have_the_rank)
{
    char text[512] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;

    clear_environment();
    config.device = "sim";
    config.budget_bytes = 8 << 20;
    (void)capu_config_set(&config, "rank", "12");
    (void)capu_config_set(&config, "ranks", "16");
    config.report_path = "/tmp/capuchin-%r%%r-report.%r";
    config.trace_path = "/dev/null";
    config.error = text;
    config.error_bytes = sizeof(text);
    ck_assert_msg(capu_context_create(&config, &context) == CAPU_OK, "%s", text);
    ck_assert_str_eq(capu_context_config(context)->report_path, "/tmp/capuchin-12%r-report.12");
    ck_assert_str_eq(capu_context_config(context)->trace_path, "/dev/null");
    capu_context_destroy(context);

    context = NULL;
    (void)capu_config_set(&config, "plan", "/tmp/capuchin-%%r-plan");
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
    ck_assert_ptr_null(context);
    ck_assert_ptr_nonnull(strstr(text, "16 ranks"));
    ck_assert_ptr_nonnull(strstr(text, "'/tmp/capuchin-%%r-plan'"));
    (void)capu_config_set(&config, "ranks", "0");
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
    ck_assert_ptr_nonnull(strstr(text, "rank 12"));
}
END_TEST

/* Rates to plan with are measured or given; given ones throttle nothing, and are not measured. */
START_TEST(the_link_can_be_measured_ahead)
{
    static const char *const measured[] = {"link_d2h", "link_h2d", "d2h_duplex", "h2d_duplex"};
    char text[32] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context;

    clear_environment();
    config.device = "host";
    config.budget_bytes = 1 << 20;
    ck_assert_int_eq(capuchin_link_measure(NULL), CAPU_INVALID);
    ck_assert_int_eq(capuchin_link_measure(&config), CAPU_OK);
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        ck_assert_int_eq(capu_config_get(&config, measured[i], text, sizeof(text)), CAPU_OK);
        ck_assert_msg(strtoull(text, NULL, 10) > 0, "%s: '%s'", measured[i], text);
    }
    (void)capu_config_set(&config, "link_d2h", "123456789");
    (void)capu_config_set(&config, "link_h2d", "987654321");
    (void)capu_config_set(&config, "d2h_duplex", "111111111");
    (void)capu_config_set(&config, "h2d_duplex", "222222222");
    (void)capu_config_set(&config, "copy_latency", "33");
    ck_assert_int_eq(capuchin_link_measure(&config), CAPU_OK);
    config.mode = CAPU_MODE_GUIDED;
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
    ck_assert_uint_eq(context->lanes.link.d2h_bytes_per_s, 123456789);
    ck_assert_uint_eq(context->lanes.link.h2d_bytes_per_s, 987654321);
    ck_assert_uint_eq(context->lanes.link.d2h_duplex_bytes_per_s, 111111111);
    ck_assert_uint_eq(context->lanes.link.h2d_duplex_bytes_per_s, 222222222);
    ck_assert_uint_eq(context->lanes.link.copy_latency_ns, 33);
    ck_assert_uint_eq(context->lanes.device->capabilities.link.d2h_bytes_per_s, 0);
    capu_context_destroy(context);

    config = (capu_config)CAPU_CONFIG_INIT;
    config.device = "host";
    config.budget_bytes = 1 << 20;
    (void)capu_config_set(&config, "d2h", "1e6");
    (void)capu_config_set(&config, "h2d", "1e6");
    ck_assert_int_eq(capuchin_link_measure(&config), CAPU_OK);
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        ck_assert_int_eq(capu_config_get(&config, measured[i], text, sizeof(text)), CAPU_OK);
        ck_assert_str_eq(text, "");
    }
    config.device = "nowhere";
    ck_assert_int_eq(capuchin_link_measure(&config), CAPU_INVALID);
}
END_TEST

/* Processes that share a machine share its memory. */
START_TEST(local_ranks_share_the_host_budget)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context;

    clear_environment();
    config.device = "host";
    config.budget_bytes = 8 << 20;
    config_set_number(&config, "local_ranks", UINT64_C(1) << 32);
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
    ck_assert_uint_lt(capu_context_config(context)->host_budget_bytes, 1 << 20);
    capu_context_destroy(context);
    ck_assert_uint_gt(capuchin_host_budget_default(0), 1 << 20);
    ck_assert_uint_lt(capuchin_host_budget_default(UINT64_C(1) << 32), 1 << 20);
}
END_TEST

START_TEST(the_program_overrides_the_environment)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context;

    clear_environment();
    setenv("CAPUCHIN_MODE", "nonsense", 1); /* not even read */
    setenv("CAPUCHIN_BUDGET", "1GiB", 1);
    config.device = "sim";
    config.mode = CAPU_MODE_PASSIVE;
    config.budget_bytes = 4 << 20;
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
    ck_assert_uint_eq(capu_context_config(context)->budget_bytes, 4 << 20);
    ck_assert_uint_eq(capu_context_config(context)->mode, CAPU_MODE_PASSIVE);
    capu_context_destroy(context);
}
END_TEST

static const struct {
    const char *variable;
    const char *value;
    capu_status status;
    const char *hint; /* in the text */
} wrong[] = {
    {"CAPUCHIN_DEVICE", "tpu", CAPU_INVALID, "; from the environment: CAPUCHIN_DEVICE"},
    {"CAPUCHIN_DEVICE", "cuda:999", CAPU_NO_DEVICE, ""},
    {"CAPUCHIN_DEVICE", "cuda:", CAPU_INVALID, ""},
    {"CAPUCHIN_DEVICE", "cuda:1x", CAPU_INVALID, ""},
    {"CAPUCHIN_DEVICE", "cuda:1000", CAPU_INVALID, ""},
    {"CAPUCHIN_DEVICE", "cudas", CAPU_INVALID, ""},
    {"CAPUCHIN_MODE", "fast", CAPU_INVALID, "off, passive or guided"},
    {"CAPUCHIN_PLANNER", "oracle", CAPU_INVALID, ": hybrid "},
    {"CAPUCHIN_PLANNER", "the oracle that only a man in a mountain can read", CAPU_INVALID, ""},
    {"CAPUCHIN_EFFORT", "endless", CAPU_INVALID, "quick, default or best"},
    {"CAPUCHIN_WAIT_FOR_PLAN", "yes", CAPU_INVALID, "0 or 1"},
    {"CAPUCHIN_PLAN", "/no/such/folder/plan", CAPU_FILE_FAILED, ""},
    {"CAPUCHIN_STRICT", "yes", CAPU_INVALID, ""},
    {"CAPUCHIN_CLEAR_FRESH", "10", CAPU_INVALID, ""},
    {"CAPUCHIN_BUDGET", "4 PiB", CAPU_INVALID, "a size above 0, such as 4G, 512 MiB"},
    {"CAPUCHIN_BUDGET", "0", CAPU_INVALID, "a size above 0"},
    {"CAPUCHIN_BUDGET", "0.0GiB", CAPU_INVALID, "a size above 0"},
    {"CAPUCHIN_BUDGET", "1KiB", CAPU_OVER_BUDGET, "environment: CAPUCHIN_BUDGET"},
    {"CAPUCHIN_HOST_BUDGET", "0", CAPU_INVALID, "a size above 0"},
    {"CAPUCHIN_HOST_BUDGET", "-1", CAPU_INVALID, ""},
    {"CAPUCHIN_PAGE", "65537", CAPU_INVALID, ""},
    {"CAPUCHIN_SLAB_THRESHOLD", "1GiB", CAPU_INVALID, ""},
    {"CAPUCHIN_D2H", "fast", CAPU_INVALID, ""},
    {"CAPUCHIN_H2D", "1e400", CAPU_INVALID, ""},
    {"CAPUCHIN_COPY_LATENCY", " -5", CAPU_INVALID, ""},
    {"CAPUCHIN_TRACE_ITERATION", "2.5", CAPU_INVALID, "a whole number"},
    {"CAPUCHIN_REPORT", "/no/such/folder/report", CAPU_FILE_FAILED, ""},
    {"CAPUCHIN_TRACE", "/no/such/folder/trace", CAPU_FILE_FAILED, ""},
    {"CAPUCHIN_TRACE", "/no/such/folder/trace%r", CAPU_FILE_FAILED, "/trace0"},
    {"CAPUCHIN_TRACE", "/tmp/100%", CAPU_INVALID, "%r is the rank"},
    {"CAPUCHIN_RANK", "1", CAPU_INVALID, "needs ranks above it"},
    {"CAPUCHIN_LINK_D2H", "fast", CAPU_INVALID, ""},
};

START_TEST(wrong_values_are_named)
{
    char text[512] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    const char *value = wrong[_i].value;

    clear_environment();
    setenv("CAPUCHIN_DEVICE", "sim", 1);
    setenv("CAPUCHIN_BUDGET", "32MiB", 1);
    setenv(wrong[_i].variable, value, 1);
    config.error = text;
    config.error_bytes = sizeof(text);
    ck_assert_int_eq(capu_context_create(&config, &context), wrong[_i].status);
    ck_assert_ptr_null(context);
    ck_assert_msg(strstr(text, wrong[_i].variable) != NULL, "'%s' does not name '%s'", text,
                  wrong[_i].variable);
    ck_assert_msg(strstr(text, wrong[_i].hint) != NULL, "'%s' does not say '%s'", text,
                  wrong[_i].hint);
}
END_TEST

/* What the program has set is not blamed on the environment. */
START_TEST(only_variables_that_count_are_named)
{
    char text[512] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;

    clear_environment();
    setenv("CAPUCHIN_DEVICE", "sim", 1);
    setenv("CAPUCHIN_BUDGET", "32MiB", 1);
    setenv("CAPUCHIN_PAGE", "4KiB", 1);
    setenv("CAPUCHIN_PLANNER", "hybrid", 1);
    config.budget_bytes = 1;
    config.error = text;
    config.error_bytes = sizeof(text);
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OVER_BUDGET);
    ck_assert_ptr_nonnull(strstr(text, "; from the environment: CAPUCHIN_PAGE"));
    ck_assert_ptr_null(strstr(text, "CAPUCHIN_BUDGET"));
    ck_assert_ptr_null(strstr(text, "CAPUCHIN_DEVICE"));
    ck_assert_ptr_null(strstr(text, "CAPUCHIN_PLANNER"));
    unsetenv("CAPUCHIN_PLANNER");
}
END_TEST

START_TEST(the_device_that_was_opened_is_reported)
{
    static const char *const devices[] = {NULL, "auto", "host", "sim"};
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;

    clear_environment();
    config.budget_bytes = 4 << 20;
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        config.device = devices[i];
        ck_assert_int_eq(capu_context_create(&config, &context), CAPU_OK);
        ck_assert_str_eq(capu_context_config(context)->device, capu_context_device(context));
        capu_context_destroy(context);
    }
}
END_TEST

START_TEST(structs_of_the_wrong_size_are_rejected)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    char text[4] = "";

    config.size = 4;
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_WRONG_STRUCT);
    config = (capu_config)CAPU_CONFIG_INIT;
    config.strict = 2;
    config.error = text; /* too short: the text is cut */
    config.error_bytes = sizeof(text);
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
    ck_assert_uint_eq(strlen(text), 3);
}
END_TEST

START_TEST(a_stream_without_cuda_and_reserved_fields_are_rejected)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    char text[200] = "";
    const char *devices[] = {"host", "sim"};

    clear_environment();
    config.error = text;
    config.error_bytes = sizeof(text);
    config.stream = text;
    for (size_t i = 0; i < 2; i++) {
        config.device = devices[i];
        ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
        ck_assert_ptr_nonnull(strstr(text, "stream"));
        ck_assert_ptr_nonnull(strstr(text, devices[i]));
    }
    config.stream = NULL;
    config.reserved = 3;
    ck_assert_int_eq(capu_context_create(&config, &context), CAPU_INVALID);
    ck_assert_str_eq(text, "config: reserved is 3; it must be 0");
    ck_assert_ptr_null(context);
}
END_TEST

START_TEST(drop_in_calls_use_the_current_context)
{
    struct rig rig;
    void *first = NULL;
    void *second = NULL;
    unsigned char bytes[100];

    ck_assert_int_eq(capu_drop_in_malloc(&first, 100), CAPU_INVALID);
    ck_assert_int_eq(capu_drop_in_memset(first, 0, 1), CAPU_INVALID);
    ck_assert_int_eq(capu_drop_in_memcpy(first, bytes, 0, CAPU_HOST_TO_DEVICE), CAPU_INVALID);
    ck_assert_int_eq(capu_drop_in_memset(first, 1, 0), CAPU_INVALID);
    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    capu_context_make_current(rig.context);
    ck_assert_ptr_eq(capu_context_current(), rig.context);
    RIG_OK(&rig, capu_drop_in_malloc(&first, PAGES(1)));
    RIG_OK(&rig, capu_drop_in_malloc(&second, PAGES(1)));
    memset(bytes, 5, sizeof(bytes));
    RIG_OK(&rig, capu_drop_in_memcpy(first, bytes, 100, CAPU_HOST_TO_DEVICE));
    RIG_OK(&rig, capu_drop_in_memset(first, 0, 0)); /* no bytes: allowed, as by cudaMemset */
    RIG_OK(&rig, capu_drop_in_memcpy(first, bytes, 0, CAPU_HOST_TO_DEVICE)); /* cudaMemcpy too */
    RIG_OK(&rig, capu_drop_in_memcpy(second, first, 100, CAPU_DEVICE_TO_DEVICE));
    RIG_OK(&rig, capu_drop_in_memset(second, 0, 50));
    RIG_OK(&rig, capu_drop_in_memcpy(bytes, second, 100, CAPU_DEVICE_TO_HOST));
    ck_assert_uint_eq(bytes[49], 0);
    ck_assert_uint_eq(bytes[50], 5);
    STEP_FAILS(&rig, capu_drop_in_memset(second, 1, 50), CAPU_UNSUPPORTED, "only the value 0");
    STEP_FAILS(&rig, capu_drop_in_memcpy(second, bytes, 1, (capu_memcpy_kind)9), CAPU_INVALID,
               "not a");
    STEP_FAILS(&rig, capu_drop_in_memcpy(second, bytes, 0, (capu_memcpy_kind)9), CAPU_INVALID,
               "not a");
    STEP_FAILS(&rig, capu_run(NULL, NULL), CAPU_INVALID, "no op");
    RIG_OK(&rig, capu_drop_in_synchronize());
    RIG_OK(&rig, capu_drop_in_free(first));
    capu_context_make_current(NULL);
    ck_assert_int_eq(capu_drop_in_free(second), CAPU_INVALID);
    rig_finish(&rig);
}
END_TEST

/* Every call takes NULL for the current context, which ends with the context. */
START_TEST(null_is_the_current_context)
{
    struct rig rig;
    void *address = NULL;
    capu_tensor_state state = {.size = sizeof(state)};
    unsigned char bytes[8] = {0};

    ck_assert_int_eq(capu_malloc(NULL, 100, &address), CAPU_INVALID);
    ck_assert_str_eq(capu_context_device(NULL), "");
    ck_assert_ptr_null(capu_context_config(NULL));
    rig_init(&rig, &(struct rig_options){.budget_pages = 8});
    capu_context_make_current(rig.context);
    RIG_OK(&rig, capu_malloc(NULL, PAGES(1), &address));
    RIG_OK(&rig, capu_iteration_begin(NULL, "train"));
    RIG_OK(&rig, capu_upload(NULL, address, bytes, sizeof(bytes), 0));
    RIG_OK(&rig, capu_iteration_end(NULL));
    RIG_OK(&rig, capu_tensor_query(NULL, address, &state));
    ck_assert_ptr_eq(state.address, address);
    ck_assert_ptr_eq(capu_context_config(NULL), capu_context_config(rig.context));
    STEP_FAILS(&rig, capu_upload(NULL, address, bytes, 1, CAPU_TRANSFER_ASYNC), CAPU_INVALID,
               "unknown flags 0x2");
    STEP_FAILS(&rig, capu_download(NULL, bytes, address, 1, 5), CAPU_INVALID, "unknown flags 0x5");
    STEP_FAILS(&rig, capu_malloc(NULL, 0, &address), CAPU_INVALID, "zero bytes");
    rig_finish(&rig);
    ck_assert_ptr_null(capu_context_current());
    ck_assert_int_eq(capu_malloc(NULL, 100, &address), CAPU_INVALID);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api config");
    TCase *cases = tcase_create("config");

    tcase_add_test(cases, every_variable_is_read);
    tcase_add_test(cases, the_program_overrides_the_environment);
    tcase_add_test(cases, names_of_files_have_the_rank);
    tcase_add_test(cases, the_link_can_be_measured_ahead);
    tcase_add_test(cases, local_ranks_share_the_host_budget);
    tcase_add_test(cases, the_host_budget_has_a_default);
    tcase_add_loop_test(cases, wrong_values_are_named, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_test(cases, only_variables_that_count_are_named);
    tcase_add_test(cases, the_device_that_was_opened_is_reported);
    tcase_add_test(cases, structs_of_the_wrong_size_are_rejected);
    tcase_add_test(cases, a_stream_without_cuda_and_reserved_fields_are_rejected);
    tcase_add_test(cases, drop_in_calls_use_the_current_context);
    tcase_add_test(cases, null_is_the_current_context);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

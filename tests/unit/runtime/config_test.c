/* Configs: every variable, which source takes precedence, and error texts that name the mistake. */
#include "runtime/context/config.h"

#include "tests/support/suite.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A value for each variable, and the value that the field then has. */
struct variable {
    const char *name;
    size_t offset;
    const char *text;
    uint64_t number;    /* the value that `text` stands for; unused for texts */
    uint64_t other;     /* another value, for the program to set */
    uint64_t otherwise; /* the default */
    enum { IS_TEXT, IS_32, IS_64 } kind;
};

#define AT(field) offsetof(struct config, field)

static const struct variable variables[] = {
    {"CAPUCHIN_DEVICE", AT(device), "sim", 0, 0, 0, IS_TEXT},
    {"CAPUCHIN_MODE", AT(mode), "off", CAPU_MODE_OFF, CAPU_MODE_PASSIVE, CAPU_MODE_PASSIVE, IS_32},
    {"CAPUCHIN_STRICT", AT(strict), "1", 1, 1, 0, IS_32},
    {"CAPUCHIN_CLEAR_FRESH", AT(clear_fresh), "1", 1, 1, 0, IS_32},
    {"CAPUCHIN_BUDGET", AT(budget_bytes), "1.5 g", 1536 << 20, 77, 0, IS_64},
    {"CAPUCHIN_HOST_BUDGET", AT(host_budget_bytes), "2GiB", UINT64_C(2) << 30, 77, 0, IS_64},
    {"CAPUCHIN_PAGE", AT(page_bytes), "64KiB", 65536, 4096, 0, IS_64},
    {"CAPUCHIN_SLAB_THRESHOLD", AT(slab_threshold_bytes), "512", 512, 77, 0, IS_64},
    {"CAPUCHIN_D2H", AT(d2h_bytes_per_s), "12e9", UINT64_C(12000000000), 77, 0, IS_64},
    {"CAPUCHIN_H2D", AT(h2d_bytes_per_s), "13GB", UINT64_C(13000000000), 77, 0, IS_64},
    {"CAPUCHIN_COPY_LATENCY", AT(copy_latency_ns), "18446744073709551615", UINT64_MAX, 77, 0,
     IS_64},
    {"CAPUCHIN_REPORT", AT(report_path), "/tmp/report", 0, 0, 0, IS_TEXT},
    {"CAPUCHIN_TRACE", AT(trace_path), "/tmp/trace", 0, 0, 0, IS_TEXT},
    {"CAPUCHIN_TRACE_ITERATION", AT(trace_iteration), "5", 5, 77, 2, IS_64},
    {"CAPUCHIN_SAMPLE_EVERY", AT(sample_every), "5", 5, 77, 64, IS_64},
    {"CAPUCHIN_PLAN_MEMORY", AT(plan_memory_bytes), "3MiB", 3 << 20, 77, 64 << 20, IS_64},
};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

/* Tests run in processes of their own, but CK_FORK=no must work too. */
static void clear_environment(void)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        unsetenv(variables[i].name);
    }
}

static const char *text_of(const struct config *config, const struct variable *variable)
{
    const char *text;

    memcpy(&text, (const unsigned char *)config + variable->offset, sizeof(text));
    return text;
}

static uint64_t number_of(const struct config *config, const struct variable *variable)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;

    if (variable->kind == IS_32) {
        memcpy(&narrow, (const unsigned char *)config + variable->offset, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, (const unsigned char *)config + variable->offset, sizeof(wide));
    return wide;
}

/* Checks one field, which was set by the environment or has its default. */
static void check_field(const struct config *config, const struct variable *variable, bool is_set)
{
    if (variable->kind != IS_TEXT) {
        ck_assert_msg(number_of(config, variable) ==
                          (is_set ? variable->number : variable->otherwise),
                      "%s", variable->name);
    } else if (is_set) {
        ck_assert_str_eq(text_of(config, variable), variable->text);
    } else if (strcmp(variable->name, "CAPUCHIN_DEVICE") == 0) {
        ck_assert_str_eq(text_of(config, variable), "auto");
    } else {
        ck_assert_ptr_null(text_of(config, variable));
    }
}

START_TEST(defaults_are_complete)
{
    const capu_config from = CAPU_CONFIG_INIT;
    char text[256] = "untouched";
    struct config config;

    for (int given = 0; given < 2; given++) {
        ck_assert_int_eq(config_resolve(given ? &from : NULL, &config, text, sizeof(text)),
                         CAPU_OK);
        for (size_t i = 0; i < VARIABLES; i++) {
            check_field(&config, &variables[i], false);
        }
        ck_assert_str_eq(text, "untouched");
        config_finish(&config);
        ck_assert_ptr_null(config.device);
        config_finish(&config);
    }
}
END_TEST

/* A variable changes its own field and no other. An empty variable counts as not set. */
START_TEST(a_variable_sets_its_field)
{
    char text[256] = "";
    struct config config;

    setenv(variables[_i].name, variables[_i].text, 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_OK);
    for (size_t i = 0; i < VARIABLES; i++) {
        check_field(&config, &variables[i], i == (size_t)_i);
    }
    config_finish(&config);
    setenv(variables[_i].name, "", 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_OK);
    check_field(&config, &variables[_i], false);
    config_finish(&config);
}
END_TEST

/* Its name for capu_config_set. */
static const char *setting_name(const struct variable *variable)
{
    static char name[64];
    const char *from = variable->name + strlen("CAPUCHIN_");
    size_t i;

    for (i = 0; from[i] != '\0'; i++) {
        name[i] = (char)tolower(from[i]);
    }
    name[i] = '\0';
    return name;
}

START_TEST(the_program_overrides_the_environment)
{
    const struct variable *variable = &variables[_i];
    static const char given[] = "host";
    capu_config from = CAPU_CONFIG_INIT;
    char text[256] = "";
    struct config config;

    for (size_t i = 0; i < VARIABLES; i++) {
        setenv(variables[i].name, variables[i].text, 1);
    }
    /* A variable is not even read if the program sets the field. */
    setenv(variable->name, "nonsense", 1);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)variable->other);
    ck_assert_int_eq(capu_config_set(&from, setting_name(variable),
                                     variable->kind == IS_TEXT                      ? given
                                     : strcmp(variable->name, "CAPUCHIN_MODE") == 0 ? "passive"
                                                                                    : text),
                     CAPU_OK);
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_OK);
    for (size_t i = 0; i < VARIABLES; i++) {
        if (i != (size_t)_i) {
            check_field(&config, &variables[i], true);
        } else if (variable->kind == IS_TEXT) {
            ck_assert_str_eq(text_of(&config, variable), "host");
            ck_assert_ptr_ne(text_of(&config, variable), given); /* a copy */
        } else {
            ck_assert_uint_eq(number_of(&config, variable), variable->other);
        }
    }
    config_finish(&config);
}
END_TEST

static const struct {
    const char *name;
    const char *text;
} wrong[] = {
    {"CAPUCHIN_MODE", "fast"},
    {"CAPUCHIN_MODE", "OFF"},
    {"CAPUCHIN_MODE", "1"},
    {"CAPUCHIN_STRICT", "2"},
    {"CAPUCHIN_STRICT", "yes"},
    {"CAPUCHIN_STRICT", "11"},
    {"CAPUCHIN_CLEAR_FRESH", "true"},
    {"CAPUCHIN_CLEAR_FRESH", " 1"},
    {"CAPUCHIN_BUDGET", "4 GiB!"},
    {"CAPUCHIN_BUDGET", "-1"},
    {"CAPUCHIN_BUDGET", "1e30"},
    {"CAPUCHIN_BUDGET", "0.25"}, /* rounded to zero, it would mean "no budget" */
    {"CAPUCHIN_BUDGET", "0"},
    {"CAPUCHIN_HOST_BUDGET", "0MiB"},
    {"CAPUCHIN_HOST_BUDGET", "1e-5"},
    {"CAPUCHIN_HOST_BUDGET", "1gbit"},
    {"CAPUCHIN_PAGE", "big"},
    {"CAPUCHIN_SLAB_THRESHOLD", "0x10"},
    {"CAPUCHIN_D2H", "12GB/s"},
    {"CAPUCHIN_H2D", "fast"},
    {"CAPUCHIN_COPY_LATENCY", "10us"},
    {"CAPUCHIN_COPY_LATENCY", "-1"},
    {"CAPUCHIN_COPY_LATENCY", "18446744073709551616"},
    {"CAPUCHIN_TRACE_ITERATION", "second"},
    {"CAPUCHIN_TRACE_ITERATION", "+2"},
    {"CAPUCHIN_TRACE_ITERATION", "2.0"},
};

START_TEST(a_wrong_variable_is_named)
{
    struct config config = {.budget_bytes = 1234};
    char expected[128];
    char text[256] = "";

    setenv(wrong[_i].name, wrong[_i].text, 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_INVALID);
    snprintf(expected, sizeof(expected), "%s='%s'", wrong[_i].name, wrong[_i].text);
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
    ck_assert_uint_eq(config.budget_bytes, 1234);
}
END_TEST

/* A variable with the library's prefix that the library does not know is an error. Variables
   without the prefix are ignored. */
START_TEST(a_misspelt_variable_is_named)
{
    static const char *const names[] = {"CAPUCHIN_BUGET", "CAPUCHIN_BUDGET_BYTES", "CAPUCHIN_BUDGE",
                                        "CAPUCHIN_", "CAPUCHIN_budget"};
    static const char *const strangers[] = {"CAPUCHIN", "CAPUCHINO_BUDGET", "capuchin_budget",
                                            "MY_CAPUCHIN_BUDGET"};
    struct config config = {.budget_bytes = 1234};
    char text[256] = "";

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        setenv(names[i], "4GiB", 1);
        ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_INVALID);
        ck_assert_msg(strncmp(text, names[i], strlen(names[i])) == 0 &&
                          text[strlen(names[i])] == ':',
                      "%s: %s", names[i], text);
        ck_assert_uint_eq(config.budget_bytes, 1234);
        setenv(names[i], "", 1);
    }
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        setenv(strangers[i], "4GiB", 1);
    }
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_OK);
    ck_assert_uint_eq(config.budget_bytes, 0);
    config_finish(&config);
}
END_TEST

/* Two results in one file would be garbage. Both are named, wherever they come from. */
START_TEST(files_must_differ)
{
    char path[] = "/tmp/capuchin-config-XXXXXX";
    char link_path[64];
    capu_config from = CAPU_CONFIG_INIT;
    struct config config;
    char text[256] = "";

    ck_assert_int_ge(close(mkstemp(path)), 0);
    snprintf(link_path, sizeof(link_path), "%s-link", path);
    ck_assert_int_eq(symlink(path, link_path), 0);
    setenv("CAPUCHIN_REPORT", path, 1);
    setenv("CAPUCHIN_PLAN", link_path, 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "CAPUCHIN_REPORT") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "CAPUCHIN_PLAN") != NULL, "%s", text);
    ck_assert_msg(strstr(text, path) != NULL, "%s", text);
    unsetenv("CAPUCHIN_PLAN");
    from.trace_path = path;
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "report_path") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "trace_path") != NULL, "%s", text);
    unlink(path); /* nor may two files that do not exist yet */
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_INVALID);
    setenv("CAPUCHIN_REPORT", "/dev/null", 1);
    from.trace_path = "/dev/null";
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_OK);
    config_finish(&config);
    unlink(link_path);
}
END_TEST

/* A value out of range is rejected, from the program and from the environment, and the text names
   it. */
START_TEST(fields_are_checked)
{
    static const struct {
        capu_config config;
        const char *named;
    } cases[] = {
        {{.mode = 4}, "mode 4"},
        {{.strict = 2}, "strict 2"},
        {{.page_bytes = 65537}, "page_bytes 65537"},
        {{.wait_for_plan = 2}, "wait_for_plan 2"},
        {{.reserved = 1}, "reserved is 1"},
    };
    struct config config = {.budget_bytes = 1234};
    capu_config from = CAPU_CONFIG_INIT;
    char text[256] = "";

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        capu_config wrong_one = cases[i].config;

        wrong_one.size = sizeof(wrong_one);
        ck_assert_int_eq(config_resolve(&wrong_one, &config, text, sizeof(text)), CAPU_INVALID);
        ck_assert_msg(strstr(text, cases[i].named) != NULL, "%s", text);
    }
    ck_assert_int_eq(capu_config_set(&from, "planner", "oracle"), CAPU_OK);
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "oracle") != NULL, "%s", text);
    ck_assert_int_eq(capu_config_set(&from, "planner", ""), CAPU_OK);
    ck_assert_int_eq(capu_config_set(&from, "timeline", "1"), CAPU_OK);
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "needs report_path") != NULL, "%s", text);
    setenv("CAPUCHIN_PAGE", "65537", 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "65537") != NULL, "%s", text);
    setenv("CAPUCHIN_PAGE", "65536", 1);
    setenv("CAPUCHIN_EFFORT", "endless", 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, sizeof(text)), CAPU_INVALID);
    ck_assert_msg(strstr(text, "endless") != NULL, "%s", text);
    ck_assert_uint_eq(config.budget_bytes, 1234);
}
END_TEST

/* A caller compiled with another header: fields that it lacks get defaults; fields that the library
   does not know are rejected unless they are zero. */
START_TEST(callers_of_other_versions)
{
    struct {
        capu_config known;
        uint64_t more;
    } newer = {{.size = sizeof(newer), .budget_bytes = 9}, 0};
    capu_config older = {.size = offsetof(capu_config, budget_bytes), .budget_bytes = 9};
    char text[256] = "";
    char size[32];
    struct config config;

    ck_assert_int_eq(config_resolve(&newer.known, &config, text, sizeof(text)), CAPU_OK);
    ck_assert_uint_eq(config.budget_bytes, 9);
    config_finish(&config);
    ck_assert_int_eq(config_resolve(&older, &config, text, sizeof(text)), CAPU_OK);
    ck_assert_uint_eq(config.budget_bytes, 0);
    config_finish(&config);
    newer.more = 1;
    ck_assert_int_eq(config_resolve(&newer.known, &config, text, sizeof(text)), CAPU_WRONG_STRUCT);
    snprintf(size, sizeof(size), "%zu bytes", sizeof(newer));
    ck_assert_msg(strstr(text, size) != NULL, "%s", text);
    older.size = 0;
    ck_assert_int_eq(config_resolve(&older, &config, text, sizeof(text)), CAPU_WRONG_STRUCT);
    ck_assert_ptr_nonnull(strstr(text, "start it with CAPU_CONFIG_INIT"));
}
END_TEST

/* Every string is a copy: the program may change or free its own as soon as the call returns. */
START_TEST(strings_are_copied)
{
    static const size_t strings[] = {AT(device),  AT(report_path), AT(trace_path),
                                     AT(planner), AT(plan_path),   AT(plugin_folder)};
    static const char *const names[] = {"device",  "report", "trace",
                                        "planner", "plan",   "plugin_folder"};
    enum { STRINGS = sizeof(strings) / sizeof(strings[0]) };
    static const char *const texts[STRINGS] = {"sim",    "/tmp/copied.report", "/tmp/copied.trace",
                                               "hybrid", "/tmp/copied.plan",   "/tmp/copied"};
    char own[STRINGS][32];
    capu_config from = CAPU_CONFIG_INIT;
    struct config config;
    char text[256] = "";

    for (size_t i = 0; i < STRINGS; i++) {
        ck_assert_int_eq(capu_config_set(&from, names[i], strcpy(own[i], texts[i])), CAPU_OK);
    }
    ck_assert_msg(config_resolve(&from, &config, text, sizeof(text)) == CAPU_OK, "%s", text);
    memset(own, 'x', sizeof(own));
    for (size_t i = 0; i < STRINGS; i++) {
        const char *copy;

        memcpy(&copy, (unsigned char *)&config + strings[i], sizeof(copy));
        ck_assert_msg(strncmp(copy, texts[i], strlen(texts[i]) + 1) == 0, "not copied: %s",
                      texts[i]);
    }
    config_finish(&config);
}
END_TEST

/* Every setting can be set and asked for by its name, and a context's config has them all. */
START_TEST(settings_have_names)
{
    const struct variable *variable = &variables[_i];
    capu_config from = CAPU_CONFIG_INIT;
    const char *name = setting_name(variable);
    char text[256] = "";
    struct config config;
    capu_config shown;

    ck_assert_int_eq(capu_config_set(&from, variable->name + strlen("CAPUCHIN_"), variable->text),
                     CAPU_INVALID); /* in upper case */
    ck_assert_int_eq(capu_config_get(&from, name, text, sizeof(text)), CAPU_OK);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(capu_config_set(&from, name, variable->text), CAPU_OK);
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_OK);
    check_field(&config, variable, true);
    config_show(&config, &shown);
    ck_assert_int_eq(capu_config_get(&shown, name, text, sizeof(text)), CAPU_OK);
    ck_assert_int_eq(capu_config_set(&from, name, NULL), CAPU_OK);
    ck_assert_int_eq(capu_config_set(&from, name, text), CAPU_OK);
    config_finish(&config);
    ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_OK);
    check_field(&config, variable, true);
    config_finish(&config);
}
END_TEST

/* What is set to 0 is not taken from the environment, whether it has a field or not; what is taken
   back is. */
START_TEST(zero_is_a_value)
{
    static const char *const names[] = {"clear_fresh", "strict", "wait_for_plan"};
    static const size_t fields[] = {AT(clear_fresh), AT(strict), AT(wait_for_plan)};

    setenv("CAPUCHIN_CLEAR_FRESH", "1", 1);
    setenv("CAPUCHIN_STRICT", "1", 1);
    setenv("CAPUCHIN_WAIT_FOR_PLAN", "1", 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        capu_config from = CAPU_CONFIG_INIT;
        struct config config;
        capu_config shown;
        char text[256] = "";

        for (uint32_t value = 0; value < 2; value++) {
            uint32_t used;

            ck_assert_int_eq(capu_config_set(&from, names[i], value == 0 ? "0" : ""), CAPU_OK);
            ck_assert_int_eq(config_resolve(&from, &config, text, sizeof(text)), CAPU_OK);
            memcpy(&used, (unsigned char *)&config + fields[i], sizeof(used));
            ck_assert_uint_eq(used, value);
            config_show(&config, &shown);
            ck_assert_int_eq(capu_config_get(&shown, names[i], text, sizeof(text)), CAPU_OK);
            ck_assert_str_eq(text, value == 0 ? "0" : "1");
            config_finish(&config);
        }
    }
    unsetenv("CAPUCHIN_WAIT_FOR_PLAN");
}
END_TEST

/* Also what only a field can say: that there is no limit. */
START_TEST(no_limit_is_a_value)
{
    capu_config from = CAPU_CONFIG_INIT;
    capu_config other = CAPU_CONFIG_INIT;
    char text[32];

    from.host_budget_bytes = UINT64_MAX;
    ck_assert_int_eq(capu_config_get(&from, "host_budget", text, sizeof(text)), CAPU_OK);
    ck_assert_int_eq(capu_config_set(&other, "host_budget", text), CAPU_OK);
    ck_assert_uint_eq(other.host_budget_bytes, UINT64_MAX);
    from.mode = 7;
    ck_assert_int_eq(capu_config_get(&from, "mode", text, sizeof(text)), CAPU_INVALID);
}
END_TEST

START_TEST(wrong_settings_are_named)
{
    char error[256] = "";
    char short_text[4] = "abc";
    capu_config from = CAPU_CONFIG_INIT;

    from.error = error;
    from.error_bytes = sizeof(error);
    ck_assert_int_eq(capu_config_set(&from, "buget", "1"), CAPU_INVALID);
    ck_assert_str_eq(error, "config: there is no setting 'buget'");
    ck_assert_int_eq(capu_config_set(&from, "sample_every", "often"), CAPU_INVALID);
    ck_assert_str_eq(error, "config: sample_every='often' is not a whole number");
    ck_assert_int_eq(capu_config_set(&from, NULL, "1"), CAPU_INVALID);
    ck_assert_int_eq(capu_config_set(NULL, "top", "1"), CAPU_INVALID);
    ck_assert_uint_eq(from.given, 0);
    ck_assert_int_eq(capu_config_get(&from, "buget", error, sizeof(error)), CAPU_INVALID);
    ck_assert_int_eq(capu_config_get(NULL, "top", error, sizeof(error)), CAPU_INVALID);
    ck_assert_int_eq(capu_config_get(&from, "top", NULL, 0), CAPU_INVALID);
    ck_assert_int_eq(capu_config_set(&from, "sample_every", "1000"), CAPU_OK);
    ck_assert_int_eq(capu_config_get(&from, "sample_every", short_text, sizeof(short_text)),
                     CAPU_TOO_LARGE);
    ck_assert_str_eq(short_text, "abc");
    from.size = offsetof(capu_config, settings);
    ck_assert_int_eq(capu_config_set(&from, "top", "1"), CAPU_WRONG_STRUCT);
    ck_assert_ptr_nonnull(strstr(error, "a capu_config of "));
    ck_assert_int_eq(capu_config_get(&from, "top", error, sizeof(error)), CAPU_WRONG_STRUCT);
}
END_TEST

/* A text longer than the buffer is cut, and nothing is written after the buffer. */
START_TEST(texts_are_cut)
{
    struct config config;
    char text[16];

    memset(text, 'x', sizeof(text));
    setenv("CAPUCHIN_BUDGET", "much", 1);
    ck_assert_int_eq(config_resolve(NULL, &config, text, 12), CAPU_INVALID);
    ck_assert_str_eq(text, "CAPUCHIN_BU");
    ck_assert_int_eq(text[12], 'x');
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime config");
    TCase *tcase = tcase_create("config");

    tcase_add_checked_fixture(tcase, clear_environment, clear_environment);
    tcase_add_test(tcase, defaults_are_complete);
    tcase_add_loop_test(tcase, a_variable_sets_its_field, 0, VARIABLES);
    tcase_add_loop_test(tcase, the_program_overrides_the_environment, 0, VARIABLES);
    tcase_add_loop_test(tcase, a_wrong_variable_is_named, 0, sizeof(wrong) / sizeof(wrong[0]));
    tcase_add_loop_test(tcase, settings_have_names, 0, VARIABLES);
    tcase_add_test(tcase, zero_is_a_value);
    tcase_add_test(tcase, no_limit_is_a_value);
    tcase_add_test(tcase, wrong_settings_are_named);
    tcase_add_test(tcase, files_must_differ);
    tcase_add_test(tcase, fields_are_checked);
    tcase_add_test(tcase, a_misspelt_variable_is_named);
    tcase_add_test(tcase, callers_of_other_versions);
    tcase_add_test(tcase, strings_are_copied);
    tcase_add_test(tcase, texts_are_cut);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

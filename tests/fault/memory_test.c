/*
 * Fault sweep over host memory: each allocation of the library fails in turn, alone or together
 * with all later ones. The linker (--wrap) replaces malloc in the objects of this executable;
 * jansson and the C library keep the real one.
 */
#include "tests/fault/program.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_long countdown; /* allocations until one fails; 0: none fails; -1: one has failed */
static atomic_bool is_lasting;
static atomic_long hits;

static bool fails(void)
{
    long left = atomic_load(&countdown);

    while (left > 0 && !atomic_compare_exchange_weak(&countdown, &left, left - 1)) {
    }
    if (left == 1 || (left == -1 && atomic_load(&is_lasting))) {
        if (left == 1) {
            atomic_store(&countdown, -1);
        }
        atomic_fetch_add(&hits, 1);
        return true;
    }
    return false;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* One run in which the n-th allocation fails. False if the program made fewer. */
static bool run_with(long n, bool lasting, bool is_guided)
{
    struct rig rig;
    struct program program = {.retries = lasting ? 0 : 1, .keeps_input = is_guided};
    bool hit;

    rig_init(&rig, &(struct rig_options){
                       .any_order = true,
                       .budget_pages = PROGRAM_BUDGET_PAGES + (is_guided ? 2 : 0),
                       .host_budget_bytes = PROGRAM_HOST_PAGES * RIG_PAGE,
                       .mode = is_guided ? CAPU_MODE_GUIDED : 0,
                       .wait_for_plan = is_guided,
                   });
    program.context = rig.context;
    atomic_store(&hits, 0);
    atomic_store(&is_lasting, lasting);
    atomic_store(&countdown, n);
    program_run(&program);
    hit = atomic_load(&hits) > 0;
    if (lasting) {
        capu_context_destroy(rig.context);
        rig.context = NULL;
    }
    atomic_store(&countdown, 0);
    ck_assert_msg(!program.is_wrong, "allocation %ld: %s", n, program.what);
    if (program.status == CAPU_OK) {
        ck_assert_mem_eq(program.sums, program_sums, sizeof(program_sums));
    } else {
        /* A device may report a lack of host memory with another status. */
        ck_assert_msg(lasting && (program.status == CAPU_NO_HOST_MEMORY ||
                                  program.status == CAPU_SYSTEM_LIMIT),
                      "allocation %ld: %s", n, capu_status_name(program.status));
    }
    capu_context_destroy(rig.context);
    return hit;
}

START_TEST(an_allocation_fails_once)
{
    long n = 1;

    while (run_with(n, false, _i == 1)) {
        n = (long)effort_next((uint64_t)n);
    }
    ck_assert_int_gt(n, 50);
}
END_TEST

START_TEST(allocations_fail_forever)
{
    long n = 1;

    while (run_with(n, true, _i == 1)) {
        n = (long)effort_next((uint64_t)n);
    }
    ck_assert_int_gt(n, 50);
}
END_TEST

/* Each allocation of capu_context_create fails in turn. Then it holds nothing. */
START_TEST(creation_fails_at_every_allocation)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context = NULL;
    char text[256];

    config.device = "sim";
    config.budget_bytes = 1 << 20;
    config.page_bytes = 1 << 16;
    config.error = text;
    config.error_bytes = sizeof(text);
    for (long n = 1; context == NULL; n++) {
        capu_status status;

        text[0] = '\0';
        atomic_store(&is_lasting, false);
        atomic_store(&countdown, n);
        status = capu_context_create(&config, &context);
        atomic_store(&countdown, 0);
        ck_assert_msg((status == CAPU_OK) == (context != NULL), "allocation %ld", n);
        ck_assert_msg(status == CAPU_OK || (status == CAPU_NO_HOST_MEMORY && text[0] != '\0'),
                      "allocation %ld: %s", n, capu_status_name(status));
    }
    capu_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault memory");
    TCase *cases = tcase_create("memory");

    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, an_allocation_fails_once, 0, 2); /* 1: guided */
    tcase_add_loop_test(cases, allocations_fail_forever, 0, 2);
    tcase_add_test(cases, creation_fails_at_every_allocation);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

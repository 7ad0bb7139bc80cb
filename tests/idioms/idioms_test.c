/*
 * Programs as users write them. Each runs once in mode off, which is the reference for what it
 * needs, and then in passive and guided mode in budgets from ample to less than it needs. Every
 * byte that it reads, and every byte that outlives it, is compared with plain memory.
 *
 * A program that fits reaches its end; one whose budget is below the floor is told so. Guided mode
 * never gives up contents that a budget has room for, and otherwise only what buffers.h lists.
 *
 * IDIOM selects programs by a part of their name.
 */
#include "tests/idioms/idioms.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"

enum { UNLIMITED_PAGES = 4096 };

/* Budgets in percent of the live peak. */
enum { FLOOR = 0, BELOW_FLOOR = -1 };

static const struct run {
    capu_mode mode;
    int percent;
    bool waits;
    bool is_strict;
    bool keeps_contents;
} runs[] = {
    {CAPU_MODE_GUIDED, 70, true, false, false},
    {CAPU_MODE_GUIDED, 50, true, false, false},
    {CAPU_MODE_GUIDED, 100, true, false, false},
    {CAPU_MODE_GUIDED, 200, true, false, false},
    {CAPU_MODE_GUIDED, FLOOR, true, false, false},
    {CAPU_MODE_GUIDED, 70, false, false, false},
    {CAPU_MODE_GUIDED, 50, false, false, false},
    {CAPU_MODE_GUIDED, 100, false, false, false},
    {CAPU_MODE_GUIDED, 200, false, false, false},
    {CAPU_MODE_GUIDED, 60, true, true, false},
    {CAPU_MODE_GUIDED, 100, true, true, false},
    {CAPU_MODE_GUIDED, 70, true, false, true},
    {CAPU_MODE_GUIDED, 50, true, false, true},
    {CAPU_MODE_GUIDED, BELOW_FLOOR, true, false, false},
    {CAPU_MODE_PASSIVE, 50, false, false, false},
    {CAPU_MODE_PASSIVE, 70, false, false, false},
    {CAPU_MODE_PASSIVE, 100, false, false, false},
    {CAPU_MODE_PASSIVE, 200, false, false, false},
    {CAPU_MODE_PASSIVE, FLOOR, false, false, false},
    {CAPU_MODE_PASSIVE, 50, false, true, false},
    {CAPU_MODE_PASSIVE, BELOW_FLOOR, false, false, false},
};

static const char *const planners[] = {"swap", "recompute", "lru", "manual"};

static const struct idiom *const tables[] = {idioms_memory, idioms_phases,    idioms_search,
                                             idioms_skips,  idioms_sequences, idioms_state,
                                             idioms_sums};

enum {
    RUNS = sizeof(runs) / sizeof(runs[0]),
    PLANNERS = sizeof(planners) / sizeof(planners[0]),
    TABLES = sizeof(tables) / sizeof(tables[0])
};

/* What the reference run has found out. */
struct needs {
    uint64_t live_peak_bytes;
    uint64_t floor_bytes;
};

static uint64_t budget_pages(const struct needs *needs, int percent)
{
    uint64_t bytes = percent == FLOOR         ? needs->floor_bytes
                     : percent == BELOW_FLOOR ? needs->floor_bytes - 1
                                              : needs->live_peak_bytes * (uint64_t)percent / 100;

    return bytes / RIG_PAGE;
}

static void expect_over_budget(const struct loop *loop)
{
    ck_assert_msg(loop->buffers.ended == CAPU_OVER_BUDGET, "%s: below the floor, but it ran",
                  loop->where);
    ck_assert_msg(strstr(loop->buffers.ended_text, "budget is") != NULL, "%s: %s", loop->where,
                  loop->buffers.ended_text);
}

static void run_in(const struct idiom *idiom, const struct needs *needs, const struct run *run,
                   const char *planner)
{
    static struct loop loop;
    struct loop_setting setting = {.mode = run->mode,
                                   .budget_pages = budget_pages(needs, run->percent),
                                   .planner = run->mode == CAPU_MODE_GUIDED ? planner : NULL,
                                   .waits = run->waits,
                                   .is_strict = run->is_strict,
                                   .keeps_contents = run->keeps_contents};

    loop_run(&loop, idiom, &setting);
    if (setting.budget_pages * RIG_PAGE < needs->floor_bytes) {
        expect_over_budget(&loop);
        return;
    }
    ck_assert_msg(loop.buffers.ended == CAPU_OK, "%s: %s", loop.where, loop.buffers.ended_text);
    ck_assert_msg(loop.buffers.loss_count == 0 || !run->keeps_contents,
                  "%s: contents were lost: %s", loop.where, loop.buffers.loss_text);
    if (run->mode == CAPU_MODE_GUIDED && run->waits && (idiom->flags & NEVER_GUIDED) == 0) {
        /* An idiom that changes has to be learnt first. */
        ck_assert_msg(2 * loop.guided >= loop.now || loop.unplanned > 0,
                      "%s: only %zu iterations were guided", loop.where, loop.guided);
    }
}

/* Runs the default planner in every setting, and each other one in some. A sample gives each
   program a few of the settings, and each setting a few of the programs. */
static void run_idiom(const struct idiom *idiom, size_t number)
{
    static struct loop loop;
    struct needs needs;
    size_t distance = 1 + 2 * (100 - effort_percent()) / effort_percent();

    loop_run(&loop, idiom,
             &(struct loop_setting){
                 .mode = CAPU_MODE_OFF, .budget_pages = UNLIMITED_PAGES, .waits = true});
    ck_assert_msg(loop.buffers.ended == CAPU_OK, "%s: %s", loop.where, loop.buffers.ended_text);
    needs =
        (struct needs){.live_peak_bytes = loop.live_peak_bytes, .floor_bytes = loop.floor_bytes};
    for (size_t i = 0; i < RUNS; i++) {
        if ((number + i) % distance == 0) {
            run_in(idiom, &needs, &runs[i], NULL);
        }
    }
    for (size_t i = 0; i < PLANNERS; i++) {
        if ((number + RUNS + i) % distance == 0) {
            run_in(idiom, &needs, &runs[i % 2], planners[i]);
        }
    }
}

static const struct idiom *idiom_at(size_t number)
{
    for (size_t i = 0; i < TABLES; i++) {
        for (const struct idiom *idiom = tables[i]; idiom->name != NULL; idiom++) {
            if (number-- == 0) {
                return idiom;
            }
        }
    }
    return NULL;
}

START_TEST(every_byte_is_right)
{
    const struct idiom *idiom = idiom_at((size_t)_i);
    const char *wanted = getenv("IDIOM");

    if (wanted == NULL || strstr(idiom->name, wanted) != NULL) {
        run_idiom(idiom, (size_t)_i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idioms");
    TCase *cases = tcase_create("idioms");
    int count = 0;

    while (idiom_at((size_t)count) != NULL) {
        count++;
    }
    tcase_add_loop_test(cases, every_byte_is_right, 0, count);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

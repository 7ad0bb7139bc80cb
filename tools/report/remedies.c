/*
 * Remedies for what made a reported iteration slow. A remedy is suggested only if what it can save
 * is worth it, and only from what the report proves: slow ops are compared with the median of
 * iterations of the same label and mode, waits with what the plan had predicted.
 */
#include "tools/report/account.h"

#include "base/printable.h"
#include "tools/output/output.h"

#include <inttypes.h>
#include <string.h>

/* The share of the time from which on something is mentioned. */
#define WORTH_MENTIONING 0.02
/* The share of the memory from which on edge pages are mentioned. */
#define EDGES_WORTH_MENTIONING 0.05

/* How much longer the ops themselves took than in the median iteration of the same kind. */
static uint64_t slower_ns(const struct account *account)
{
    return report_less(account->counters.compute_ns, account->kind->median_compute_ns);
}

/* Waits of a guided iteration: either its plan predicted them, or the link or the ops behaved in a
   way that the plan did not expect. Slower ops have advice of their own, so their share is
   deducted. */
static unsigned advise_on_waits(FILE *stream, const struct account *account)
{
    const struct reported *counters = &account->counters;
    uint64_t over_ns = report_less(counters->time_ns, counters->predicted_ns + slower_ns(account));
    char buffer[32];

    if (report_share(counters->stall_ns, counters->time_ns) < WORTH_MENTIONING) {
        return 0;
    }
    if (over_ns < counters->predicted_ns / 20) {
        fprintf(
            stream,
            "  - It took no longer than predicted: its plan includes these waits, or expects "
            "slower ops. If it\n    includes them, the link cannot copy more in time within this "
            "budget; --trace FILE shows other budgets.\n");
        return 1;
    }
    if (counters->install_ns > 0) {
        fprintf(stream, "  - Its plan was installed just before it, and what that brought back was "
                        "still on its way: such\n    waits are not those of a steady iteration.\n");
        return 1;
    }
    over_ns = over_ns < counters->stall_ns ? over_ns : counters->stall_ns;
    fprintf(
        stream,
        "  - Waits were up to %s longer than predicted: of the tensors requested in advance, "
        "%zu arrived late.\n    The link was slower than assumed, or the ops were faster. If this "
        "lasts, a new plan is made; if\n    that does not help, set d2h and h2d to the "
        "rates of the link.\n",
        human_ns(over_ns, buffer), account->ahead);
    return 1;
}

/* Whether the program runs in guided mode: the iteration says so, or another one had a plan. */
static bool is_guided_run(const struct report_file *file, const struct reported *counters)
{
    for (size_t i = 0; i < file->kind_count; i++) {
        if (strcmp(file->kinds[i].mode, "guided") == 0) {
            return true;
        }
    }
    return counters->guided_mode != 0;
}

/* Installing a plan costs time once. Only plans that keep changing call for action. */
static void advise_on_installing(FILE *stream, const struct account *account,
                                 const struct report_file *file)
{
    size_t count = 0;
    char buffer[32];

    for (size_t i = 0; i < file->count; i++) {
        count += file->iterations[i].kind == account->counters.kind &&
                 file->iterations[i].install_ns > 0;
    }
    fprintf(
        stream,
        "  - Installing a plan before this iteration took %s; %zu of the %zu iterations like it "
        "began with that.\n",
        human_ns(account->counters.install_ns, buffer), count, account->kind->count);
    if (count > 1 && count * 4 > account->kind->count) {
        fprintf(
            stream,
            "    Plans change too often. To keep them, use one label per shape, run iterations of "
            "one label in a row,\n    and use the same addresses in each.\n");
    }
}

static void print_lengths(FILE *stream, const struct plan_changes *changes)
{
    for (size_t i = 0; i < changes->length_count && i < PLAN_LENGTHS; i++) {
        fprintf(stream, "%s%" PRIu64, i > 0 ? ", " : "", changes->lengths[i]);
    }
    fprintf(stream, changes->length_count > PLAN_LENGTHS ? ", ... ops" : " ops");
}

/* What makes iterations of one label leave or change their plans. */
static void advise_on_mixture(FILE *stream, const struct plan_changes *changes)
{
    if (changes->length_count > 1) {
        fprintf(stream, "    They are of several kinds, with ");
        print_lengths(stream, changes);
        fprintf(stream, ". Give each kind that is known in advance a label\n    of its own "
                        "(capu_iteration_begin), and run iterations of one label in a row where "
                        "their order is free.\n");
    } else {
        fprintf(stream, "    They have the same number of ops, so names, operands or addresses "
                        "differ. Use the same addresses in each\n    (capu_realloc, or allocations "
                        "inside the iteration), or a label for each kind.\n");
    }
    if (changes->ended_early > 0) {
        fprintf(stream,
                "    %zu of those that left only ended early, as with an update that is skipped: "
                "their plan serves again.\n",
                changes->ended_early);
    }
}

/* Over all iterations of the label: they leave their plans, or each needs another one than the one
   before. Other remedies help little as long as this lasts. */
static unsigned advise_on_changes(FILE *stream, const struct account *account,
                                  const struct report_file *file)
{
    const struct plan_changes changes = plan_changes_of(file, account->kind->label);
    bool has_label = account->kind->label[0] != '\0';
    char time[32];

    if (!plan_changes_are_mixed(&changes) && !plan_changes_alternate(&changes)) {
        return 0;
    }
    fprintf(stream, "  - Of %zu iterations %s, %zu left their plan", changes.count,
            has_label ? "with this label" : "without a label", changes.left);
    if (changes.left > 0) {
        fprintf(stream, " (and took %s longer in all)", human_ns(changes.left_ns, time));
    }
    fprintf(stream,
            ", and %zu began with another\n    plan than the one before (installing took %s "
            "in all).\n",
            changes.changed, human_ns(changes.install_ns, time));
    if (plan_changes_are_mixed(&changes)) {
        advise_on_mixture(stream, &changes);
    }
    if (plan_changes_alternate(&changes)) {
        fprintf(stream,
                "    %zu of the changes came after an iteration with another label. Run iterations "
                "of one label in a row where\n    their order is free; otherwise this is what "
                "changing costs.\n",
                changes.switched);
    }
    return 1;
}

/* The passive iterations of the same label; NULL: too few of them to compare with, since the first
   is often slow. */
static const struct report_kind *passive_kind(const struct report_file *file,
                                              const struct report_kind *kind)
{
    for (size_t i = 0; i < file->kind_count; i++) {
        const struct report_kind *other = &file->kinds[i];

        if (strcmp(other->label, kind->label) == 0 && strcmp(other->mode, "passive") == 0 &&
            other->count > 1) {
            return other;
        }
    }
    return NULL;
}

/* A plan without places is not always faster than none. */
static unsigned advise_on_places(FILE *stream, const struct account *account,
                                 const struct report_file *file)
{
    const struct report_kind *passive = passive_kind(file, account->kind);
    char guided_time[32];
    char passive_time[32];
    char floor[32];

    if (account->counters.unplaced == 0 || passive == NULL ||
        report_share(report_less(account->kind->median_ns, passive->median_ns),
                     passive->median_ns) < WORTH_MENTIONING) {
        return 0;
    }
    fprintf(stream,
            "  - Iterations with this plan, which has no places, took %s, passive ones %s "
            "(medians). Use\n    CAPUCHIN_MODE=passive in this budget",
            human_ns(account->kind->median_ns, guided_time),
            human_ns(passive->median_ns, passive_time));
    if (account->counters.guided_floor_bytes > account->counters.budget_bytes) {
        fprintf(stream, ", or guided mode with at least %s",
                human_bytes(account->counters.guided_floor_bytes, floor));
    }
    fprintf(stream, ".\n");
    return 1;
}

/* Advice on plans, which change too often if `said_changes`: the iteration diverged, no plan was
 * found, plans changed, copies were late. */
static unsigned advise_on_plan(FILE *stream, const struct account *account,
                               const struct report_file *file, bool said_changes)
{
    const struct reported *counters = &account->counters;
    const char *plan_error = account_text(account, "plan_error");
    bool is_guided = strcmp(account->kind->mode, "guided") == 0;
    char text[PRINTABLE_BYTES];
    unsigned said = 0;

    if (counters->diverged != 0) {
        said++;
        fprintf(stream,
                "  - Op %" PRIu64
                " was not the planned one; from there on the iteration ran without a "
                "plan.%s\n",
                counters->diverged_at,
                said_changes ? ""
                             : " Give iterations\n    of another shape a label of their own "
                               "(capu_iteration_begin).");
    }
    if (plan_error[0] != '\0') {
        said++;
        fprintf(stream, "  - It had no plan: %s.\n", printable(plan_error, text));
        if (counters->retry_in > 0) {
            fprintf(stream,
                    "    It is tried again after %" PRIu64
                    " iterations. Give iterations of another shape a label of their own.\n",
                    counters->retry_in);
        }
    }
    if (report_share(counters->install_ns, counters->time_ns) >= WORTH_MENTIONING &&
        !said_changes) {
        said++;
        advise_on_installing(stream, account, file);
    }
    said += advise_on_places(stream, account, file);
    if (is_guided && account->ahead > 0 && counters->diverged == 0) {
        said += advise_on_waits(stream, account);
    }
    if (!is_guided && plan_error[0] == '\0' && counters->diverged == 0 &&
        report_share(counters->stall_ns, counters->time_ns) >= WORTH_MENTIONING) {
        said++;
        fprintf(
            stream,
            is_guided_run(file, counters)
                ? "  - It had no plan yet. With wait_for_plan the second iteration already "
                  "has one.\n"
                : "  - Passive mode brings tensors back when an op needs them. Guided mode does "
                  "it in advance:\n    CAPUCHIN_MODE=guided.\n");
    }
    return said;
}

static unsigned advise_on_budget(FILE *stream, const struct account *account, const char *trace)
{
    const struct reported *counters = &account->counters;
    uint64_t lost_ns = counters->stall_ns + counters->recompute_ns;
    const char *floor_op = account_text(account, "floor_op");
    unsigned said = 0;
    char first[32];
    char second[32];
    char name[PRINTABLE_BYTES];

    if (report_share(lost_ns, counters->time_ns) < WORTH_MENTIONING) {
        return 0;
    }
    if (counters->budget_bytes < counters->live_peak_bytes) {
        said++;
        fprintf(
            stream,
            "  - The budget costs up to %s, %.1f %% of this iteration. With %s nothing would be "
            "evicted.\n",
            human_ns(lost_ns, first), 100.0 * report_share(lost_ns, counters->time_ns),
            human_bytes(counters->live_peak_bytes, second));
        if (trace == NULL) {
            fprintf(
                stream,
                "    For budgets in between, record a trace in guided mode (CAPUCHIN_TRACE=FILE) "
                "and add --trace FILE.\n");
        }
    } else {
        said++;
        fprintf(
            stream,
            "  - The budget holds everything that is live at once, but tensors were evicted: "
            "passive mode discards dead\n    tensors only at the end of the iteration. A plan, or "
            "capu_free after the last use, avoids it.\n");
    }
    if (floor_op[0] != '\0' && counters->budget_bytes < counters->floor_bytes / 10 * 11 &&
        counters->next_floor_bytes < counters->floor_bytes / 10 * 9) {
        said++;
        fprintf(stream, "  - The op %s alone needs %s of the budget. Split it.\n",
                printable(floor_op, name), human_bytes(counters->floor_bytes, first));
    }
    return said;
}

/* Advice on the page size: another one would do better, or none is small enough. */
static unsigned advise_on_pages(FILE *stream, const struct reported *counters)
{
    char page[32];
    char floor[32];
    char edges[32];

    if (counters->better_page_bytes > 0) {
        fprintf(stream,
                "  - Pages of %s would lower the smallest budget to %s: do not set page_bytes "
                "(CAPUCHIN_PAGE).\n",
                human_bytes(counters->better_page_bytes, page),
                human_bytes(counters->better_floor_bytes, floor));
        return 1;
    }
    if (counters->page_bytes == counters->floor_page_bytes &&
        counters->slab_used_bytes < counters->slab_bytes / 2 &&
        report_share(counters->slab_bytes, counters->live_peak_bytes) >= EDGES_WORTH_MENTIONING) {
        fprintf(
            stream,
            "  - Slabs keep %s, and the small tensors in them take %s. A slab stays as long as one "
            "tensor is in it:\n    allocate small tensors that live long before those that do not, "
            "or together as one allocation.\n",
            human_bytes(counters->slab_bytes, edges), human_bytes(counters->slab_used_bytes, page));
        return 1;
    }
    if (report_share(counters->floor_edges_bytes, counters->live_peak_bytes) >=
        EDGES_WORTH_MENTIONING) {
        fprintf(
            stream,
            "  - Edge pages, which split tensors share, take %s, %.0f %% of what is needed "
            "without a limit. Split at\n    multiples of the page (%s), or allocate the tensors "
            "one by one.\n",
            human_bytes(counters->floor_edges_bytes, edges),
            100.0 * report_share(counters->floor_edges_bytes, counters->live_peak_bytes),
            human_bytes(counters->floor_page_bytes, page));
        return 1;
    }
    return 0;
}

static void advise_on_idling(FILE *stream, const struct reported *counters)
{
    char buffer[32];

    fprintf(stream, "  - The device was idle because the calling thread issued ops late. ");
    if (counters->host_wait_ns > 0) {
        fprintf(stream,
                "It waited %s for evictions\n    while the device had nothing to do, and spent the "
                "rest between ops.\n",
                human_ns(counters->host_wait_ns, buffer));
    } else {
        fprintf(stream, "It did not wait for\n    evictions: look at what it does between ops.\n");
    }
}

void remedies_print(FILE *stream, const struct account *account, const struct report_file *file,
                    const char *trace)
{
    const struct reported *counters = &account->counters;
    uint64_t usual_ns = account->kind->median_compute_ns;
    unsigned said_changes = advise_on_changes(stream, account, file);
    unsigned said = said_changes;

    if (report_share(slower_ns(account), counters->time_ns) >= 0.05) {
        said++;
        fprintf(
            stream,
            "  - The ops themselves took %.0f %% longer than in the median iteration like it. The "
            "cause is not memory,\n    but the machine (clocks, other work) or the program.\n",
            100.0 * report_share(slower_ns(account), usual_ns));
    }
    if (report_share(counters->waited_ns, counters->time_ns) >= WORTH_MENTIONING) {
        said++;
        fprintf(stream,
                "  - %.0f %% of the time it waited for others. With the reports of all ranks, "
                "'capuchin explain' says for which\n    of them, and why.\n",
                100.0 * report_share(counters->waited_ns, counters->time_ns));
    }
    said += advise_on_plan(stream, account, file, said_changes > 0);
    said += advise_on_budget(stream, account, trace);
    said += advise_on_pages(stream, counters);
    if (counters->is_timed && report_share(account_idle_ns(account), counters->time_ns) >= 0.05) {
        said++;
        advise_on_idling(stream, counters);
    }
    if (!counters->is_timed) {
        fprintf(stream,
                "  - Choose an iteration whose ops were timed: without -i, the slowest of them is "
                "explained.\n");
    } else if (said == 0) {
        fprintf(stream, "  Nothing: memory management cost less than %.0f %% of the time.\n",
                100.0 * WORTH_MENTIONING);
    }
}

/* Prints the account of an iteration, see explain.h. */
#include "tools/command/explain.h"

#include "base/printable.h"
#include "tools/output/output.h"
#include "tools/report/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The most lines of a list. */
enum { LISTED = 8, LISTED_HINTS = 40 };

void explain_kinds(const struct report_file *file)
{
    char median[32];
    char slowest[32];
    char label[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];

    printf("%zu iterations\n  %-20s %-8s %6s %14s %14s  %s\n", file->count, "label", "mode",
           "count", "median", "slowest", "found in");
    for (size_t i = 0; i < file->kind_count; i++) {
        const struct report_kind *kind = &file->kinds[i];
        const struct reported *worst = &file->iterations[kind->slowest];

        printf("  %s %s %6zu %14s %14s  iteration %" PRIu64 "\n",
               printable_column(kind->label[0] != '\0' ? kind->label : "(none)", 20, label),
               printable_column(kind->mode, 8, mode), kind->count,
               human_ns(kind->median_ns, median), human_ns(worst->time_ns, slowest),
               worst->iteration);
    }
}

/* Whether an earlier kind has the same label. */
static bool is_repeated(const struct report_file *file, size_t kind)
{
    for (size_t i = 0; i < kind; i++) {
        if (strcmp(file->kinds[i].label, file->kinds[kind].label) == 0) {
            return true;
        }
    }
    return false;
}

void explain_plans(const struct report_file *file)
{
    bool has_head = false;
    char time[32];
    char name[PRINTABLE_BYTES];

    for (size_t i = 0; i < file->kind_count; i++) {
        const char *label = file->kinds[i].label;
        struct plan_changes changes = plan_changes_of(file, label);

        if (is_repeated(file, i) || (changes.left == 0 && changes.changed == 0)) {
            continue;
        }
        if (!has_head) {
            printf("  %-20s %18s %18s %14s\n", "plans of", "left by", "changed before",
                   "installing");
            has_head = true;
        }
        printf("  %s %7zu iterations %7zu iterations %14s\n",
               printable_column(label[0] != '\0' ? label : "(none)", 20, name), changes.left,
               changes.changed, human_ns(changes.install_ns, time));
    }
}

static double part(uint64_t ns, uint64_t whole)
{
    return whole > 0 ? (double)ns / (double)whole : 0.0;
}

static void print_time(const char *what, uint64_t ns, uint64_t whole)
{
    char buffer[32];

    printf("  %-44s %14s %6.1f %%\n", what, human_ns(ns, buffer), 100.0 * part(ns, whole));
}

static uint64_t less(uint64_t from, uint64_t by)
{
    return from > by ? from - by : 0;
}

/* Which plan was active, and for how long the next one had been in the making. */
static void print_planning(const struct reported *counters)
{
    if (counters->plan_stage > 0) {
        printf("stage %" PRIu64 " of its plan was active", counters->plan_stage);
    } else if (counters->planning_ns > 0) {
        printf("it had no plan yet");
    } else {
        return;
    }
    if (counters->planning_ns > 0) {
        printf("; planning, %.2f s so far", (double)counters->planning_ns / 1e9);
    }
    printf("\n");
}

/* The link as the plan was made for, and as it was. */
static void print_link(const struct reported *counters)
{
    if (counters->plan_d2h_bytes_per_s == 0) {
        return;
    }
    printf("planned for %.2f GB/s out and %.2f GB/s back",
           (double)counters->plan_d2h_bytes_per_s / 1e9,
           (double)counters->plan_h2d_bytes_per_s / 1e9);
    if (counters->seen_d2h_bytes_per_s > 0) {
        printf("; copies out had %.2f GB/s", (double)counters->seen_d2h_bytes_per_s / 1e9);
    }
    if (counters->seen_h2d_bytes_per_s > 0) {
        printf("; copies back had %.2f GB/s", (double)counters->seen_h2d_bytes_per_s / 1e9);
    }
    printf("\n");
}

static void print_where(const struct account *account)
{
    const struct reported *counters = &account->counters;
    char buffer[32];
    char size[32];
    char label[PRINTABLE_BYTES];
    char mode[PRINTABLE_BYTES];

    printf("\n");
    if (counters->rank_count > 0) {
        printf("rank %" PRIu64 " of %" PRIu64 ", ", counters->rank, counters->rank_count);
    }
    printf("iteration %" PRIu64 "%s%s, %s mode: %s", counters->iteration,
           account->kind->label[0] != '\0' ? " " : "", printable(account->kind->label, label),
           printable(account->kind->mode, mode), human_ns(counters->time_ns, buffer));
    if (counters->predicted_ns > 0) {
        printf(", predicted %s", human_ns(counters->predicted_ns, buffer));
    }
    printf("\n");
    if (account->kind->count > 1) {
        printf("the median of this label and mode is %s\n",
               human_ns(account->kind->median_ns, buffer));
    }
    print_planning(counters);
    print_link(counters);
    printf("\nwhere the time went\n");
    if (!counters->is_timed) {
        printf(
            "  unknown: its ops were not timed. In guided mode only some iterations are, in mode "
            "off none; CAPUCHIN_SAMPLE_EVERY=1 times all\n");
        return;
    }
    print_time("ops", counters->compute_ns, counters->time_ns);
    if (counters->exchange_ns > 0) {
        printf("    of that %s to exchange %s with others\n",
               human_ns(counters->exchange_ns, buffer),
               human_bytes(counters->exchanged_bytes, size));
    }
    if (counters->waited_ns > 0) {
        print_time("waiting for others", counters->waited_ns, counters->time_ns);
    }
    print_time("waiting for tensors to return", account->back_ns, counters->time_ns);
    print_time("waiting for free memory",
               less(counters->stall_ns, account->back_ns + account->replay_ns), counters->time_ns);
    print_time("waiting before replays", account->replay_ns, counters->time_ns);
    print_time("replays", counters->recompute_ns, counters->time_ns);
    print_time("idle: no op was issued in time", account_idle_ns(account), counters->time_ns);
}

/* The budget, and how much of it there is compared with a run without a limit. */
static void print_budget_share(const struct reported *counters)
{
    char budget[32];
    char peak[32];

    human_bytes(counters->budget_bytes, budget);
    human_bytes(counters->live_peak_bytes, peak);
    if (counters->budget_bytes > counters->live_peak_bytes) {
        printf("  budget %s, more than the %s that a run without a limit needs\n", budget, peak);
    } else {
        printf("  budget %s, %.0f %% of the %s that a run without a limit needs\n", budget,
               100.0 * part(counters->budget_bytes, counters->live_peak_bytes), peak);
    }
}

/* What the smallest budget consists of. Reports of earlier versions do not say. */
static void print_floor_parts(const struct reported *counters)
{
    char operands[32];
    char edges[32];
    char slabs[32];
    char page[32];

    printf("    operands %s, edge pages %s, slabs %s; in pages of %s\n",
           human_bytes(counters->floor_operands_bytes, operands),
           human_bytes(counters->floor_edges_bytes, edges),
           human_bytes(counters->floor_slabs_bytes, slabs),
           human_bytes(counters->floor_page_bytes, page));
}

/* The program may need more than this iteration, in others or outside of them. */
static void print_program_floor(const struct account *account)
{
    const struct reported *counters = &account->counters;
    const char *op = account_text(account, "program_floor_op");
    char bytes[32];
    char name[PRINTABLE_BYTES];

    if (counters->program_floor_bytes <= counters->floor_bytes) {
        return;
    }
    printf("  the program needs %s at least, ", human_bytes(counters->program_floor_bytes, bytes));
    if (op[0] != '\0') {
        printf("for %s outside iterations\n", printable(op, name));
    } else {
        printf("in another iteration\n");
    }
}

static void print_memory(const struct account *account)
{
    const struct reported *counters = &account->counters;
    const char *floor_op = account_text(account, "floor_op");
    char first[32];
    char second[32];
    char third[32];
    char name[PRINTABLE_BYTES];

    printf("\nmemory\n");
    print_budget_share(counters);
    if (counters->unplaced != 0) {
        printf("  the plan has no places for tensors: memory was mapped %" PRIu64
               " times and unmapped %" PRIu64 " times\n",
               counters->map_count, counters->unmap_count);
    }
    printf("  copied out %s, back %s; discarded without a copy %s\n",
           human_bytes(counters->evicted_bytes, first),
           human_bytes(counters->prefetched_bytes, second),
           human_bytes(counters->dropped_bytes, third));
    printf("  smallest possible budget %s", human_bytes(counters->floor_bytes, first));
    if (floor_op[0] != '\0') {
        printf(", set by %s; without that op %s", printable(floor_op, name),
               human_bytes(counters->next_floor_bytes, second));
    }
    printf("\n");
    if (counters->page_bytes > 0) {
        print_floor_parts(counters);
    }
    print_program_floor(account);
}

/* What an op waited for. */
static const char *wait_reason(const struct wait *wait)
{
    return wait->replay[0] != '\0' ? wait->replay : wait->name != NULL ? wait->name : "free memory";
}

static void print_waits(const struct account *account)
{
    char time[32];
    char size[32];
    char op[PRINTABLE_BYTES];
    char reason[PRINTABLE_BYTES];

    if (account->wait_count == 0) {
        return;
    }
    printf("\nops that waited longest (%zu waited)\n"
           "  %-28s %6s %14s %14s  %s\n",
           account->wait_count, "op", "number", "waited", "copied back", "for");
    for (size_t i = 0; i < account->wait_count && i < LISTED; i++) {
        const struct wait *wait = &account->waits[i];

        printf("  %s %6" PRIu64 " %14s %14s  %s%s", printable_column(wait->op, 28, op),
               wait->access, human_ns(wait->ns, time), human_bytes(wait->bytes, size),
               wait->replay[0] != '\0' ? "a replay of " : "", printable(wait_reason(wait), reason));
        if (wait->count > 1) {
            printf(" and %zu more", wait->count - 1);
        }
        printf(wait->ahead > 0 ? ", requested in advance\n" : "\n");
    }
}

static void print_movers(const struct account *account)
{
    char size[32];
    char out[32];
    char in[32];
    char time[32];
    char name[PRINTABLE_BYTES];

    if (account->mover_count == 0) {
        return;
    }
    printf("\ntensors moved most (%zu were evicted)\n  %-28s %14s %14s %14s %14s\n",
           account->mover_count, "tensor", "size", "out", "back", "waited for");
    for (size_t i = 0; i < account->mover_count && i < LISTED; i++) {
        const struct mover *mover = &account->movers[i];

        printf("  %s %14s %14s %14s %14s%s\n", printable_column(mover->name, 28, name),
               human_bytes(mover->bytes, size), human_bytes(mover->out_bytes, out),
               human_bytes(mover->in_bytes, in),
               account->counters.is_timed ? human_ns(mover->ns, time) : "not timed",
               mover->recomputed > 0 ? "  recomputed" : "");
    }
}

static void print_hints(const struct account *account)
{
    size_t listed = 0;
    char name[PRINTABLE_BYTES];
    char because[PRINTABLE_BYTES];

    if (account->ignored == 0) {
        return;
    }
    printf("\nhints that the plan does not follow (of %zu tensors)\n  %-28s %-10s %s\n",
           account->ignored, "tensor", "hint", "why not");
    for (size_t i = 0; i < account->mover_count && listed < LISTED_HINTS; i++) {
        const struct mover *mover = &account->movers[i];

        if (mover->ignored_hint[0] != '\0') {
            printf("  %s %-10.10s %s\n", printable_column(mover->name, 28, name),
                   mover->ignored_hint, printable(mover->because, because));
            listed++;
        }
    }
    if (listed < account->ignored) {
        printf("  and %zu more, in the report file\n", account->ignored - listed);
    }
}

void explain_account(const struct account *account)
{
    print_where(account);
    print_memory(account);
    print_waits(account);
    print_movers(account);
    print_hints(account);
}

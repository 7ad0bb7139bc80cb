/*
 * Attributes the waits and the traffic of an iteration, and prints what it found.
 *
 * The report lists evictions, each with the wait at its back-access, and the other stalls. All
 * tensors that return for one op share that op's wait, since the op waits once, for the last of
 * them; adding their waits up would count the same time several times.
 */
#include "tools/report/account.h"

#include "base/printable.h"
#include "tools/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static uint64_t number_of(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));

    return value > 0 ? (uint64_t)value : 0;
}

static struct wait *find_wait(struct account *account, uint64_t access)
{
    struct wait *wait;

    for (size_t i = account->wait_count; i-- > 0;) {
        if (account->waits[i].access == access && account->waits[i].replay[0] == '\0') {
            return &account->waits[i];
        }
    }
    wait = &account->waits[account->wait_count++];
    *wait = (struct wait){.access = access, .replay = ""};
    return wait;
}

static struct mover *find_mover(struct account *account, const char *name, uint64_t bytes)
{
    struct mover *mover;

    for (size_t i = 0; i < account->mover_count; i++) {
        if (account->movers[i].bytes == bytes && strcmp(account->movers[i].name, name) == 0) {
            return &account->movers[i];
        }
    }
    mover = &account->movers[account->mover_count++];
    *mover = (struct mover){.name = name, .bytes = bytes, .ignored_hint = "", .because = ""};
    return mover;
}

static void take_eviction(struct account *account, const json_t *eviction)
{
    const char *method = text_of(eviction, "method");
    const char *name = text_of(eviction, "tensor");
    uint64_t bytes = number_of(eviction, "bytes");
    uint64_t ns = number_of(eviction, "wait_ns");
    uint64_t access = number_of(eviction, "back_access");
    bool is_back = json_is_integer(json_object_get(eviction, "back_access"));
    bool is_copied = strcmp(method, "swap") == 0 || strcmp(method, "clean") == 0;
    struct mover *mover = find_mover(account, name, bytes);
    struct wait *wait;

    mover->out_bytes += strcmp(method, "swap") == 0 ? bytes : 0;
    mover->recomputed += strcmp(method, "recompute") == 0;
    if (mover->ignored_hint[0] == '\0' && text_of(eviction, "ignored_hint")[0] != '\0') {
        mover->ignored_hint = text_of(eviction, "ignored_hint");
        mover->because = text_of(eviction, "ignored_because");
        account->ignored++;
    }
    if (!is_back) {
        return;
    }
    mover->in_bytes += is_copied ? bytes : 0;
    mover->ns += ns;
    if (ns == 0) {
        return;
    }
    wait = find_wait(account, access);
    wait->op = text_of(eviction, "back_op");
    wait->ns = ns;
    wait->bytes += is_copied ? bytes : 0;
    wait->count++;
    wait->ahead += number_of(eviction, "in_trigger") < access;
    if (bytes > wait->largest) {
        wait->largest = bytes;
        wait->name = name;
    }
}

/* An op that stalled although no tensor returned for it waited for free memory. Of a replay the
   report does not say what it waited for. */
static void take_stall(struct account *account, const json_t *stall)
{
    const char *replay = text_of(stall, "replay");
    bool is_after_ops = json_is_null(json_object_get(stall, "access"));
    uint64_t access = is_after_ops ? account->counters.op_count : number_of(stall, "access");
    uint64_t ns = number_of(stall, "wait_ns");
    struct wait *wait;

    if (replay[0] == '\0') {
        wait = find_wait(account, access);
    } else {
        wait = &account->waits[account->wait_count++];
        *wait = (struct wait){.access = access, .replay = replay};
        account->replay_ns += ns;
    }
    wait->op = is_after_ops ? "(after the last op)" : text_of(stall, "op");
    wait->ns = ns;
}

static int by_wait(const void *left, const void *right)
{
    const struct wait *a = left;
    const struct wait *b = right;

    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return a->access != b->access ? (a->access < b->access ? -1 : 1) : strcmp(a->replay, b->replay);
}

static int by_moved(const void *left, const void *right)
{
    const struct mover *a = left;
    const struct mover *b = right;
    uint64_t moved_a = a->out_bytes + a->in_bytes;
    uint64_t moved_b = b->out_bytes + b->in_bytes;

    return moved_a != moved_b ? (moved_a > moved_b ? -1 : 1) : strcmp(a->name, b->name);
}

void account_finish(struct account *account)
{
    free(account->waits);
    free(account->movers);
    json_decref(account->line);
    *account = (struct account){0};
}

bool account_init(struct account *account, const struct report_file *file,
                  const struct reported *iteration)
{
    const json_t *evictions;
    const json_t *stalls;
    size_t stall_count;
    size_t count;

    *account = (struct account){.counters = *iteration, .kind = &file->kinds[iteration->kind]};
    account->line = report_file_line(file, iteration);
    if (account->line == NULL) {
        return false;
    }
    evictions = json_object_get(account->line, "evictions");
    count = json_array_size(evictions);
    stalls = json_object_get(account->line, "stalls");
    stall_count = json_array_size(stalls);
    account->waits = malloc((count + stall_count + 1) * sizeof(*account->waits));
    account->movers = malloc((count + 1) * sizeof(*account->movers));
    if (account->waits == NULL || account->movers == NULL) {
        say("out of memory for %zu evictions", count);
        account_finish(account);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        take_eviction(account, json_array_get(evictions, i));
    }
    for (size_t i = 0; i < stall_count; i++) {
        take_stall(account, json_array_get(stalls, i));
    }
    for (size_t i = 0; i < account->wait_count; i++) {
        account->back_ns += account->waits[i].count > 0 ? account->waits[i].ns : 0;
        account->ahead += account->waits[i].ahead;
    }
    qsort(account->waits, account->wait_count, sizeof(*account->waits), by_wait);
    qsort(account->movers, account->mover_count, sizeof(*account->movers), by_moved);
    return true;
}

const char *account_text(const struct account *account, const char *key)
{
    return text_of(account->line, key);
}

uint64_t account_idle_ns(const struct account *account)
{
    const struct reported *counters = &account->counters;
    uint64_t known_ns =
        counters->compute_ns + counters->waited_ns + counters->stall_ns + counters->recompute_ns;

    return report_less(counters->time_ns, known_ns);
}

/* Below so many iterations, plans that change are those of a program that has just begun. */
enum { ENOUGH = 8 };

static void note_length(struct plan_changes *changes, uint64_t op_count)
{
    for (size_t i = 0; i < changes->length_count && i < PLAN_LENGTHS; i++) {
        if (changes->lengths[i] == op_count) {
            return;
        }
    }
    if (changes->length_count < PLAN_LENGTHS) {
        changes->lengths[changes->length_count] = op_count;
    }
    changes->length_count += changes->length_count <= PLAN_LENGTHS;
}

static bool has_label(const struct report_file *file, const struct reported *iteration,
                      const char *label)
{
    return strcmp(file->kinds[iteration->kind].label, label) == 0;
}

static bool is_guided(const struct report_file *file, const struct reported *iteration)
{
    return strcmp(file->kinds[iteration->kind].mode, "guided") == 0;
}

struct plan_changes plan_changes_of(const struct report_file *file, const char *label)
{
    struct plan_changes changes = {0};
    uint64_t kept_ns = 0;
    uint64_t left_ns = 0;
    size_t kept = 0;

    for (size_t i = 0; i < file->count; i++) {
        const struct reported *iteration = &file->iterations[i];

        if (!has_label(file, iteration, label)) {
            continue;
        }
        changes.count++;
        changes.total_ns += iteration->time_ns;
        if (is_guided(file, iteration)) {
            note_length(&changes, iteration->op_count);
        }
        if (iteration->install_ns > 0) {
            changes.changed += changes.has_plan;
            changes.switched += changes.has_plan && i > 0 && !has_label(file, iteration - 1, label);
            changes.has_plan = true;
        }
        changes.install_ns += iteration->install_ns;
        if (iteration->diverged != 0) {
            changes.left++;
            changes.ended_early += iteration->diverged_at == iteration->op_count;
            left_ns += iteration->time_ns;
        } else if (is_guided(file, iteration)) {
            kept++;
            kept_ns += iteration->time_ns;
        }
    }
    if (kept > 0 && left_ns > kept_ns / kept * changes.left) {
        changes.left_ns = left_ns - kept_ns / kept * changes.left;
    }
    return changes;
}

bool plan_changes_are_mixed(const struct plan_changes *changes)
{
    return changes->count >= ENOUGH &&
           (changes->left * 10 >= changes->count ||
            (changes->changed - changes->switched) * 4 >= changes->count);
}

bool plan_changes_alternate(const struct plan_changes *changes)
{
    return changes->count >= ENOUGH && changes->switched * 4 >= changes->count;
}

/* The account as text. */

/* The most lines of a list. */
enum { LISTED = 8, LISTED_HINTS = 40 };

void account_print_kinds(const struct report_file *file)
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

void account_print_plans(const struct report_file *file)
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

static void print_time(const char *what, uint64_t ns, uint64_t whole)
{
    char buffer[32];

    printf("  %-44s %14s %6.1f %%\n", what, human_ns(ns, buffer), 100.0 * report_share(ns, whole));
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
               report_less(counters->stall_ns, account->back_ns + account->replay_ns),
               counters->time_ns);
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
               100.0 * report_share(counters->budget_bytes, counters->live_peak_bytes), peak);
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

void account_print(const struct account *account)
{
    print_where(account);
    print_memory(account);
    print_waits(account);
    print_movers(account);
    print_hints(account);
}

/*
 * Attributes the waits and the traffic of an iteration.
 *
 * The report lists evictions, each with the wait at its back-access, and the other stalls. All
 * tensors that return for one op share that op's wait, since the op waits once, for the last of
 * them; adding their waits up would count the same time several times.
 */
#include "tools/report/account.h"

#include "tools/output/output.h"

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

    return counters->time_ns > known_ns ? counters->time_ns - known_ns : 0;
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

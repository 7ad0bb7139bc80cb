/* How often plans are left and changed, see plan_changes.h. */
#include "tools/report/plan_changes.h"

#include <string.h>

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

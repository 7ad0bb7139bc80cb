/* Finding tensors by address, compared with a shadow model that knows the tensor at every unit; the
   lists of tensors. */
#include "runtime/tensor/tensors.h"

#include "tests/support/malloc_faults.h"
#include "tests/support/seed.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { UNIT = 64, UNITS = 4096, LONGEST = 40, STEPS = 12000 };

/* Addresses are only compared, but they point into an array so that pointer arithmetic is defined.
 */
static unsigned char memory[UNITS * UNIT + 1];

static struct tensor *new_tensor(size_t unit, size_t units, uint64_t spare)
{
    struct tensor *tensor = calloc(1, sizeof(*tensor));

    ck_assert_ptr_nonnull(tensor);
    tensor->address = memory + unit * UNIT;
    tensor->bytes = units * UNIT - spare;
    return tensor;
}

static struct tensor *added(struct tensors *tensors, size_t unit, size_t units, uint64_t spare)
{
    struct tensor *tensor = new_tensor(unit, units, spare);

    ck_assert_int_eq(tensors_add(tensors, tensor), CAPU_OK);
    return tensor;
}

START_TEST(an_empty_table_finds_nothing)
{
    struct tensors tensors = {0};

    ck_assert_ptr_null(tensors_find(&tensors, memory));
    ck_assert_ptr_null(tensors_find(&tensors, NULL));
    ck_assert_ptr_null(tensors_find_freed(&tensors, memory));
    ck_assert(!tensors_was_freed(&tensors, memory));
    ck_assert(!tensors_was_freed(&tensors, NULL));
    ck_assert_ptr_null(tensors_any(&tensors));
    tensors_finish(&tensors);
    tensors_finish(&tensors);
}
END_TEST

/* Adjacent tensors share no address, and the address after a tensor's last byte is not part of it.
 */
START_TEST(interior_addresses_and_neighbours)
{
    struct tensors tensors = {0};
    struct tensor *left = added(&tensors, 10, 5, 0);
    struct tensor *middle = added(&tensors, 15, 1, 63); /* one byte */
    struct tensor *right = added(&tensors, 16, 5, 1);

    ck_assert_ptr_null(tensors_find(&tensors, memory + 10 * UNIT - 1));
    for (size_t i = 0; i < (size_t)5 * UNIT; i++) {
        ck_assert_ptr_eq(tensors_find(&tensors, memory + 10 * UNIT + i), left);
    }
    ck_assert_ptr_eq(tensors_find(&tensors, memory + 15 * UNIT), middle);
    ck_assert_ptr_null(tensors_find(&tensors, memory + 15 * UNIT + 1));
    ck_assert_ptr_null(tensors_find(&tensors, memory + 16 * UNIT - 1));
    ck_assert_ptr_eq(tensors_find(&tensors, memory + 16 * UNIT), right);
    ck_assert_ptr_eq(tensors_find(&tensors, tensor_end(right) - 1), right);
    ck_assert_ptr_null(tensors_find(&tensors, tensor_end(right)));
    tensors_remove(&tensors, middle);
    ck_assert_ptr_null(tensors_find(&tensors, memory + 15 * UNIT));
    ck_assert_ptr_eq(tensors_find(&tensors, memory + 15 * UNIT - 1), left);
    tensors_finish(&tensors);
    free(left);
    free(middle);
    free(right);
}
END_TEST

START_TEST(a_freed_address_is_remembered_until_reused)
{
    struct tensors tensors = {0};
    struct tensor *old = added(&tensors, 1, 4, 0);
    struct tensor *young;

    old->name = "old";
    ck_assert_ptr_null(tensors_freed_name(&tensors, old->address));
    tensors_remove(&tensors, old);
    ck_assert_uint_eq(tensors.live_count, 0);
    ck_assert_ptr_null(tensors_find(&tensors, old->address));
    ck_assert_ptr_eq(tensors_find_freed(&tensors, old->address), old);
    ck_assert(tensors_was_freed(&tensors, old->address));
    ck_assert_ptr_null(tensors_find_freed(&tensors, memory + UNIT + 1)); /* starts only */
    ck_assert(!tensors_was_freed(&tensors, memory + UNIT + 1));
    tensors_forget(&tensors, old);
    ck_assert_ptr_null(tensors_find_freed(&tensors, old->address));
    ck_assert(tensors_was_freed(&tensors, old->address));
    ck_assert_str_eq(tensors_freed_name(&tensors, old->address), "old");
    ck_assert_uint_eq(tensors.starts.count, 1);

    /* A new tensor got the address before the old one was forgotten: it stays findable. */
    young = added(&tensors, 1, 2, 0);
    ck_assert(!tensors_was_freed(&tensors, young->address));
    ck_assert_ptr_null(tensors_freed_name(&tensors, young->address));
    ck_assert_ptr_null(tensors_find_freed(&tensors, young->address));
    tensors_forget(&tensors, old);
    ck_assert_ptr_eq(tensors_find(&tensors, young->address), young);
    ck_assert_uint_eq(tensors.starts.count, 1);
    tensors_finish(&tensors);
    free(old);
    free(young);
}
END_TEST

/* A start that was freed may lie within a tensor now. */
START_TEST(a_longer_one_takes_over)
{
    struct tensors tensors = {0};
    struct tensor *piece = added(&tensors, 4, 2, 0);
    struct tensor *next = added(&tensors, 6, 2, 0);
    struct tensor *whole = new_tensor(4, 4, 0);

    tensors_remove(&tensors, next);
    tensors_replace(&tensors, piece, whole);
    ck_assert_uint_eq(tensors.live_count, 1);
    ck_assert_ptr_eq(tensors_find(&tensors, piece->address), whole);
    ck_assert_ptr_eq(tensors_find(&tensors, next->address), whole);
    ck_assert_ptr_eq(tensors_find(&tensors, memory + 8 * UNIT - 1), whole);
    ck_assert_ptr_eq(tensors_find_freed(&tensors, next->address), next);
    ck_assert_ptr_eq(tensors_any(&tensors), whole);
    tensors_replace(&tensors, whole, piece);
    ck_assert_ptr_null(tensors_find(&tensors, next->address));
    tensors_finish(&tensors);
    free(piece);
    free(next);
    free(whole);
}
END_TEST

/* An interior address that was looked up is remembered, but only as long as it is right. */
START_TEST(a_remembered_address_is_checked)
{
    struct tensors tensors = {0};
    struct tensor *whole = added(&tensors, 4, 4, 0);
    struct tensor *half = new_tensor(4, 2, 0);
    struct tensor *rest;
    const unsigned char *inside = memory + 7 * UNIT;

    ck_assert_ptr_eq(tensors_find(&tensors, inside), whole);
    ck_assert_ptr_eq(tensors_find(&tensors, inside), whole);
    tensors_replace(&tensors, whole, half); /* it no longer reaches that far */
    ck_assert_ptr_null(tensors_find(&tensors, inside));
    rest = added(&tensors, 6, 2, 0);
    ck_assert_ptr_eq(tensors_find(&tensors, inside), rest);
    tensors_remove(&tensors, rest);
    ck_assert_ptr_null(tensors_find(&tensors, inside));
    tensors_replace(&tensors, half, whole);
    ck_assert_ptr_eq(tensors_find(&tensors, inside), whole);
    tensors_finish(&tensors);
    free(whole);
    free(half);
    free(rest);
}
END_TEST

/* A start address: its last tensor (NULL: forgotten), and whether that was removed. */
struct start {
    struct tensor *tensor;
    bool is_removed;
};

struct shadow {
    struct tensors tensors;
    struct tensor *holders[UNITS];
    struct start starts[UNITS];
    size_t live;
    size_t used; /* starts ever used */
};

static size_t unit_of(const struct tensor *tensor)
{
    return (size_t)((unsigned char *)tensor->address - memory) / UNIT;
}

static size_t units_of(const struct tensor *tensor)
{
    return (size_t)(tensor->bytes + UNIT - 1) / UNIT;
}

static void shadow_add(struct shadow *shadow, size_t unit, size_t units, uint64_t spare)
{
    struct start *start = &shadow->starts[unit];
    struct tensor *old = start->is_removed ? start->tensor : NULL;
    struct tensor *tensor;

    for (size_t i = unit; i < unit + units; i++) {
        if (i >= UNITS || shadow->holders[i] != NULL) {
            return;
        }
    }
    shadow->used += start->tensor == NULL && !start->is_removed;
    tensor = added(&shadow->tensors, unit, units, spare);
    if (old != NULL) { /* remembered until now */
        tensors_forget(&shadow->tensors, old);
        free(old);
    }
    *start = (struct start){tensor, false};
    for (size_t i = unit; i < unit + units; i++) {
        shadow->holders[i] = tensor;
    }
    shadow->live++;
}

static void shadow_remove(struct shadow *shadow, size_t unit, bool forgets)
{
    struct tensor *tensor = shadow->holders[unit];
    struct start *start;

    if (tensor == NULL) {
        return;
    }
    start = &shadow->starts[unit_of(tensor)];
    tensors_remove(&shadow->tensors, tensor);
    for (size_t i = unit_of(tensor), end = i + units_of(tensor); i < end; i++) {
        shadow->holders[i] = NULL;
    }
    start->is_removed = true;
    shadow->live--;
    if (forgets) {
        tensors_forget(&shadow->tensors, tensor);
        free(tensor);
        start->tensor = NULL;
    }
}

/* Compares all answers about one byte. */
static void shadow_compare(struct shadow *shadow, size_t unit, size_t byte)
{
    const unsigned char *address = memory + unit * UNIT + byte;
    const struct start *start = &shadow->starts[unit];
    struct tensor *holder = shadow->holders[unit];
    bool is_start = byte == 0;

    if (holder != NULL && address >= tensor_end(holder)) {
        holder = NULL; /* in the unused rest of the last unit */
    }
    ck_assert_ptr_eq(tensors_find(&shadow->tensors, address), holder);
    ck_assert_int_eq(tensors_was_freed(&shadow->tensors, address), is_start && start->is_removed);
    ck_assert_ptr_eq(tensors_find_freed(&shadow->tensors, address),
                     is_start && start->is_removed ? start->tensor : NULL);
}

struct walk {
    struct shadow *shadow;
    const unsigned char *end;
    size_t count;
};

static void visit(struct tensor *tensor, void *data)
{
    struct walk *walk = data;

    ck_assert(walk->end == NULL || (unsigned char *)tensor->address >= walk->end);
    ck_assert_ptr_eq(walk->shadow->holders[unit_of(tensor)], tensor);
    walk->end = tensor_end(tensor);
    walk->count++;
}

static void shadow_compare_all(struct shadow *shadow)
{
    struct walk walk = {.shadow = shadow};

    tensors_each(&shadow->tensors, visit, &walk);
    ck_assert_uint_eq(walk.count, shadow->live);
    ck_assert_uint_eq(shadow->tensors.live_count, shadow->live);
    ck_assert_uint_eq(shadow->tensors.starts.count, shadow->used);
    for (size_t unit = 0; unit < UNITS; unit++) {
        shadow_compare(shadow, unit, 0);
        shadow_compare(shadow, unit, UNIT - 1);
    }
}

START_TEST(random_changes_match_the_shadow)
{
    static struct shadow shadow;
    uint64_t seed = seed_start("tensors");

    for (size_t step = 0; step < STEPS; step++) {
        size_t unit = seed_below(&seed, UNITS);

        /* Growing and shrinking phases alternate, so the table gets both sparse and dense. */
        if (seed_below(&seed, 10) < (step / 2000 % 2 == 0 ? 7 : 3)) {
            shadow_add(&shadow, unit, 1 + seed_below(&seed, LONGEST), seed_below(&seed, UNIT));
        } else {
            shadow_remove(&shadow, unit, seed_below(&seed, 2) == 0);
        }
        shadow_compare(&shadow, unit, 0);
        shadow_compare(&shadow, seed_below(&seed, UNITS), seed_below(&seed, UNIT));
        if (step % 2000 == 1999) {
            shadow_compare_all(&shadow);
        }
    }
    while (shadow.live > 0) {
        struct tensor *any = tensors_any(&shadow.tensors);

        ck_assert_ptr_nonnull(any);
        shadow_remove(&shadow, unit_of(any), true);
    }
    ck_assert_ptr_null(tensors_any(&shadow.tensors));
    shadow_compare_all(&shadow);
    tensors_finish(&shadow.tensors);
    for (size_t unit = 0; unit < UNITS; unit++) {
        free(shadow.starts[unit].tensor);
    }
}
END_TEST

/* If any allocation fails, the tensor is absent and everything else is unchanged. */
START_TEST(a_failed_add_changes_nothing)
{
    struct tensors tensors = {0};
    static struct tensor *all[1000];
    size_t failures = 0;

    for (size_t i = 0; i < 1000; i++) {
        all[i] = new_tensor(i, 1, 0);
        for (uint64_t call = 1;; call++) {
            capu_status status;

            malloc_faults_arm(call, false);
            status = tensors_add(&tensors, all[i]);
            malloc_faults_arm(0, false);
            if (malloc_faults_hits() == 0) {
                ck_assert_int_eq(status, CAPU_OK);
                break;
            }
            failures++;
            ck_assert_int_eq(status, CAPU_NO_HOST_MEMORY);
            ck_assert_uint_eq(tensors.live_count, i);
            ck_assert_ptr_null(tensors_find(&tensors, all[i]->address));
            if (i > 0) {
                ck_assert_ptr_eq(tensors_find(&tensors, all[i - 1]->address), all[i - 1]);
            }
        }
    }
    ck_assert_uint_gt(failures, 2); /* only the table's: libc allocates the nodes of the tree */
    for (size_t i = 0; i < 1000; i++) {
        ck_assert_ptr_eq(tensors_find(&tensors, memory + i * UNIT + UNIT / 2), all[i]);
    }
    tensors_finish(&tensors);
    for (size_t i = 0; i < 1000; i++) {
        free(all[i]);
    }
}
END_TEST

static void check_list(const struct tensor_list *list, size_t link, struct tensor *tensors,
                       const size_t *order, size_t count)
{
    struct tensor *previous = NULL;
    struct tensor *tensor = list->head;

    ck_assert_uint_eq(list->count, count);
    for (size_t i = 0; i < count; i++) {
        const struct tensor_link *at =
            (const void *)((const unsigned char *)&tensors[order[i]] + link);

        if (tensor != &tensors[order[i]] || at->list != list || at->previous != previous) {
            ck_abort_msg("entry %zu of %zu", i, count);
        }
        previous = tensor;
        tensor = at->next;
    }
    ck_assert_ptr_null(tensor);
    ck_assert_ptr_eq(list->tail, previous);
}

/* Random moves between two lists by one link, while the other link stays in a third. */
START_TEST(lists_keep_their_order)
{
    enum { COUNT = 20 };
    static struct tensor tensors[COUNT];
    struct tensor_list lists[2] = {{0}};
    struct tensor_list other = {0};
    size_t orders[2][COUNT];
    size_t counts[2] = {0};
    size_t all[COUNT];
    uint64_t seed = seed_start("tensor lists");

    for (size_t i = 0; i < COUNT; i++) {
        all[i] = i;
        tensor_list_append(&other, &tensors[i], CONTENTS);
    }
    for (int step = 0; step < 4000; step++) {
        size_t chosen = seed_below(&seed, COUNT);
        size_t to = seed_below(&seed, 3); /* 2: to none */

        tensor_list_remove(&tensors[chosen], RESIDENCY);
        tensor_list_remove(&tensors[chosen], RESIDENCY); /* allowed: it is in no list now */
        for (size_t list = 0; list < 2; list++) {
            for (size_t i = 0; i < counts[list]; i++) {
                if (orders[list][i] == chosen) {
                    counts[list]--;
                    memmove(&orders[list][i], &orders[list][i + 1],
                            (counts[list] - i) * sizeof(size_t));
                }
            }
        }
        if (to < 2) {
            tensor_list_append(&lists[to], &tensors[chosen], RESIDENCY);
            orders[to][counts[to]++] = chosen;
        }
        check_list(&lists[0], RESIDENCY, tensors, orders[0], counts[0]);
        check_list(&lists[1], RESIDENCY, tensors, orders[1], counts[1]);
        check_list(&other, CONTENTS, tensors, all, COUNT);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime tensors");
    TCase *tcase = tcase_create("tensors");

    tcase_add_test(tcase, an_empty_table_finds_nothing);
    tcase_add_test(tcase, interior_addresses_and_neighbours);
    tcase_add_test(tcase, a_freed_address_is_remembered_until_reused);
    tcase_add_test(tcase, a_longer_one_takes_over);
    tcase_add_test(tcase, a_remembered_address_is_checked);
    tcase_add_test(tcase, random_changes_match_the_shadow);
    tcase_add_test(tcase, a_failed_add_changes_nothing);
    tcase_add_test(tcase, lists_keep_their_order);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

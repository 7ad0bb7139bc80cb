/* Heaps compared with a plain array, with few distinct keys so that many elements compare equal. */
#include "base/heap.h"

#include "tests/support/seed.h"
#include "tests/support/suite.h"

#include <stdint.h>

#define ELEMENTS 500

struct element {
    uint32_t key;
    uint32_t number;
};

/* A non-null context reverses the order. */
static bool is_before(const void *a, const void *b, const void *context)
{
    const struct element *left = a;
    const struct element *right = b;

    return context == NULL ? left->key < right->key : left->key > right->key;
}

static struct heap_order order_of(int index)
{
    static const int turned;

    return (struct heap_order){.element_bytes = sizeof(struct element),
                               .is_before = is_before,
                               .context = index == 0 ? NULL : &turned};
}

/* Checks that heap and model have the same elements and that none comes before the heap's first. */
static void check(struct element *heap, size_t count, const uint32_t *model,
                  struct heap_order order)
{
    size_t there = 0;

    ck_assert(heap_validate(heap, count, order));
    for (uint32_t number = 0; number < ELEMENTS; number++) {
        struct element element = {model[number], number};

        if (model[number] != UINT32_MAX) {
            there++;
            ck_assert(!is_before(&element, &heap[0], order.context));
        }
    }
    ck_assert_uint_eq(there, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(model[heap[i].number], heap[i].key);
    }
}

START_TEST(heaps_match_the_model)
{
    struct heap_order order = order_of(_i);
    uint64_t state = seed_start("heap");
    struct element heap[ELEMENTS];
    uint32_t model[ELEMENTS]; /* key of each number in the heap */
    size_t count = 0;

    memset(model, 0xff, sizeof(model));
    for (int step = 0; step < 4000; step++) {
        uint32_t number = (uint32_t)seed_below(&state, ELEMENTS);

        if (model[number] == UINT32_MAX && seed_below(&state, 4) != 0) {
            struct element element = {(uint32_t)seed_below(&state, 50), number};

            model[number] = element.key;
            heap_push(heap, count++, &element, order);
        } else if (count > 0) {
            model[heap[0].number] = UINT32_MAX;
            heap_pop(heap, count--, order);
        }
        if (step % 16 == 0) {
            check(heap, count, model, order);
        }
    }
    while (count > 0) {
        model[heap[0].number] = UINT32_MAX;
        heap_pop(heap, count--, order);
        check(heap, count, model, order);
    }
}
END_TEST

START_TEST(building_gives_a_valid_heap)
{
    struct heap_order order = order_of(_i);
    uint64_t state = seed_start("heap build");

    for (size_t count = 0; count < 80; count++) {
        struct element heap[ELEMENTS];
        uint32_t model[ELEMENTS];

        memset(model, 0xff, sizeof(model));
        for (uint32_t number = 0; number < count; number++) {
            model[number] = (uint32_t)seed_below(&state, 20);
            heap[number] = (struct element){model[number], number};
        }
        heap_build(heap, count, order);
        check(heap, count, model, order);
    }
}
END_TEST

/* Plans depend on which of several equal elements comes first, so the order must not change. */
START_TEST(equal_elements_come_in_a_fixed_order)
{
    static const uint32_t expected[] = {0, 6, 5, 4, 3, 2, 1};
    struct heap_order order = order_of(0);
    struct element heap[7];

    for (uint32_t number = 0; number < 7; number++) {
        struct element element = {3, number};

        heap_push(heap, number, &element, order);
    }
    for (size_t i = 0; i < 7; i++) {
        ck_assert_uint_eq(heap[0].number, expected[i]);
        heap_pop(heap, 7 - i, order);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("heap");
    TCase *tcase = tcase_create("heap");

    tcase_add_loop_test(tcase, heaps_match_the_model, 0, 2);
    tcase_add_loop_test(tcase, building_gives_a_valid_heap, 0, 2);
    tcase_add_test(tcase, equal_elements_come_in_a_fixed_order);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}

/* Looking ahead in the record of the iteration before: it keeps a distance, reads nothing past the
   record's end, and asks for tensors that are gone as for any others. */
#include "runtime/record/ahead.h"

#include "runtime/tensor/tensors.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3000, BYTES = 64 };

static unsigned char memory[TENSORS * BYTES];

struct scene {
    struct tensors tensors;
    struct tensor *list;
    struct record *before;
    struct record *open;
};

static void make(struct scene *scene, size_t tensor_count)
{
    scene->tensors = (struct tensors){0};
    scene->list = calloc(tensor_count, sizeof(*scene->list));
    scene->before = calloc(1, sizeof(*scene->before));
    scene->open = calloc(1, sizeof(*scene->open));
    ck_assert(scene->list != NULL && scene->before != NULL && scene->open != NULL);
    ck_assert(record_reserve(scene->before, 1, tensor_count, tensor_count, 0));
    record_add_op(scene->before, &(struct call){.name = "op"}, NULL);
    for (size_t i = 0; i < tensor_count; i++) {
        struct tensor *tensor = &scene->list[i];

        tensor->address = memory + i * BYTES;
        tensor->bytes = BYTES;
        ck_assert_int_eq(tensors_add(&scene->tensors, tensor), CAPU_OK);
        scene->before->tensors[scene->before->tensor_count++] =
            (struct record_tensor){.address = tensor->address, .tensor_bytes = BYTES};
        record_add_access(scene->before, i, CAPU_READ);
        record_add_operands(
            scene->before,
            &(capu_operand){.address = memory + i * BYTES + 1, .bytes = 1, .role = CAPU_READ}, 1);
    }
}

static void unmake(struct scene *scene)
{
    tensors_finish(&scene->tensors);
    record_finish(scene->before);
    record_finish(scene->open);
    free(scene->before);
    free(scene->open);
    free(scene->list);
}

START_TEST(it_keeps_a_distance_up_to_the_end)
{
    struct scene scene;
    struct ahead ahead = {0};
    size_t fetched = 0;

    make(&scene, TENSORS);
    for (size_t i = 0; i < TENSORS; i += 5) { /* the record still names them */
        tensors_remove(&scene.tensors, &scene.list[i]);
        tensors_forget(&scene.tensors, &scene.list[i]);
    }
    ahead_look(&ahead, &scene.tensors, scene.open, 0);
    ck_assert_uint_eq(ahead.expected, 0); /* there is no record to look at */
    ahead.before = scene.before;
    for (size_t i = 0; i < TENSORS + 100; i++) {
        scene.open->access_count = i;
        scene.open->spelled_count = i / 2;
        ahead_look(&ahead, &scene.tensors, scene.open, 0);
        ck_assert(ahead.fetched <= ahead.expected && ahead.expected <= TENSORS);
        ck_assert(ahead.fetched >= fetched && (ahead.fetched > i || ahead.fetched == TENSORS));
        ck_assert(ahead.expected <= ahead.recalled && ahead.recalled <= TENSORS);
        ck_assert(ahead.inside <= ahead.spelled && ahead.spelled <= TENSORS);
        fetched = ahead.fetched;
    }
    ck_assert_uint_eq(ahead.fetched, TENSORS);
    ck_assert_uint_eq(ahead.expected, TENSORS);
    ck_assert_uint_eq(ahead.recalled, TENSORS);
    ck_assert_uint_gt(ahead.inside, scene.open->spelled_count);
    ck_assert_ptr_eq(tensors_find(&scene.tensors, memory + BYTES), &scene.list[1]);
    unmake(&scene);
}
END_TEST

START_TEST(it_does_nothing_with_few_tensors)
{
    struct scene scene;
    struct ahead ahead = {0};

    make(&scene, 100);
    ahead.before = scene.before;
    ahead_look(&ahead, &scene.tensors, scene.open, 0);
    ck_assert_uint_eq(ahead.recalled, 0);
    ck_assert_uint_eq(ahead.expected, 0);
    ck_assert_uint_eq(ahead.fetched, 0);
    unmake(&scene);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ahead");
    TCase *cases = tcase_create("ahead");

    tcase_add_test(cases, it_keeps_a_distance_up_to_the_end);
    tcase_add_test(cases, it_does_nothing_with_few_tensors);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

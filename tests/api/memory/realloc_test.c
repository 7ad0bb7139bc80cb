/* capu_realloc keeps the address where it can, and plans with it; and blobs that are split between
   iterations. */
#include "tests/api/net.h"

enum { LAYER_BYTES = NET_LAYER_PAGES * 4096 };

static unsigned char *resize(struct rig *rig, unsigned char *old, size_t bytes)
{
    void *address = NULL;

    RIG_OK(rig, capu_realloc(rig->context, old, bytes, &address));
    rig_check(rig);
    return address;
}

static void push_out(struct rig *rig, size_t page_count)
{
    unsigned char *large = step_malloc(rig, PAGES(page_count));

    step_set(rig, large, PAGES(page_count), 1);
    RIG_OK(rig, capu_free(rig->context, large));
}

/* Smaller sizes change nothing, and neither does coming back. */
START_TEST(smaller_sizes_change_nothing)
{
    struct rig rig;
    unsigned char *tensor;
    unsigned char *small;

    rig_init(&rig, &(struct rig_options){.mode = (uint32_t)(CAPU_MODE_OFF + _i)});
    tensor = step_tensor(&rig, "x", CAPU_PARAMETER, 3);
    small = step_malloc(&rig, 1000);
    step_set(&rig, tensor, PAGES(3), 7);
    step_set(&rig, small, 1000, 8);
    ck_assert_ptr_eq(resize(&rig, tensor, 1), tensor);
    ck_assert_ptr_eq(resize(&rig, tensor, PAGES(3)), tensor);
    ck_assert_ptr_eq(resize(&rig, small, 1), small);
    ck_assert_ptr_eq(resize(&rig, small, 1000), small);
    ck_assert_uint_eq(step_query(&rig, tensor).bytes, PAGES(3));
    ck_assert_str_eq(step_query(&rig, tensor).name, "x");
    step_expect(&rig, tensor, PAGES(3), 7);
    step_expect(&rig, small, 1000, 8);
    rig_finish(&rig);
}
END_TEST

/* The rest of the last page, or of the slot of a small tensor, is room to grow. Contents may be on
   the device, on the host, or known zeros. */
START_TEST(an_allocation_grows_where_it_is)
{
    enum { BYTES = PAGES(3) - 1000 };
    bool is_split = _i % 2 == 1;
    size_t first = is_split ? PAGES(1) + 100 : 0;
    unsigned char value = _i / 2 == 2 ? 0 : 7;
    struct rig rig;
    unsigned char *tensor;

    rig_init(&rig, &(struct rig_options){.budget_pages = 6, .clear_fresh = _i / 2 == 3});
    tensor = step_malloc(&rig, BYTES);
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, tensor, .name = "x", .kind = CAPU_PARAMETER));
    if (is_split) {
        RIG_OK(&rig, capu_split(rig.context, tensor, first));
    }
    step_set(&rig, tensor, BYTES, 7);
    if (_i / 2 == 1) {
        push_out(&rig, 6 - memory_fixed_pages(&rig.context->memory));
        ck_assert_uint_eq(step_query(&rig, tensor + first).is_resident, 0);
    }
    if (_i / 2 == 2) {
        RIG_OK(&rig, capu_zero(rig.context, tensor + first, 0));
        RIG_OK(&rig, capu_zero(rig.context, tensor, 0));
    }
    ck_assert_ptr_eq(resize(&rig, tensor, BYTES + 600), tensor);
    ck_assert_ptr_eq(resize(&rig, tensor, PAGES(3)), tensor);
    ck_assert_uint_eq(step_query(&rig, tensor + first).bytes, PAGES(3) - first);
    ck_assert_str_eq(step_query(&rig, tensor + first).name, "x");
    ck_assert_ptr_null(capu_tensor_next(rig.context, tensor + first));
    step_expect(&rig, tensor, BYTES, value);
    if (_i / 2 == 3) {
        step_expect(&rig, tensor + BYTES, 1000, 0);
    }
    step_set(&rig, tensor + first, PAGES(3) - first, 9);
    push_out(&rig, 6 - memory_fixed_pages(&rig.context->memory));
    step_expect(&rig, tensor + first, PAGES(3) - first, 9);
    RIG_OK(&rig, capu_free(rig.context, tensor));
    RIG_OK(&rig, capu_synchronize(rig.context));
    ck_assert_uint_eq(pages_out(rig.context->memory.pages), 0);
    rig_finish(&rig);
}
END_TEST

/* A slot holds somewhat more than was asked for. */
START_TEST(a_small_tensor_grows_in_its_slot)
{
    struct rig rig;
    unsigned char *small;
    size_t room;

    rig_init(&rig, &(struct rig_options){.mode = (uint32_t)(CAPU_MODE_OFF + _i)});
    small = step_malloc(&rig, 300);
    room = slabs_slot_bytes(rig.context->memory.slabs, small);
    ck_assert_uint_gt(room, 300);
    step_set(&rig, small, 300, 5);
    ck_assert_ptr_eq(resize(&rig, small, room), small);
    ck_assert_uint_eq(step_query(&rig, small).bytes, room);
    step_expect(&rig, small, 300, 5);
    small = resize(&rig, small, room + 1);
    ck_assert_uint_eq(step_query(&rig, small).bytes, room + 1);
    step_expect(&rig, small, 300, 5);
    rig_finish(&rig);
}
END_TEST

/* What does not fit moves: tensors, descriptions and contents. */
START_TEST(a_larger_allocation_has_the_same_tensors)
{
    const size_t sizes[] = {PAGES(2), 1000, PAGES(1)};
    struct rig rig;
    unsigned char *old;
    unsigned char *fresh;
    capu_tensor_state state;

    rig_init(&rig, &(struct rig_options){.budget_pages = 24,
                                         .mode = (uint32_t)(CAPU_MODE_OFF + _i / 2),
                                         .clear_fresh = _i % 2 == 1});
    old = step_malloc(&rig, PAGES(5));
    RIG_OK(&rig, capu_split_list(rig.context, old, sizes, 3));
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, old, .name = "w", .kind = CAPU_PARAMETER,
                               .hint = CAPU_HINT_SWAP));
    RIG_OK(&rig, CAPU_DESCRIBE(rig.context, old + PAGES(2) + 1000, .name = "act",
                               .kind = CAPU_ACTIVATION));
    step_set(&rig, old, PAGES(2), 1);
    RIG_OK(&rig, capu_zero(rig.context, old + PAGES(2), 1000));
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    step_set(&rig, old + PAGES(2) + 1000, PAGES(1), 3);
    fresh = resize(&rig, old, PAGES(8));
    ck_assert_ptr_ne(fresh, old);
    step_expect(&rig, fresh + PAGES(2) + 1000, PAGES(1), 3);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    STEP_FAILS(&rig, capu_zero(rig.context, old, 1), CAPU_WRONG_ADDRESS, "w");
    state = step_query(&rig, fresh);
    ck_assert_str_eq(state.name, "w");
    ck_assert_uint_eq(state.kind, CAPU_PARAMETER);
    ck_assert_uint_eq(state.hint, CAPU_HINT_SWAP);
    ck_assert_uint_eq(state.bytes, PAGES(2));
    ck_assert_uint_eq(step_query(&rig, fresh + PAGES(2)).bytes, 1000);
    ck_assert_uint_eq(step_query(&rig, fresh + PAGES(2) + 1000).is_persistent, 0);
    ck_assert_uint_eq(step_query(&rig, fresh + PAGES(8) - 1).bytes, PAGES(5) - 1000);
    step_expect(&rig, fresh, PAGES(2), 1);
    step_expect(&rig, fresh + PAGES(2), 1000, 0);
    rig_finish(&rig);
}
END_TEST

/* Between iterations no call is to read what is transient, so it is not copied. */
START_TEST(transient_contents_are_not_copied_between_iterations)
{
    struct rig rig;
    void *tensor;
    void *fresh;

    rig_init(&rig, &(struct rig_options){.budget_pages = 24, .mode = (uint32_t)_i});
    tensor = step_tensor(&rig, "act", CAPU_ACTIVATION, 2);
    RIG_OK(&rig, capu_iteration_begin(rig.context, NULL));
    step_set(&rig, tensor, PAGES(2), 1);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    fresh = resize(&rig, tensor, PAGES(4));
    STEP_FAILS(&rig, step_touch(&rig, "peek", CAPU_READ, 1, &fresh), CAPU_UNDEFINED_READ, "act");
    ck_assert(!tensors_find(&rig.context->memory.tensors, fresh)->is_read_after);
    rig_finish(&rig);
}
END_TEST

START_TEST(a_failed_realloc_changes_nothing)
{
    struct rig rig;
    unsigned char *tensor;
    void *address = &rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 6});
    tensor = step_malloc(&rig, PAGES(4));
    step_set(&rig, tensor, PAGES(4), 4);
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor, PAGES(5), &address), CAPU_OVER_BUDGET,
               "36864 bytes for its operands");
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor, 0, &address), CAPU_INVALID, "realloc");
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor, SIZE_MAX, &address), CAPU_TOO_LARGE, "");
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor, 1, NULL), CAPU_INVALID, "no place");
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor + 1, 1, &address), CAPU_WRONG_ADDRESS,
               "capu_realloc");
    ck_assert_ptr_eq(address, &rig);
    rig_check(&rig);
    ck_assert_uint_eq(rig.context->memory.tensors.live_count, 1);
    step_expect(&rig, tensor, PAGES(4), 4);
    RIG_OK(&rig, capu_realloc(rig.context, NULL, PAGES(1), &address));
    ck_assert_uint_eq(step_query(&rig, address).bytes, PAGES(1));
    RIG_OK(&rig, capu_free(rig.context, tensor));
    STEP_FAILS(&rig, capu_realloc(rig.context, tensor, 1, &address), CAPU_WRONG_ADDRESS,
               "capu_realloc");
    rig_finish(&rig);
}
END_TEST

/* A program that resizes its buffers with every batch follows the plan of the first one, also when
   a size comes up for the first time. */
START_TEST(plans_survive_batches_of_other_sizes)
{
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.strict = _i == 1});
    for (size_t i = 0; i < NET_WARM; i++) {
        for (size_t layer = 0; layer <= NET_LAYERS; layer++) {
            size_t bytes = LAYER_BYTES - (i % 3) * 1000;

            ck_assert_ptr_eq(resize(&net.rig, net.activations[layer], bytes),
                             net.activations[layer]);
        }
        report = net_train(&net, "train");
        if (i >= 1) {
            net_expect_guided(&net, &report, "train");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

/* Growing a tensor of the plan leaves it, where the tensor is or to another address, between
   iterations or inside one. A new plan follows. */
START_TEST(a_tensor_of_the_plan_can_grow)
{
    bool moves = _i % 2 == 1;
    size_t bytes = moves ? LAYER_BYTES + PAGES(1) + 1 : LAYER_BYTES + 200;
    unsigned char *before;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 28, .strict = _i / 4 == 1});
    net.activations[3] = step_malloc(&net.rig, LAYER_BYTES + 100);
    RIG_OK(&net.rig, CAPU_DESCRIBE(net.rig.context, net.activations[3], .name = "activation",
                                   .kind = CAPU_ACTIVATION));
    for (size_t i = 0; i < NET_WARM; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    before = net.activations[3];
    if (_i / 2 % 2 == 0) {
        net.activations[3] = resize(&net.rig, before, bytes);
    } else {
        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        net.activations[3] = resize(&net.rig, before, bytes);
        net_backward(&net, NET_LAYERS);
        step_expect(&net.rig, net.gradients, LAYER_BYTES, (unsigned char)(net.step + 1));
        net_end(&net);
    }
    ck_assert((net.activations[3] != before) == moves);
    ck_assert_uint_eq(step_query(&net.rig, net.activations[3]).bytes, bytes);
    for (size_t i = 0; i < NET_WARM; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

/* Splitting a blob that the plan does not contain costs nothing. Splitting one that it contains
   costs one new plan, and none for other labels. */
START_TEST(splitting_between_iterations_keeps_plans)
{
    const size_t sizes[] = {PAGES(1), PAGES(1)};
    const size_t halves[] = {PAGES(NET_LAYER_PAGES / 2), PAGES(NET_LAYER_PAGES / 2)};
    const struct plan_entry *active;
    unsigned char *unused;
    struct report report;
    struct net net;

    net_init(&net, (struct rig_options){.budget_pages = 28});
    unused = step_malloc(&net.rig, PAGES(3));
    for (size_t i = 0; i < 2 * NET_WARM; i++) {
        report = net_train(&net, i % 2 == 0 ? "train" : "other");
    }
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    active = net.rig.context->guided.active;
    ck_assert_ptr_nonnull(active);
    RIG_OK(&net.rig, capu_split_list(net.rig.context, unused, sizes, 2));
    RIG_OK(&net.rig, capu_split_list(net.rig.context, unused, sizes, 2));
    ck_assert_ptr_eq(net.rig.context->guided.active, active);
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    /* A tensor of both plans: each label gets a new one. */
    RIG_OK(&net.rig, capu_split_list(net.rig.context, net.weights, halves, 2));
    step_expect(&net.rig, net.weights + PAGES(1), 1, (unsigned char)(1 + net.step));
    for (size_t i = 0; i < NET_WARM; i++) {
        report = net_train(&net, "train");
    }
    net_expect_guided(&net, &report, "train");
    active = net.rig.context->guided.active;
    ck_assert_ptr_nonnull(active);
    RIG_OK(&net.rig, capu_split_list(net.rig.context, net.weights, halves, 2));
    ck_assert_ptr_eq(net.rig.context->guided.active, active);
    report = net_train(&net, "train");
    net_expect_guided(&net, &report, "train");
    rig_finish(&net.rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api realloc");
    TCase *cases = tcase_create("realloc");

    tcase_add_loop_test(cases, smaller_sizes_change_nothing, 0, 3);
    tcase_add_loop_test(cases, an_allocation_grows_where_it_is, 0, 8);
    tcase_add_loop_test(cases, a_small_tensor_grows_in_its_slot, 0, 3);
    tcase_add_loop_test(cases, a_larger_allocation_has_the_same_tensors, 0, 6);
    tcase_add_loop_test(cases, transient_contents_are_not_copied_between_iterations,
                        CAPU_MODE_PASSIVE, CAPU_MODE_GUIDED + 1);
    tcase_add_test(cases, a_failed_realloc_changes_nothing);
    tcase_add_loop_test(cases, plans_survive_batches_of_other_sizes, 0, 2);
    tcase_add_loop_test(cases, a_tensor_of_the_plan_can_grow, 0, 8);
    tcase_add_test(cases, splitting_between_iterations_keeps_plans);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

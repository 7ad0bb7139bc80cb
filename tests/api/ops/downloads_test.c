/* Downloads that do not wait: they are enqueued, and right once the compute stream has come there.
 */
#include "tests/api/net.h"

#include <semaphore.h>

static capu_status wait_at_gate(capu_stream stream, const void *arguments)
{
    sem_t *gate = *(sem_t *const *)arguments;

    (void)stream;
    while (sem_wait(gate) != 0) { /* interrupted */
    }
    return CAPU_OK;
}

static void expect_bytes(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(bytes[i], value);
    }
}

/* The tensor is written by an op after one that waits for the end of the test. */
START_TEST(it_does_not_wait)
{
    static unsigned char bytes[PAGES(3)];
    sem_t gate;
    sem_t *argument = &gate;
    capu_op op = {.size = sizeof(op),
                  .name = "gate",
                  .run = wait_at_gate,
                  .arguments = &argument,
                  .argument_bytes = sizeof(argument)};
    unsigned char *tensor;
    struct rig rig;

    ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(3));
    step_set(&rig, tensor, PAGES(3), 1);
    RIG_OK(&rig, capu_run(rig.context, &op));
    step_set(&rig, tensor, PAGES(3), 2);
    RIG_OK(&rig, capu_download(rig.context, bytes, tensor + 5, PAGES(3) - 5, CAPU_TRANSFER_ASYNC));
    step_set(&rig, tensor, PAGES(3), 3); /* comes after it */
    ck_assert_int_eq(sem_post(&gate), 0);
    RIG_OK(&rig, capu_synchronize(rig.context));
    expect_bytes(bytes, PAGES(3) - 5, 2);
    step_expect(&rig, tensor, PAGES(3), 3);
    rig_finish(&rig);
    ck_assert_int_eq(sem_destroy(&gate), 0);
}
END_TEST

START_TEST(evicted_tensors_and_zeros_are_read)
{
    static unsigned char bytes[PAGES(4)];
    unsigned char *tensors[3];
    struct rig rig;

    rig_init(&rig, &(struct rig_options){.budget_pages = 4, .strict = _i == 1});
    for (unsigned char i = 0; i < 3; i++) {
        tensors[i] = step_malloc(&rig, PAGES(4));
        step_set(&rig, tensors[i], PAGES(4), i);
    }
    RIG_OK(&rig, capu_zero(rig.context, tensors[1], 0));
    for (unsigned char i = 0; i < 3; i++) {
        memset(bytes, 9, sizeof(bytes));
        RIG_OK(&rig, capu_download(rig.context, bytes, tensors[i], PAGES(4), CAPU_TRANSFER_ASYNC));
        RIG_OK(&rig, capu_synchronize(rig.context));
        expect_bytes(bytes, PAGES(4), i == 1 ? 0 : i);
    }
    rig_finish(&rig);
}
END_TEST

/* In a plan it is the op that a download is: plans for one serve the other. */
START_TEST(it_is_planned)
{
    static unsigned char bytes[PAGES(NET_LAYER_PAGES)];
    struct net net;

    net_init(&net, (struct rig_options){.strict = _i == 1, .delay_seed = _i == 2 ? 3 : 0});
    for (size_t i = 0; i < NET_WARM; i++) {
        struct report report;

        net_begin(&net, "train");
        net_forward(&net, NET_LAYERS);
        memset(bytes, 0, sizeof(bytes));
        if (i % 2 == 0) {
            RIG_OK(&net.rig, capu_download(net.rig.context, bytes, net.activations[2],
                                           PAGES(NET_LAYER_PAGES), 0));
        } else {
            RIG_OK(&net.rig, capu_download(net.rig.context, bytes, net.activations[2],
                                           PAGES(NET_LAYER_PAGES), CAPU_TRANSFER_ASYNC));
        }
        net_backward(&net, NET_LAYERS);
        report = net_end(&net);
        expect_bytes(bytes, sizeof(bytes), (unsigned char)(net.step + 2));
        if (i > 0) {
            net_expect_guided(&net, &report, "train");
        }
    }
    rig_finish(&net.rig);
}
END_TEST

START_TEST(wrong_calls_are_named)
{
    unsigned char byte;
    unsigned char *tensor;
    struct rig rig;

    rig_init(&rig, &(struct rig_options){0});
    tensor = step_malloc(&rig, PAGES(1));
    STEP_FAILS(&rig, capu_download(rig.context, &byte, tensor, 0, CAPU_TRANSFER_ASYNC),
               CAPU_INVALID, "capu_download");
    STEP_FAILS(&rig, capu_download(rig.context, NULL, tensor, 1, CAPU_TRANSFER_ASYNC), CAPU_INVALID,
               "address");
    STEP_FAILS(&rig, capu_download(rig.context, &byte, &byte, 1, CAPU_TRANSFER_ASYNC),
               CAPU_WRONG_ADDRESS, "capu_download");
    STEP_FAILS(&rig, capu_download(rig.context, &byte, tensor, 1, CAPU_TRANSFER_ASYNC),
               CAPU_UNDEFINED_READ, "");
    rig_finish(&rig);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api downloads");
    TCase *cases = tcase_create("downloads");

    tcase_add_test(cases, it_does_not_wait);
    tcase_add_loop_test(cases, evicted_tensors_and_zeros_are_read, 0, 2);
    tcase_add_loop_test(cases, it_is_planned, 0, 3);
    tcase_add_test(cases, wrong_calls_are_named);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

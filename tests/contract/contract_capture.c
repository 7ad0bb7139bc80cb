/* The contract of captures and graphs. Devices without them must say so. */
#include "contract.h"

#include <string.h>

enum { BYTES = 4096 };

struct setting {
    struct device *device;
    capu_stream one; /* compute */
    capu_stream two; /* d2h */
    char *address;   /* one page */
    char *from;      /* BYTES of host memory each */
    char *to;
    struct device_event *event;
    struct device_graph *graph;
};

/* False: there is no such device here, or it has no captures, and says so. */
static bool set_up(struct setting *setting, int index)
{
    enum device_capture state = DEVICE_CAPTURES;
    device_page page;
    void *host;
    void *node;
    bool is_updated;

    *setting = (struct setting){.device = contract_make(index)};
    if (setting->device == NULL) {
        return false;
    }
    CHECK_OK(device_stream_create(setting->device, DEVICE_COMPUTE, &setting->one));
    CHECK_OK(device_capture_state(setting->device, setting->one, &state));
    ck_assert_int_eq(state, DEVICE_RUNS);
    if (!setting->device->capabilities.can_capture) {
        ck_assert_int_eq(device_capture_begin(setting->device, setting->one), CAPU_UNSUPPORTED);
        ck_assert_int_eq(
            device_capture_end(setting->device, setting->one, &setting->graph, &is_updated),
            CAPU_UNSUPPORTED);
        ck_assert_int_eq(device_capture_node(setting->device, setting->one, &node),
                         CAPU_UNSUPPORTED);
        device_stream_destroy(setting->device, setting->one);
        device_destroy(setting->device);
        return false;
    }
    CHECK_OK(device_stream_create(setting->device, DEVICE_D2H, &setting->two));
    CHECK_OK(device_event_create(setting->device, false, &setting->event));
    setting->address = contract_mapped(setting->device, &page, 1);
    CHECK_OK(device_host_alloc(setting->device, 2 * (uint64_t)BYTES, &host));
    setting->from = host;
    setting->to = setting->from + BYTES;
    memset(setting->to, 0, BYTES);
    return true;
}

static void tear_down(struct setting *setting)
{
    device_graph_destroy(setting->device, setting->graph);
    device_event_destroy(setting->device, setting->event);
    device_stream_destroy(setting->device, setting->one);
    device_stream_destroy(setting->device, setting->two);
    device_host_free(setting->device, setting->from, 2 * (uint64_t)BYTES);
    device_destroy(setting->device);
}

static void follow(struct setting *setting, capu_stream stream, capu_stream other)
{
    CHECK_OK(device_event_record(setting->device, setting->event, other));
    CHECK_OK(device_stream_follow(setting->device, stream, setting->event));
}

/* Records a copy in on one stream and a copy out on the other. *node: the copy in. */
static void record_copies(struct setting *setting, void **node)
{
    enum device_capture state = DEVICE_RUNS;

    CHECK_OK(device_capture_begin(setting->device, setting->one));
    CHECK_OK(device_capture_state(setting->device, setting->one, &state));
    ck_assert_int_eq(state, DEVICE_CAPTURES);
    CHECK_OK(device_copy_in(setting->device, setting->one, setting->address, setting->from, BYTES));
    CHECK_OK(device_capture_node(setting->device, setting->one, node));
    follow(setting, setting->two, setting->one);
    CHECK_OK(device_capture_state(setting->device, setting->two, &state));
    ck_assert_int_eq(state, DEVICE_CAPTURES);
    CHECK_OK(device_copy_out(setting->device, setting->two, setting->to, setting->address, BYTES));
    follow(setting, setting->one, setting->two);
}

static bool end(struct setting *setting)
{
    enum device_capture state = DEVICE_CAPTURES;
    bool is_updated = false;

    CHECK_OK(device_capture_end(setting->device, setting->one, &setting->graph, &is_updated));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(
            device_capture_state(setting->device, i == 0 ? setting->one : setting->two, &state));
        ck_assert_int_eq(state, DEVICE_RUNS);
    }
    return is_updated;
}

/* Launches, and checks what arrives. */
static void launch(struct setting *setting, char byte)
{
    CHECK_OK(device_graph_launch(setting->device, setting->graph, setting->one));
    CHECK_OK(device_stream_synchronize(setting->device, setting->one));
    for (size_t i = 0; i < BYTES; i++) {
        ck_assert_int_eq(setting->to[i], byte);
    }
}

START_TEST(captured_work_runs_at_each_launch)
{
    struct setting setting;
    void *node;

    if (!set_up(&setting, _i)) {
        return;
    }
    memset(setting.from, 1, BYTES);
    record_copies(&setting, &node);
    ck_assert(!end(&setting));
    CHECK_OK(device_stream_synchronize(setting.device, setting.one));
    CHECK_OK(device_stream_synchronize(setting.device, setting.two));
    ck_assert_int_eq(setting.to[0], 0);
    launch(&setting, 1);
    memset(setting.from, 2, BYTES);
    launch(&setting, 2);
    /* The streams and the event can be used as before. */
    follow(&setting, setting.two, setting.one);
    CHECK_OK(device_event_wait(setting.device, setting.event));
    ck_assert_int_eq(device_event_query(setting.device, setting.event), CAPU_OK);
    tear_down(&setting);
}
END_TEST

START_TEST(another_capture_changes_a_graph)
{
    struct setting setting;
    void *node;

    if (!set_up(&setting, _i)) {
        return;
    }
    memset(setting.from, 3, BYTES);
    record_copies(&setting, &node);
    ck_assert(!end(&setting));
    record_copies(&setting, &node);
    ck_assert(end(&setting));
    launch(&setting, 3);
    /* One copy more: another shape. */
    record_copies(&setting, &node);
    CHECK_OK(device_fill(setting.device, setting.one, setting.address, 4, BYTES));
    CHECK_OK(device_copy_out(setting.device, setting.one, setting.to, setting.address, BYTES));
    ck_assert(!end(&setting));
    launch(&setting, 4);
    tear_down(&setting);
}
END_TEST

/* Also after the graph was changed: nodes keep their names. */
START_TEST(a_node_copies_from_elsewhere)
{
    struct setting setting;
    struct device_copy copy;
    void *ignored;
    void *node;

    if (!set_up(&setting, _i)) {
        return;
    }
    record_copies(&setting, &node);
    ck_assert(!end(&setting));
    record_copies(&setting, &ignored);
    ck_assert(end(&setting));
    memset(setting.from, 5, BYTES / 2);
    memset(setting.from + BYTES / 2, 6, BYTES / 2);
    memset(setting.to, 6, BYTES);
    copy = (struct device_copy){setting.address, setting.from + BYTES / 2, BYTES / 2};
    CHECK_OK(device_graph_set_copy_in(setting.device, setting.graph, node, &copy));
    CHECK_OK(device_copy_in(setting.device, setting.one, setting.address + BYTES / 2,
                            setting.from + BYTES / 2, BYTES / 2));
    launch(&setting, 6);
    tear_down(&setting);
}
END_TEST

START_TEST(waiting_during_a_capture_ends_it)
{
    enum device_capture state = DEVICE_RUNS;
    struct device_graph *before;
    struct setting setting;
    bool is_updated;
    void *node;

    if (!set_up(&setting, _i)) {
        return;
    }
    memset(setting.from, 7, BYTES);
    record_copies(&setting, &node);
    ck_assert(!end(&setting));
    before = setting.graph;
    record_copies(&setting, &node);
    ck_assert_int_eq(device_stream_synchronize(setting.device, setting.one), CAPU_DEVICE_FAILED);
    CHECK_OK(device_capture_state(setting.device, setting.one, &state));
    ck_assert_int_eq(state, DEVICE_CAPTURE_FAILED);
    ck_assert_int_eq(device_capture_end(setting.device, setting.one, &setting.graph, &is_updated),
                     CAPU_DEVICE_FAILED);
    ck_assert_ptr_eq(setting.graph, before);
    ck_assert_int_eq(device_failure(setting.device, NULL, 0), CAPU_OK);
    launch(&setting, 7);
    tear_down(&setting);
}
END_TEST

void contract_add_capture(TCase *tcase, int index)
{
    tcase_add_loop_test(tcase, captured_work_runs_at_each_launch, index, index + 1);
    tcase_add_loop_test(tcase, another_capture_changes_a_graph, index, index + 1);
    tcase_add_loop_test(tcase, a_node_copies_from_elsewhere, index, index + 1);
    tcase_add_loop_test(tcase, waiting_during_a_capture_ends_it, index, index + 1);
}

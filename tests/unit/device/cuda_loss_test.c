/* Which errors lose the cuda device, which do not, and what its calls return afterwards. */
#include "tests/support/suite.h"
#include "tests/unit/device/on_fake.h"

#include <string.h>

/* A device with a stream, an event, and a mapped page. */
struct setting {
    struct device *device;
    capu_stream stream;
    struct device_event *event;
    device_page page;
    char *address;
};

static void set_up(struct setting *setting)
{
    setting->device = on_fake_make(NULL);
    OK(device_stream_create(setting->device, DEVICE_COMPUTE, &setting->stream));
    OK(device_event_create(setting->device, true, &setting->event));
    on_fake_pages(setting->device, &setting->page, 1);
    setting->address = on_fake_reserve(setting->device, 1);
    OK(device_map(setting->device, setting->address, &setting->page, 1));
}

static void tear_down(struct setting *setting)
{
    device_event_destroy(setting->device, setting->event);
    device_stream_destroy(setting->device, setting->stream);
    device_destroy(setting->device);
}

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

static capu_status fault_kernel(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_INVALID;
}

/* Checks that every call returns DEVICE_LOST, but memory can still be unmapped. */
static void check_lost(struct setting *setting, const char *word)
{
    const struct device_work work = {.name = "work", .run = nothing};
    struct device *device = setting->device;
    struct device_event *event = NULL;
    capu_stream stream = NULL;
    void *host = NULL;
    char text[300] = "";
    uint64_t ns;

    ck_assert_int_eq(device_failure(device, text, sizeof(text)), CAPU_DEVICE_LOST);
    ck_assert_msg(strstr(text, word) != NULL, "'%s' does not say '%s'", text, word);
    ck_assert_int_eq(device_run(device, setting->stream, &work), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_stream_synchronize(device, setting->stream), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_event_record(device, setting->event, setting->stream),
                     CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_event_query(device, setting->event), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_event_wait(device, setting->event), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_stream_follow(device, setting->stream, setting->event),
                     CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_event_elapsed(device, setting->event, setting->event, &ns),
                     CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_fill(device, setting->stream, setting->address, 0, 8),
                     CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_copy_in(device, setting->stream, setting->address, text, 8),
                     CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_event_create(device, false, &event), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_stream_create(device, DEVICE_D2H, &stream), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_host_alloc(device, 100, &host), CAPU_DEVICE_LOST);
    OK(device_unmap(device, setting->address, 1));
}

START_TEST(a_kernel_that_faults_loses_the_device)
{
    struct setting setting;

    set_up(&setting);
    OK(device_event_record(setting.device, setting.event, setting.stream));
    OK(fake_cudart_launch(setting.stream, fault_kernel, NULL));
    ck_assert_int_eq(device_stream_synchronize(setting.device, setting.stream), CAPU_DEVICE_LOST);
    check_lost(&setting, "cudaStreamSynchronize returned cudaErrorLaunchFailure");
    tear_down(&setting);
}
END_TEST

START_TEST(a_copy_of_unmapped_memory_loses_the_device)
{
    struct setting setting;
    char bytes[8];

    set_up(&setting);
    OK(device_event_record(setting.device, setting.event, setting.stream));
    OK(device_event_wait(setting.device, setting.event));
    OK(device_unmap(setting.device, setting.address, 1));
    OK(device_copy_out(setting.device, setting.stream, bytes, setting.address, sizeof(bytes)));
    ck_assert_int_eq(device_stream_synchronize(setting.device, setting.stream), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_map(setting.device, setting.address, &setting.page, 1),
                     CAPU_DEVICE_LOST);
    tear_down(&setting);
}
END_TEST

/* Whichever call finds that the device is lost, the text names the first such call, and only it. */
START_TEST(the_call_that_found_the_loss_is_named)
{
    struct fake_cudart_fault fault = {.number = 1, .error = ILLEGAL_ADDRESS, .is_sticky = true};
    struct setting setting;
    device_page page;

    set_up(&setting);
    OK(device_event_record(setting.device, setting.event, setting.stream));
    fault.call = FAKE_cuMemCreate;
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_page_create(setting.device, &page), CAPU_DEVICE_LOST);
    check_lost(&setting, "lost: cuMemCreate returned cudaErrorIllegalAddress");
    ck_assert_int_eq(device_page_create(setting.device, &page), CAPU_DEVICE_LOST);
    tear_down(&setting);
}
END_TEST

/* "Unknown error" means a lost device only if CUDA keeps returning it. */
START_TEST(an_unknown_error_loses_the_device_only_if_it_persists)
{
    struct fake_cudart_fault fault = {.call = FAKE_cudaHostRegister, .number = 1, .error = UNKNOWN};
    struct setting setting;
    void *memory = NULL;

    set_up(&setting);
    fake_cudart_arm(&fault);
    OK(device_host_alloc(setting.device, 1000, &memory));
    ck_assert_uint_eq(fake_cudart_calls_of(FAKE_cudaHostAlloc), 1);
    OK(device_failure(setting.device, NULL, 0));
    OK(device_event_record(setting.device, setting.event, setting.stream));
    fault.call = FAKE_cudaMemsetAsync;
    fault.is_sticky = true;
    fake_cudart_arm(&fault);
    ck_assert_int_eq(device_fill(setting.device, setting.stream, setting.address, 1, PAGE),
                     CAPU_DEVICE_LOST);
    check_lost(&setting, "lost: cudaMemsetAsync returned cudaErrorUnknown");
    tear_down(&setting);
}
END_TEST

static capu_status launch_fault(capu_stream stream, const void *arguments)
{
    (void)arguments;
    (void)fake_cudart_launch(stream, fault_kernel, NULL);
    /* Wait until the stream has run the kernel. */
    while (fake_cudart_launch(stream, nothing, NULL) == CAPU_OK) {
    }
    return CAPU_DEVICE_FAILED;
}

START_TEST(a_failed_op_stops_nothing_unless_the_device_is_lost)
{
    const struct device_work fails = {.name = "fails", .run = fault_kernel};
    const struct device_work loses = {.name = "loses", .run = launch_fault};
    struct setting setting;

    set_up(&setting);
    ck_assert_int_eq(device_run(setting.device, setting.stream, &fails), CAPU_OP_FAILED);
    OK(device_failure(setting.device, NULL, 0));
    OK(device_fill(setting.device, setting.stream, setting.address, 1, PAGE));
    OK(device_stream_synchronize(setting.device, setting.stream));
    ck_assert_int_eq(device_run(setting.device, setting.stream, &loses), CAPU_DEVICE_LOST);
    ck_assert_int_eq(device_failure(setting.device, NULL, 0), CAPU_DEVICE_LOST);
    tear_down(&setting);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda device, lost");
    TCase *cases = tcase_create("loss");

    tcase_add_test(cases, a_kernel_that_faults_loses_the_device);
    tcase_add_test(cases, a_copy_of_unmapped_memory_loses_the_device);
    tcase_add_test(cases, the_call_that_found_the_loss_is_named);
    tcase_add_test(cases, an_unknown_error_loses_the_device_only_if_it_persists);
    tcase_add_test(cases, a_failed_op_stops_nothing_unless_the_device_is_lost);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

/* A program that links the archive with the cuda device inside needs no plug-in. */
#include "tests/support/suite.h"

#include <capuchin/capuchin.h>

#include <string.h>

START_TEST(the_device_needs_no_plugin)
{
    char text[400] = "";
    capu_config config = {
        .size = sizeof(config), .device = "cuda", .error = text, .error_bytes = sizeof(text)};
    capu_context *context = NULL;
    capu_status status;

    ck_assert_int_eq(capu_config_set(&config, "plugin_folder", "/nonexistent"), CAPU_OK);
    status = capu_context_create(&config, &context);
    /* Without a GPU, the answer is CUDA's. */
    if (status != CAPU_OK) {
        ck_assert_int_eq(status, CAPU_NO_DEVICE);
        ck_assert_msg(strstr(text, "cudaError") != NULL, "'%s'", text);
    }
    capu_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda inside");
    TCase *tests = tcase_create("cuda inside");

    tcase_add_test(tests, the_device_needs_no_plugin);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

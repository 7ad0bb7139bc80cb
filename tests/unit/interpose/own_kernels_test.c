/*
 * The kernels of kernels/, as this build has compiled them: the role of each pointer, as their
 * sources say it. Words are parameter and offset, in the structures of the operations' headers.
 * Skipped where nvcc is not installed.
 */
#include "interpose/image/binary.h"

#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *file;
    const char
        *kernel; /* how its name begins; a template is mangled with its arguments after that */
    const char *words; /* "data" or "unknown": its addresses depend on more than ids */
} expected[] = {
    {"adamw", "_Z6update5adamw", "0 updated, 0+8 updated, 0+16 updated, 0+24 read, 0+72 written, "},
    {"attention", "_Z7regroupI", "2 updated, 3 updated, "},
    {"attention", "_Z15softmax_forwardI", "0+16 read, 0+24 written, "},
    {"attention", "_Z16softmax_backwardI", "0+24 read, 0+64 written, 0+72 read, "},
    {"average_pool", "_Z7forwardI", "0 read, 0+8 written, "},
    {"average_pool", "_Z8backwardI", "0+16 read, 0+24 written, "},
    {"batch_norm", "_Z9parts_add", "0 read, 2 updated, "},
    {"batch_norm", "_Z9sum_itemsI", "0 read, 1 written, "},
    {"batch_norm", "_Z11sum_squaresI", "0 read, 1 read, 1+8 written, "},
    {"batch_norm", "_Z9normaliseI",
     "0 read, 0+8 written, 0+16 read, 0+24 read, 0+32 updated, 0+40 updated, 0+48 written, "
     "0+56 written, 1 read, 1+8 read, "},
    {"batch_norm", "_Z5inferI",
     "0 read, 0+8 written, 0+16 read, 0+24 read, 0+32 read, 0+40 read, "},
    {"batch_norm", "_Z13sum_gradientsI", "0 read, 0+48 read, 0+64 read, 1 written, 1+8 written, "},
    {"batch_norm", "_Z8backwardI",
     "0 read, 0+16 read, 0+48 read, 0+56 read, 0+64 updated, 0+72 written, 0+80 written, 1 read, "
     "1+8 read, "},
    {"conv2d", "_Z9parts_add", "0 read, 2 updated, "},
    {"conv2d", "_Z17sum_bias_gradientI", "0+32 read, 0+56 written, "},
    {"conv2d", "_Z8multiplyI22conv2d_forward_product",
     "0 read, 0+8 read, 0+16 read, 0+24 written, "},
    {"conv2d", "_Z8multiplyI29conv2d_backward_input_product",
     "0+8 read, 0+32 read, 0+40 written, "},
    {"conv2d", "_Z8multiplyI30conv2d_backward_weight_product", "0 read, 0+32 read, 0+64 written, "},
    {"dropout", "_Z5applyI", "1 read, 2 written, "},
    {"embedding", "_Z7forwardI", "0 read, 0+8 read data, 0+16 read, 0+24 written, "},
    {"embedding", "_Z15backward_tokensI", "0 read unknown, 0+32 read unknown, 0+40 updated data, "},
    {"embedding", "_Z18backward_positionsI", "0+32 read, 0+48 updated, "},
    {"fused_attention", "_Z16multiply_outputsI", "0+8 read, 0+24 read, 0+40 written, "},
    {"fused_attention", "_Z7forwardI", "0 read, 0+8 written, 0+16 written, "},
    {"fused_attention", "_Z16backward_queriesI",
     "0 read, 0+16 read, 0+24 read, 0+32 written, 0+40 read, "},
    {"fused_attention", "_Z13backward_keysI",
     "0 read, 0+16 read, 0+24 read, 0+32 written, 0+40 read, "},
    {"gelu", "_Z7forwardI", "0 read, 0+8 written, "},
    {"gelu", "_Z8backwardI", "0 read, 0+16 updated, "},
    {"gradient_norm", "_Z9sum_parts", "0 read, 1 written, "},
    {"gradient_norm", "_Z6finish", "0+16 written, 1 read, "},
    {"initialise", "_Z4fillI", "0 written, "},
    {"layer_norm", "_Z9parts_add", "0 read, 2 updated, "},
    {"layer_norm", "_Z7forwardI",
     "0 read, 0+8 read, 0+16 read, 0+24 written, 0+32 written, 0+40 written, "},
    {"layer_norm", "_Z14backward_inputI",
     "0 read, 0+8 read, 0+32 read, 0+40 read, 0+48 read, 0+56 updated, "},
    {"layer_norm", "_Z19backward_parametersI",
     "0 read, 0+32 read, 0+40 read, 0+48 read, 1 written, "},
    {"matmul", "_Z11spread_biasI", "0+16 read, 0+24 written, "},
    {"matmul", "_Z9parts_add", "0 read, 2 updated, "},
    {"matmul", "_Z17sum_bias_gradientI", "0+32 read, 1 written, "},
    {"max_pool", "_Z7forwardI", "0 read, 0+8 written, 0+16 written, "},
    {"max_pool", "_Z8backwardI", "0+16 read, 0+24 read, 0+32 written, "},
    {"relu", "_Z7forwardI", "0 read, 0+8 written, "},
    {"relu", "_Z8backwardI", "0+8 read, 0+16 written, "},
    {"residual", "_Z7forwardI", "0 read, 0+8 read, 0+16 written, "},
    {"residual", "_Z8backwardI", "0+24 read, 0+32 updated, 0+40 updated, "},
    {"sgd", "_Z6update3sgd", "0 updated, 0+8 updated, 0+16 read, 0+48 written, "},
    {"softmax_cross_entropy", "_Z7forwardI", "0 read data, 0+8 read, 0+16 written, 0+24 written, "},
    {"softmax_cross_entropy", "_Z7average", "0+24 read, 0+32 written, "},
    {"softmax_cross_entropy", "_Z8backwardI", "0+8 read, 0+16 read, 0+40 written, "},
};

enum { ROWS = sizeof(expected) / sizeof(expected[0]) };

static unsigned seen[ROWS];

static void words_text(const struct kernel *kernel, char *text, size_t bytes)
{
    static const char *const classes[] = {"", " data", " unknown"};
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < kernel->word_count && length < bytes - 64; i++) {
        const struct kernel_word *word = &kernel->words[i];
        char offset[16] = "";

        if (word->offset != 0) {
            snprintf(offset, sizeof(offset), "+%" PRIu32, word->offset);
        }
        length +=
            (size_t)snprintf(text + length, bytes - length, "%" PRIu32 "%s %s%s, ", word->parameter,
                             offset, roles_name(word), classes[word->address]);
    }
}

/* "softmax.cu.o" of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static void check_kernel(const char *path, const struct kernel *kernel)
{
    char text[1024];

    words_text(kernel, text, sizeof(text));
    for (size_t i = 0; i < ROWS; i++) {
        size_t file = strlen(expected[i].file);
        size_t name = strlen(expected[i].kernel);

        if (strncmp(base_name(path), expected[i].file, file) != 0 || base_name(path)[file] != '.' ||
            kernel->name.length < name ||
            memcmp(kernel->name.text, expected[i].kernel, name) != 0) {
            continue;
        }
        seen[i]++;
        ck_assert_msg(kernel->is_closed, "%s: %.*s is open: %s", expected[i].file,
                      (int)kernel->name.length, kernel->name.text, kernel->reasons[0]);
        ck_assert_msg(strcmp(text, expected[i].words) == 0, "%s: %.*s: %s, expected %s",
                      expected[i].file, (int)kernel->name.length, kernel->name.text, text,
                      expected[i].words);
        return;
    }
    ck_abort_msg("%s has a kernel that is not in the table: %.*s", path, (int)kernel->name.length,
                 kernel->name.text);
}

static void check_file(const char *path)
{
    struct error_text problem = {""};
    struct binary binary;

    ck_assert_msg(binary_read(path, &binary, &problem) == CAPU_OK, "%s: %s", path, problem.text);
    ck_assert(!binary.is_cut);
    ck_assert_uint_gt(binary.image_count, 0);
    for (size_t i = 0; i < binary.image_count; i++) {
        struct binary_image *image = &binary.images[i];

        ck_assert_msg(image->status == CAPU_OK, "%s: %s", path, image->problem.text);
        if (image->text == NULL) {
            continue;
        }
        ck_assert_int_eq(binary_analyse(image, &problem), CAPU_OK);
        ck_assert_msg(image->is_analysed, "%s: %s", path, image->problem.text);
        for (size_t j = 0; j < image->kernels.count; j++) {
            const struct kernel *kernel = &image->kernels.kernels[j];

            check_kernel(path, kernel);
            /* Each architecture has PTX and machine code, and they agree about the parameters. */
            ck_assert_msg(binary_doubt(&binary, image, kernel) == NULL, "%s: %s", path,
                          binary_doubt(&binary, image, kernel));
        }
    }
    binary_finish(&binary);
}

START_TEST(roles_are_those_of_the_sources)
{
    char path[1024];
    FILE *list = fopen(OWN_KERNELS, "r");

    ck_assert_ptr_nonnull(list);
    while (fgets(path, sizeof(path), list) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        if (strstr(path, ".cu.") != NULL) {
            check_file(path);
        }
    }
    ck_assert_int_eq(fclose(list), 0);
    for (size_t i = 0; i < ROWS; i++) {
        ck_assert_msg(seen[i] > 0, "%s: no kernel begins with %s", expected[i].file,
                      expected[i].kernel);
    }
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *cases;

    if (!OWN_KERNELS_COMPILED) {
        puts("skipped: built without nvcc");
        return 77;
    }
    suite = suite_create("interpose_own_kernels");
    cases = tcase_create("own_kernels");
    tcase_add_test(cases, roles_are_those_of_the_sources);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

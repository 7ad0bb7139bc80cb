/* capuchin kernels: what is known about the kernels of a CUDA program without running it. */
#include "tools/commands.h"

#include "interpose/binary.h"
#include "tools/arguments.h"
#include "tools/exit_code.h"
#include "tools/output.h"
#include "tools/printable.h"
#include "tools/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels without PTX that are listed per image; the others are counted. */
enum { LISTED = 8 };

enum key { KEY_ALL = KEY_OWN };

struct settings {
    const char *path;
    bool as_json;
    bool lists_all;
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    struct settings *settings = state->input;

    switch (key) {
    case KEY_JSON:
        settings->as_json = true;
        return 0;
    case KEY_ALL:
        settings->lists_all = true;
        return 0;
    case ARGP_KEY_ARG:
        if (settings->path != NULL) {
            argp_error(state, "more than one BINARY: %s", argument);
        }
        settings->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (settings->path == NULL) {
            argp_error(state, "BINARY is missing");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *kind_name(const struct image *image)
{
    switch (image->kind) {
    case IMAGE_PTX:
        return "ptx";
    case IMAGE_ELF:
        return "elf";
    case IMAGE_LTO:
        return "lto";
    case IMAGE_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *packing_name(enum packing packing)
{
    static const char *const names[] = {"none", "lz4", "zstd"};

    return names[packing];
}

/* Whether a fat binary has PTX that could be read. */
static bool has_ptx(const struct binary *binary, unsigned fatbin)
{
    for (size_t i = 0; i < binary->image_count; i++) {
        if (binary->images[i].fatbin == fatbin && binary->images[i].text != NULL) {
            return true;
        }
    }
    return false;
}

static bool json_image(const struct binary_image *image)
{
    json_t *line = json_pack(
        "{s:s,s:i,s:s,s:i,s:s,s:b,s:I,s:i}", "type", "image", "fatbin", (int)image->fatbin, "kind",
        kind_name(&image->image), "architecture", (int)image->image.architecture, "packing",
        packing_name(image->image.packing), "relocatable", image->image.is_relocatable, "bytes",
        (json_int_t)image->image.unpacked_bytes, "kernels", (int)image->cubin.kernel_count);

    if (image->status != CAPU_OK) {
        (void)json_object_set_new(line, "problem", json_string(image->problem.text));
    }
    return output_json(stdout, line);
}

static void print_image(const struct binary_image *image)
{
    char buffer[PRINTABLE_BYTES];

    if (image->image.kind == IMAGE_UNKNOWN) {
        printf("  %4u  unknown kind %u\n", image->fatbin, image->image.kind_number);
        return;
    }
    printf("  %4u  %s  %s_%-4u %9" PRIu64 " bytes", image->fatbin, kind_name(&image->image),
           image->image.kind == IMAGE_ELF ? "sm" : "compute", image->image.architecture,
           image->image.unpacked_bytes);
    if (image->image.packing != PACKING_NONE) {
        printf(", %s", packing_name(image->image.packing));
    }
    if (image->image.is_relocatable) {
        printf(", relocatable");
    }
    if (image->status != CAPU_OK) {
        printf(": %s", printable(image->problem.text, buffer));
    }
    printf("\n");
}

static bool json_kernel(const struct binary_image *image, const struct cubin_kernel *kernel)
{
    json_t *parameters = json_array();

    for (size_t i = 0; i < kernel->parameter_count; i++) {
        (void)json_array_append_new(
            parameters, json_pack("{s:I,s:I}", "offset", (json_int_t)kernel->parameters[i].offset,
                                  "bytes", (json_int_t)kernel->parameters[i].bytes));
    }
    return output_json(stdout,
                       json_pack("{s:s,s:i,s:i,s:s,s:o}", "type", "kernel", "fatbin",
                                 (int)image->fatbin, "architecture", (int)image->image.architecture,
                                 "name", kernel->name, "parameters", parameters));
}

static void print_kernels(const struct binary_image *image, bool lists_all)
{
    char buffer[PRINTABLE_BYTES];

    for (size_t i = 0; i < image->cubin.kernel_count; i++) {
        const struct cubin_kernel *kernel = &image->cubin.kernels[i];

        if (i == LISTED && !lists_all) {
            printf("        and %zu more (--all lists them)\n", image->cubin.kernel_count - i);
            return;
        }
        printf("        %s: %zu parameters, %" PRIu32 " bytes\n", printable(kernel->name, buffer),
               kernel->parameter_count, kernel->parameter_bytes);
    }
}

static void print_binary(const struct binary *binary, const struct settings *settings)
{
    printf("images, by fat binary:\n");
    for (size_t i = 0; i < binary->image_count; i++) {
        print_image(&binary->images[i]);
        print_kernels(&binary->images[i], settings->lists_all);
    }
}

static bool json_binary(const struct binary *binary)
{
    for (size_t i = 0; i < binary->image_count; i++) {
        const struct binary_image *image = &binary->images[i];

        if (!json_image(image)) {
            return false;
        }
        for (size_t j = 0; j < image->cubin.kernel_count; j++) {
            if (!json_kernel(image, &image->cubin.kernels[j])) {
                return false;
            }
        }
    }
    return true;
}

/* Says on standard error what keeps the result from being complete. */
static void say_gaps(const struct binary *binary, const struct settings *settings)
{
    unsigned without = 0;
    const struct binary_image *first = NULL;

    for (size_t i = 0; i < binary->image_count; i++) {
        const struct binary_image *image = &binary->images[i];

        if (image->status != CAPU_OK) {
            say("%s: fat binary %u, %s %u: %s", settings->path, image->fatbin,
                kind_name(&image->image), image->image.architecture, image->problem.text);
        }
        if (image->cubin.kernel_count > 0 && !has_ptx(binary, image->fatbin)) {
            without += (unsigned)image->cubin.kernel_count;
            first = first == NULL ? image : first;
        }
    }
    if (binary->is_cut) {
        say("%s: %s; what follows is not analysed", settings->path, binary->problem.text);
    }
    if (without > 0) {
        char architecture[16] = "XX";

        if (first->image.architecture != 0) {
            snprintf(architecture, sizeof(architecture), "%u", first->image.architecture);
        }
        say("%s: %u kernels have machine code only and cannot be analysed; if they are yours, "
            "rebuild with -gencode arch=compute_%s,code=[sm_%s,compute_%s]",
            settings->path, without, architecture, architecture, architecture);
    }
}

int kernels_main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"all", KEY_ALL, NULL, 0, "List also each kernel that has machine code only", 0},
        {"json", KEY_JSON, NULL, 0, "Print a JSON line per image and per kernel", 0},
        {0}};
    static const struct argp argp = {options,
                                     parse_option,
                                     "BINARY",
                                     "Lists the device code in a CUDA program or library, and its "
                                     "kernels. The program does not run.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct settings settings = {0};
    struct binary binary;
    struct problem problem;
    int code = EXIT_FINE;

    arguments_read(&argp, argc, argv, &settings);
    if (binary_read(settings.path, &binary, &problem) != CAPU_OK) {
        say("%s: %s", settings.path, problem.text);
        return EXIT_USAGE;
    }
    if (binary.image_count == 0 && !binary.is_cut) {
        say("%s: no device code. Is it a CUDA program? Kernels of a shared library are in that "
            "file",
            settings.path);
        code = EXIT_USAGE;
    } else if (!settings.as_json) {
        print_binary(&binary, &settings);
    } else if (!json_binary(&binary)) {
        code = EXIT_USAGE;
    }
    say_gaps(&binary, &settings);
    binary_finish(&binary);
    return code;
}

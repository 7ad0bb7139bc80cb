/* capuchin kernels: what is known about the kernels of a CUDA program without running it. */
#include "tools/command/commands.h"

#include "base/printable.h"
#include "interpose/image/binary.h"
#include "tools/command/arguments.h"
#include "tools/output/output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels without PTX that are listed per image; the others are counted. */
enum { LISTED = 3 };

enum key { KEY_ALL = KEY_OWN };

struct settings {
    const char *path;
    bool as_json;
    bool lists_all;
};

static error_t parse_kernels_option(int key, char *argument, struct argp_state *state)
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

static const char *class_name(enum slice_class class)
{
    static const char *const names[] = {"ids", "data", "unknown"};

    return names[class];
}

/* The PTX images that are reported: of each fat binary that of the newest architecture, or all. */
static bool is_reported(const struct binary *binary, const struct binary_image *image,
                        bool lists_all)
{
    for (size_t i = 0; i < binary->image_count && !lists_all; i++) {
        const struct binary_image *other = &binary->images[i];

        if (other->fatbin == image->fatbin && other->is_analysed &&
            other->image.architecture > image->image.architecture) {
            return false;
        }
    }
    return image->is_analysed;
}

/* Whether a fat binary has PTX that was analysed. */
static bool has_ptx(const struct binary *binary, unsigned fatbin)
{
    for (size_t i = 0; i < binary->image_count; i++) {
        if (binary->images[i].fatbin == fatbin && binary->images[i].is_analysed) {
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

/* Of all kernels that are reported. */
struct sums {
    unsigned closed;
    unsigned open;
    unsigned machine_only;
    unsigned words[3];       /* by the class of their slices */
    unsigned conditional[3]; /* by the class of what decides whether the accesses happen */
    unsigned slices[3];      /* by the worse of both */
};

static void add_kernel(struct sums *sums, const struct kernel *kernel, bool is_closed)
{
    *(is_closed ? &sums->closed : &sums->open) += 1;
    for (size_t i = 0; i < kernel->word_count; i++) {
        sums->words[kernel->words[i].address]++;
        sums->conditional[kernel->words[i].condition]++;
        sums->slices[kernel->words[i].address > kernel->words[i].condition
                         ? kernel->words[i].address
                         : kernel->words[i].condition]++;
    }
}

static json_t *json_parameters(const struct kernel *kernel)
{
    json_t *list = json_array();

    for (size_t i = 0; i < kernel->parameter_count; i++) {
        const struct kernel_parameter *parameter = &kernel->parameters[i];

        (void)json_array_append_new(
            list, json_pack("{s:I,s:I,s:b,s:b}", "offset", (json_int_t)parameter->offset, "bytes",
                            (json_int_t)parameter->bytes, "used", parameter->is_used, "in_slice",
                            parameter->is_in_slice));
    }
    return list;
}

static json_t *json_words(const struct kernel *kernel)
{
    json_t *list = json_array();

    for (size_t i = 0; i < kernel->word_count; i++) {
        const struct kernel_word *word = &kernel->words[i];
        json_t *line = json_pack(
            "{s:I,s:s,s:I,s:I,s:s,s:s,s:s,s:b}", "parameter", (json_int_t)word->parameter, "role",
            roles_name(word), "read_bytes", (json_int_t)word->read_bytes, "write_bytes",
            (json_int_t)word->write_bytes, "address", class_name(word->address), "condition",
            class_name(word->condition), "unknown", roles_unknown(word->unknown), "may_be_offset",
            word->may_be_offset);

        (void)json_object_set_new(
            line, "offset", word->offset == PTX_NONE ? json_null() : json_integer(word->offset));
        (void)json_array_append_new(list, line);
    }
    return list;
}

static bool json_kernel(const struct binary_image *image, const struct kernel *kernel,
                        const char *doubt)
{
    json_t *reasons = json_array();
    json_t *line;

    if (doubt != NULL) {
        (void)json_array_append_new(reasons, json_string(doubt));
    }
    for (unsigned i = 0; i < kernel->reason_count; i++) {
        (void)json_array_append_new(reasons, json_string(kernel->reasons[i]));
    }
    line = json_pack("{s:s,s:i,s:i,s:s%,s:s,s:b,s:o,s:o,s:o}", "type", "kernel", "fatbin",
                     (int)image->fatbin, "architecture", (int)image->image.architecture, "name",
                     kernel->name.text, (size_t)kernel->name.length, "code", "ptx", "closed",
                     kernel->is_closed && doubt == NULL, "reasons", reasons, "parameters",
                     json_parameters(kernel), "words", json_words(kernel));
    (void)json_object_set_new(line, "atomics", json_boolean(kernel->has_atomics));
    (void)json_object_set_new(line, "waits", json_boolean(kernel->waits));
    (void)json_object_set_new(line, "reads_variables", json_boolean(kernel->reads_variables));
    (void)json_object_set_new(line, "writes_variables", json_boolean(kernel->writes_variables));
    return output_json(stdout, line);
}

/* A kernel with machine code only. */
static bool json_compiled(const struct binary_image *image, const struct cubin_kernel *kernel)
{
    json_t *parameters = json_array();

    for (size_t i = 0; i < kernel->parameter_count; i++) {
        (void)json_array_append_new(
            parameters, json_pack("{s:I,s:I}", "offset", (json_int_t)kernel->parameters[i].offset,
                                  "bytes", (json_int_t)kernel->parameters[i].bytes));
    }
    return output_json(stdout,
                       json_pack("{s:s,s:i,s:i,s:s,s:s,s:b,s:[s],s:o}", "type", "kernel", "fatbin",
                                 (int)image->fatbin, "architecture", (int)image->image.architecture,
                                 "name", kernel->name, "code", "elf", "closed", 0, "reasons",
                                 "machine code only", "parameters", parameters));
}

static json_t *json_classes(const unsigned counts[3])
{
    json_t *classes = json_object();

    for (unsigned i = SLICE_IDS; i <= SLICE_UNKNOWN; i++) {
        (void)json_object_set_new(classes, class_name((enum slice_class)i),
                                  json_integer(counts[i]));
    }
    return classes;
}

static bool json_sums(const struct sums *sums)
{
    return output_json(stdout,
                       json_pack("{s:s,s:i,s:i,s:i,s:o,s:o,s:o}", "type", "summary", "closed",
                                 (int)sums->closed, "open", (int)sums->open, "machine_only",
                                 (int)sums->machine_only, "address", json_classes(sums->words),
                                 "condition", json_classes(sums->conditional), "slice",
                                 json_classes(sums->slices)));
}

static void print_span(struct span span)
{
    char name[PRINTABLE_BYTES];
    char buffer[PRINTABLE_BYTES];

    snprintf(name, sizeof(name), "%.*s", (int)span.length, span.text);
    printf("%s", printable(name, buffer));
}

static void print_word(const struct kernel_word *word)
{
    char place[32];
    char bytes[32] = "";

    if (word->offset == PTX_NONE) {
        snprintf(place, sizeof(place), "%" PRIu32 "[...]", word->parameter);
    } else if (word->offset == 0) {
        snprintf(place, sizeof(place), "%" PRIu32, word->parameter);
    } else {
        snprintf(place, sizeof(place), "%" PRIu32 "+%" PRIu32, word->parameter, word->offset);
    }
    if (word->read_bytes > 0) {
        snprintf(bytes, sizeof(bytes), "r%u", word->read_bytes);
    }
    if (word->write_bytes > 0) {
        snprintf(bytes + strlen(bytes), sizeof(bytes) - strlen(bytes), "%sw%u",
                 word->read_bytes > 0 ? " " : "", word->write_bytes);
    }
    printf("      %-10s %-8s %-8s %-8s %s%s%s\n", place, roles_name(word), bytes,
           class_name(word->address), class_name(word->condition), word->unknown != 0 ? ": " : "",
           roles_unknown(word->unknown));
}

static void print_kernel(const struct kernel *kernel, const char *doubt)
{
    char buffer[PRINTABLE_BYTES];
    bool has_values = false;

    printf("    ");
    print_span(kernel->name);
    printf(": %s\n", kernel->is_closed && doubt == NULL ? "closed" : "open");
    if (doubt != NULL) {
        printf("      open: %s\n", doubt);
    }
    for (unsigned i = 0; i < kernel->reason_count; i++) {
        printf("      open: %s\n", printable(kernel->reasons[i], buffer));
    }
    if (kernel->word_count > 0) {
        printf("      %-10s %-8s %-8s %-8s %s\n", "parameter", "role", "bytes", "address",
               "whether");
    }
    for (size_t i = 0; i < kernel->word_count; i++) {
        print_word(&kernel->words[i]);
    }
    for (size_t i = 0; i < kernel->parameter_count; i++) {
        if (kernel->parameters[i].is_in_slice) {
            printf("%s %zu", has_values ? "," : "      slices read values of", i);
            has_values = true;
        }
    }
    printf(has_values ? "\n" : "");
}

static void print_compiled(const struct binary_image *image, bool lists_all)
{
    char buffer[PRINTABLE_BYTES];

    for (size_t i = 0; i < image->cubin.kernel_count; i++) {
        const struct cubin_kernel *kernel = &image->cubin.kernels[i];

        if (i == LISTED && !lists_all) {
            printf("    and %zu more (--all lists them)\n", image->cubin.kernel_count - i);
            return;
        }
        printf("    %s: open: machine code only; %zu parameters, %" PRIu32 " bytes\n",
               printable(kernel->name, buffer), kernel->parameter_count, kernel->parameter_bytes);
    }
}

static bool json_image_kernels(const struct binary *binary, const struct binary_image *image,
                               const struct settings *settings)
{
    if (is_reported(binary, image, settings->lists_all)) {
        for (size_t i = 0; i < image->kernels.count; i++) {
            const struct kernel *kernel = &image->kernels.kernels[i];

            if (!json_kernel(image, kernel, binary_doubt(binary, image, kernel))) {
                return false;
            }
        }
    }
    if (!has_ptx(binary, image->fatbin)) {
        for (size_t i = 0; i < image->cubin.kernel_count; i++) {
            if (!json_compiled(image, &image->cubin.kernels[i])) {
                return false;
            }
        }
    }
    return true;
}

static void print_image_kernels(const struct binary *binary, const struct binary_image *image,
                                const struct settings *settings)
{
    if (is_reported(binary, image, settings->lists_all)) {
        for (size_t i = 0; i < image->kernels.count; i++) {
            const struct kernel *kernel = &image->kernels.kernels[i];

            print_kernel(kernel, binary_doubt(binary, image, kernel));
        }
    }
    if (!has_ptx(binary, image->fatbin)) {
        print_compiled(image, settings->lists_all);
    }
}

static void sum_up_device_code(const struct binary *binary, const struct settings *settings,
                               struct sums *sums)
{
    for (size_t i = 0; i < binary->image_count; i++) {
        const struct binary_image *image = &binary->images[i];

        for (size_t j = 0;
             is_reported(binary, image, settings->lists_all) && j < image->kernels.count; j++) {
            const struct kernel *kernel = &image->kernels.kernels[j];

            add_kernel(sums, kernel,
                       kernel->is_closed && binary_doubt(binary, image, kernel) == NULL);
        }
        if (!has_ptx(binary, image->fatbin)) {
            sums->machine_only += (unsigned)image->cubin.kernel_count;
        }
    }
}

static void print_sums(const struct sums *sums)
{
    unsigned words = sums->words[SLICE_IDS] + sums->words[SLICE_DATA] + sums->words[SLICE_UNKNOWN];

    printf("%u kernels closed, %u open, %u with machine code only\n", sums->closed, sums->open,
           sums->machine_only);
    printf("%u pointers; for %u, addresses and whether accesses happen depend on parameters and "
           "ids only, for %u on data, for %u on what is not known\n",
           words, sums->slices[SLICE_IDS], sums->slices[SLICE_DATA], sums->slices[SLICE_UNKNOWN]);
}

/* False: it cannot be written, and an error has been printed. */
static bool print_binary(const struct binary *binary, const struct settings *settings)
{
    struct sums sums = {0};

    sum_up_device_code(binary, settings, &sums);
    for (size_t i = 0; i < binary->image_count; i++) {
        const struct binary_image *image = &binary->images[i];

        if (!settings->as_json) {
            print_image(image);
            print_image_kernels(binary, image, settings);
        } else if (!json_image(image) || !json_image_kernels(binary, image, settings)) {
            return false;
        }
    }
    if (settings->as_json) {
        return json_sums(&sums);
    }
    print_sums(&sums);
    return true;
}

/* Analyses all PTX. False: there is no memory for it, and an error has been printed. */
static bool analyse_ptx(struct binary *binary, const char *path)
{
    struct error_text problem;

    for (size_t i = 0; i < binary->image_count; i++) {
        if (binary->images[i].text != NULL &&
            binary_analyse(&binary->images[i], &problem) != CAPU_OK) {
            say("%s: %s", path, problem.text);
            return false;
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
        say("%s: %s; what is there is not analysed", settings->path, binary->problem.text);
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
        {"all", KEY_ALL, NULL, 0,
         "List each kernel that has machine code only, and the PTX of every architecture", 0},
        {"json", KEY_JSON, NULL, 0, "Print a JSON line per image and per kernel", 0},
        {0}};
    static const struct argp argp = {options,
                                     parse_kernels_option,
                                     "BINARY",
                                     "Lists the kernels of a CUDA program or library and what each "
                                     "does with the memory that its parameters point to. The "
                                     "program does not run.",
                                     NULL,
                                     NULL,
                                     NULL};
    struct settings settings = {0};
    struct binary binary;
    struct error_text problem;
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
    } else if (!analyse_ptx(&binary, settings.path) || !print_binary(&binary, &settings)) {
        code = EXIT_USAGE;
    }
    say_gaps(&binary, &settings);
    binary_finish(&binary);
    return code;
}

/* The analysis of samples.cu, from the PTX that nvcc made of it, and of damaged versions of that
 * PTX. */
#include "interpose/flow/roles.h"

#include "tests/support/effort.h"
#include "tests/support/suite.h"
#include "tests/unit/interpose/analysis_text.h"

#include <stdlib.h>

static const struct {
    const char *kernel;
    const char *analysis;
    const char *reason; /* if open: part of the first one */
} expected[] = {
    {"step", "closed: 0 read ids/ids; 0+16 updated ids/ids; 0+24 written ids/ids", NULL},
    {"triangle", "closed: 0 written ids/ids", NULL},
    {"gather", "closed: 0 written ids/ids; 1 read data/ids; 2 read ids/ids", NULL},
    {"scatter", "closed: 0 atomic data/ids; 1 read ids/ids; 2 read ids/ids", NULL},
    {"clip", "closed: 0 read ids/ids; 1 written ids/data", NULL},
    {"search", "closed: 0 read data/data; 2 read ids/data; 3 written ids/ids", NULL},
    {"ticket", "closed: 0 updated ids/unknown; 1 atomic ids/ids; 2 written ids/unknown", NULL},
    {"table", "open: 0 read ids/ids", "loaded from memory"},
    {"escape", "open: 0 written ids/ids; 1 written ids/ids", "a pointer is stored to memory"},
    {"from_variable", "open: 0 read ids/ids", "loaded from a variable"},
    {"by_variable", "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"choose", "closed: 0 written ids/ids; 1 written ids/ids; 3 read ids/ids", NULL},
    {"listed",
     "closed: 0 written unknown/ids; 0+8 written unknown/ids; 0+16 written unknown/ids; "
     "0+24 written unknown/ids; 0+32 written unknown/ids; 0+40 written unknown/ids",
     NULL},
    {"by_shared", "closed: 0 written unknown/ids; 1 read ids/ids", NULL},
    {"locked", "closed: 0 atomic ids/unknown; 1 updated ids/ids", NULL},
    {"largest", "closed: 0 atomic ids/unknown; 1 read ids/ids", NULL},
    {"widen", "closed: 0 written ids/ids; 1 read ids/ids", NULL},
    {"assembly", "closed: 0 written ids/ids; 1 read ids/ids", NULL},
};

static char *text;
static size_t text_bytes;

static void read_samples(void)
{
    FILE *file = fopen(SAMPLES_PTX, "r");
    static char buffer[1 << 16];

    ck_assert_ptr_nonnull(file);
    text_bytes = fread(buffer, 1, sizeof(buffer), file);
    ck_assert_uint_lt(text_bytes, sizeof(buffer));
    ck_assert_int_eq(fclose(file), 0);
    text = buffer;
}

static const struct kernel *find(const struct kernels *kernels, const char *name)
{
    for (size_t i = 0; i < kernels->count; i++) {
        if (span_is(kernels->kernels[i].name, name)) {
            return &kernels->kernels[i];
        }
    }
    ck_abort_msg("no kernel %s", name);
}

static void analyse(struct ptx_module *module, struct kernels *kernels)
{
    struct error_text problem = {""};

    ck_assert_msg(ptx_parse(text, text_bytes, module, &problem) == CAPU_OK, "%s", problem.text);
    ck_assert_int_eq(roles_find(module, kernels), CAPU_OK);
}

START_TEST(samples_are_analysed_as_expected)
{
    struct ptx_module module;
    struct kernels kernels;

    analyse(&module, &kernels);
    ck_assert_uint_eq(module.architecture, 80);
    ck_assert_uint_eq(kernels.count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct kernel *kernel = find(&kernels, expected[i].kernel);
        char got[ANALYSIS_TEXT_BYTES];

        analysis_text(kernel, got);
        ck_assert_msg(strcmp(got, expected[i].analysis) == 0, "%s: %s, expected %s",
                      expected[i].kernel, got, expected[i].analysis);
        ck_assert_msg(
            expected[i].reason == NULL || (kernel->reason_count == 1 &&
                                           strstr(kernel->reasons[0], expected[i].reason) != NULL),
            "%s: %u reasons, %s", expected[i].kernel, kernel->reason_count, kernel->reasons[0]);
    }
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

START_TEST(widths_and_facts)
{
    struct ptx_module module;
    struct kernels kernels;
    const struct kernel *kernel;

    analyse(&module, &kernels);
    kernel = find(&kernels, "widen");
    ck_assert_uint_eq(kernel->words[0].write_bytes, 16);
    ck_assert_uint_eq(kernel->words[1].read_bytes, 4);
    ck_assert(!kernel->has_atomics);
    kernel = find(&kernels, "clip");
    ck_assert_uint_eq(kernel->words[1].write_bytes, 2);
    ck_assert(find(&kernels, "scatter")->has_atomics);
    ck_assert(find(&kernels, "by_variable")->reads_variables);
    ck_assert(!find(&kernels, "gather")->reads_variables);
    ck_assert(find(&kernels, "locked")->waits);
    ck_assert(!find(&kernels, "locked")->waits_for_others);
    ck_assert(!find(&kernels, "largest")->waits);
    /* The rate decides nothing, the count does. */
    kernel = find(&kernels, "step");
    ck_assert_uint_eq(kernel->parameter_bytes, 36);
    ck_assert(kernel->parameters[0].is_in_slice);
    ck_assert(!kernel->parameters[1].is_in_slice);
    ck_assert(kernel->parameters[1].is_used);
    roles_finish(&kernels);
    ptx_finish(&module);
}
END_TEST

/* Analyses a copy of exactly that size, so that ASan sees each byte that is read past its end. */
static void analyse_damaged(size_t count)
{
    char *copy = malloc(count == 0 ? 1 : count);
    struct error_text problem;
    struct ptx_module module;
    struct kernels kernels;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, count);
    if (ptx_parse(copy, count, &module, &problem) == CAPU_OK) {
        ck_assert_int_eq(roles_find(&module, &kernels), CAPU_OK);
        roles_finish(&kernels);
        ptx_finish(&module);
    }
    free(copy);
}

START_TEST(cut_and_changed_texts_do_no_harm)
{
    static const char signs[] = "{}[]();,:@!|+-.%<>\"/0 aprd\n";
    uint64_t state = 5;

    for (size_t count = 0; count < text_bytes; count += 1 + text_bytes / effort_share(4000)) {
        analyse_damaged(count);
    }
    for (unsigned i = 0; i < effort_share(4000); i++) {
        char saved[3];
        size_t at;

        state = state * 6364136223846793005u + 1442695040888963407u;
        at = (size_t)(state >> 33) % (text_bytes - sizeof(saved));
        memcpy(saved, text + at, sizeof(saved));
        for (size_t j = 0; j < sizeof(saved); j++) {
            /* What the bytes become: a sign, a byte from elsewhere, or nothing. */
            unsigned kind = (unsigned)(state >> (8 + 3 * j)) % 4;

            text[at + j] = kind == 0   ? signs[(state >> (20 + j)) % (sizeof(signs) - 1)]
                           : kind == 1 ? text[(state >> (11 + j)) % text_bytes]
                                       : saved[j];
        }
        analyse_damaged(text_bytes);
        memcpy(text + at, saved, sizeof(saved));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interpose_samples");
    TCase *cases = tcase_create("samples");

    tcase_add_unchecked_fixture(cases, read_samples, NULL);
    tcase_add_test(cases, samples_are_analysed_as_expected);
    tcase_add_test(cases, widths_and_facts);
    tcase_add_test(cases, cut_and_changed_texts_do_no_harm);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

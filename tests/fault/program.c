/* The program of the fault sweeps, see program.h. */
#include "tests/fault/program.h"

#include <string.h>

#define PAGES(count_) ((size_t)(count_) * (size_t)RIG_PAGE)

const unsigned char program_sums[3] = {18, 1, 10};

struct add {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
};

static capu_status add(capu_stream stream, const void *arguments)
{
    const struct add *it = arguments;

    (void)stream;
    for (size_t i = 0; i < it->bytes; i++) {
        it->to[i] = (unsigned char)(it->to[i] + it->from[i]);
    }
    return CAPU_OK;
}

static capu_status next(capu_stream stream, const void *arguments)
{
    const struct add *it = arguments;

    (void)stream;
    for (size_t i = 0; i < it->bytes; i++) {
        it->to[i] = (unsigned char)(it->from[i] + 1);
    }
    return CAPU_OK;
}

/* Whether to repeat a call. Validates the context after each failure, which must have a text. */
static bool again(struct program *program, capu_status status, unsigned tried)
{
    const char *what = "";

    if (status == CAPU_OK) {
        return false;
    }
    program->failures++;
    if (capu_last_error(program->context)[0] == '\0') {
        program->is_wrong = true;
        program->what = "an error has no text";
        program->status = status;
        return false;
    }
    if (status != CAPU_DEVICE_LOST && status != CAPU_OP_FAILED &&
        !context_validate(program->context, &what)) {
        program->is_wrong = true;
        program->what = what;
        program->status = status;
        return false;
    }
    if (tried >= program->retries) {
        program->status = status;
        return false;
    }
    (void)capu_explain(program->context, status, ""); /* the next failure brings its own */
    return true;
}

/* Makes a call, with retries, unless an earlier one has failed in the end. */
#define TRY(program_, call_)                                                 \
    do {                                                                     \
        for (unsigned tried_ = 0; (program_)->status == CAPU_OK; tried_++) { \
            if (!again((program_), (call_), tried_)) {                       \
                break;                                                       \
            }                                                                \
        }                                                                    \
    } while (0)

static unsigned char *allocate(struct program *program, size_t bytes)
{
    void *address = NULL;

    TRY(program, capu_malloc(program->context, bytes, &address));
    return address;
}

static unsigned char *resize(struct program *program, unsigned char *old, size_t bytes)
{
    void *address = old;

    TRY(program, capu_realloc(program->context, old, bytes, &address));
    return address;
}

static void run(struct program *program, const char *name, capu_run_function function, void *to,
                const void *from, size_t bytes, capu_role role)
{
    struct add arguments = {.to = to, .from = from, .bytes = bytes};
    capu_operand operands[] = {capu_operand_of(from, bytes, CAPU_READ),
                               capu_operand_of(to, bytes, role)};
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = function,
                  .arguments = &arguments,
                  .argument_bytes = sizeof(arguments),
                  .operands = operands,
                  .operand_count = 2};

    TRY(program, capu_run(program->context, &op));
}

/* Reads a tensor whose bytes must all be equal. */
static unsigned char read_sum(struct program *program, const void *from, size_t bytes)
{
    static unsigned char copy[PAGES(8)];

    /* After a failure to wait, an earlier copy into this buffer may still be running. */
    if (program->status != CAPU_OK) {
        return 0;
    }
    memset(copy, 0, bytes);
    TRY(program, capu_download(program->context, copy, from, bytes, 0));
    if (program->status != CAPU_OK) {
        return 0;
    }
    for (size_t i = 1; i < bytes; i++) {
        if (copy[i] != copy[0]) {
            program->is_wrong = true;
            program->what = "bytes of one tensor differ";
        }
    }
    return copy[0];
}

static void step(struct program *program, unsigned char *weights, unsigned char *gradients,
                 unsigned char *input)
{
    static unsigned char ones[PAGES(3)];
    unsigned char *first;
    unsigned char *second;

    memset(ones, 1, sizeof(ones));
    TRY(program, capu_iteration_begin(program->context, "train"));
    TRY(program, capu_upload(program->context, input, ones, sizeof(ones), 0));
    TRY(program, capu_zero(program->context, gradients, PAGES(6)));
    memset(ones, 99, sizeof(ones));
    first = allocate(program, PAGES(3));
    second = allocate(program, PAGES(3));
    run(program, "layer 1", next, first, input, PAGES(3), CAPU_WRITE);
    run(program, "layer 2", next, second, first, PAGES(3), CAPU_WRITE_REST_ZERO);
    run(program, "backward 2", add, gradients + 100, second, PAGES(3), CAPU_UPDATE);
    TRY(program, capu_free(program->context, second));
    run(program, "backward 1", add, gradients + 100, first, PAGES(3), CAPU_UPDATE);
    TRY(program, capu_free(program->context, first));
    run(program, "step", add, weights, gradients + 100, PAGES(3), CAPU_UPDATE);
    TRY(program, capu_iteration_end(program->context));
}

void program_run(struct program *program)
{
    static const size_t pieces[] = {PAGES(1), 300, 100};
    static unsigned char start[PAGES(3)];
    unsigned char *weights = allocate(program, PAGES(3));
    unsigned char *gradients = allocate(program, PAGES(6));
    unsigned char *input = allocate(program, PAGES(3));
    unsigned char *small = allocate(program, 100);
    unsigned char *copy = allocate(program, 100);

    memset(start, 3, sizeof(start));
    TRY(program, CAPU_DESCRIBE(program->context, weights, .name = "w", .kind = CAPU_PARAMETER));
    TRY(program, CAPU_DESCRIBE(program->context, input, .name = "x",
                               .kind = program->keeps_input ? CAPU_PARAMETER : CAPU_INPUT));
    TRY(program, capu_upload(program->context, weights, start, sizeof(start), 0));
    TRY(program, capu_upload(program->context, small, start, 100, 0));
    TRY(program, capu_zero(program->context, gradients, PAGES(6)));
    TRY(program, capu_split(program->context, gradients + 100, PAGES(3)));
    TRY(program, capu_split(program->context, weights + PAGES(1) + 50, 200));
    for (size_t i = 0; i < 3; i++) {
        step(program, weights, gradients, input);
        run(program, "small", next, copy, small, 100, CAPU_WRITE);
    }
    TRY(program, capu_copy(program->context, small, copy, 100));
    run(program, "more", add, small, copy, 100, CAPU_UPDATE);
    run(program, "more", next, small, small, 100, CAPU_UPDATE);
    run(program, "more", next, small, small, 100, CAPU_UPDATE);
    TRY(program, capu_split_list(program->context, gradients + PAGES(4), pieces, 3));
    weights = resize(program, weights, PAGES(3) + 1);
    weights = resize(program, weights, PAGES(4));
    TRY(program, capu_synchronize(program->context));
    TRY(program, capu_flush(program->context));
    program->sums[0] = read_sum(program, weights, PAGES(3));
    program->sums[1] = read_sum(program, input, PAGES(3));
    program->sums[2] = read_sum(program, small, 100);
    TRY(program, capu_free(program->context, gradients));
    TRY(program, capu_free(program->context, weights));
}

/*
 * Random programs under random budgets: every byte compared with the same program on plain memory.
 *
 * A program allocates, splits, describes, frees, runs ops on whole tensors, parts and ranges over
 * several, uploads, downloads, copies, zeroes and touches memory itself, in iterations and between
 * them. A shadow keeps what plain memory would hold and which bytes are defined. Beside the bytes
 * it checks that the budget holds at the device table, that the library's books are right after
 * each step, and that an op is refused exactly when it reads what was not written.
 *
 * CAPUCHIN_SEED and CAPUCHIN_PROGRAMS choose where it starts and how many programs run; a failure
 * prints the program's seed.
 */
#include "tests/support/mixing.h"
#include "tests/support/rig.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

enum { TENSORS = 24, STEPS = 160, LARGEST_PAGES = 14, TEXT = 256 };

/* A tensor, with what it would hold on plain memory. */
struct shadow {
    unsigned char *address;
    unsigned char *bytes;
    uint64_t count;
    size_t blob; /* tensors split from one allocation share it */
    bool is_live;
    bool is_transient;
    bool is_defined;
};

struct program {
    struct rig rig;
    uint64_t state; /* of the random numbers */
    struct shadow tensors[TENSORS];
    size_t tensor_count;
    size_t blob_count;
    bool in_iteration;
    uint64_t ops;
    char where[TEXT];
};

static uint64_t draw(struct program *program, uint64_t below)
{
    return mixing_random(&program->state) % below;
}

#define HOLDS(program_, condition_)                                          \
    ck_assert_msg(condition_, "%s: %s (%s)", (program_)->where, #condition_, \
                  capu_last_error((program_)->rig.context))
#define WORKS(program_, call_) HOLDS(program_, (call_) == CAPU_OK)

static struct shadow *pick(struct program *program)
{
    return &program->tensors[draw(program, program->tensor_count)];
}

static void describe(struct program *program, struct shadow *tensor)
{
    tensor->is_transient = draw(program, 2) == 0;
    WORKS(program, CAPU_DESCRIBE(program->rig.context, tensor->address, .name = "tensor",
                                 .kind = tensor->is_transient ? CAPU_ACTIVATION : CAPU_PARAMETER));
}

static void add_tensor(struct program *program, unsigned char *address, uint64_t count)
{
    struct shadow *tensor = &program->tensors[program->tensor_count++];

    *tensor = (struct shadow){
        .address = address,
        .bytes = calloc(1, count),
        .count = count,
        .blob = program->blob_count,
        .is_live = true,
        .is_defined = program->rig.context->config.clear_fresh != 0,
    };
    HOLDS(program, tensor->bytes != NULL);
    describe(program, tensor);
}

/* Allocates a tensor, or a blob that is split at odd places. */
static void allocate(struct program *program)
{
    uint64_t count = 1 + draw(program, LARGEST_PAGES * RIG_PAGE);
    uint64_t offset = 0;
    void *address;

    if (program->tensor_count + 4 > TENSORS) {
        return;
    }
    if (draw(program, 3) == 0) {
        count = 1 + draw(program, RIG_PAGE);
    }
    WORKS(program, capu_malloc(program->rig.context, count, &address));
    program->blob_count++;
    for (size_t pieces = draw(program, 3); pieces > 0 && count - offset > 1; pieces--) {
        uint64_t here = 1 + draw(program, count - offset - 1);

        WORKS(program, capu_split(program->rig.context, (unsigned char *)address + offset, here));
        add_tensor(program, (unsigned char *)address + offset, here);
        offset += here;
    }
    add_tensor(program, (unsigned char *)address + offset, count - offset);
}

static void check_bytes(struct program *program, const struct shadow *tensor, uint64_t from,
                        uint64_t count)
{
    static unsigned char bytes[LARGEST_PAGES * RIG_PAGE];

    WORKS(program, capu_download(program->rig.context, bytes, tensor->address + from, count));
    HOLDS(program, memcmp(bytes, tensor->bytes + from, count) == 0);
}

static void free_blob(struct program *program)
{
    size_t blob = pick(program)->blob;
    unsigned char *start = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < program->tensor_count; i++) {
        struct shadow *tensor = &program->tensors[i];

        if (tensor->blob != blob) {
            program->tensors[kept++] = *tensor;
            continue;
        }
        if (start == NULL || tensor->address < start) {
            start = tensor->address;
        }
        free(tensor->bytes);
    }
    program->tensor_count = kept;
    WORKS(program, capu_free(program->rig.context, start));
}

/* An operand on a whole tensor, or on a part of it. */
static struct shadow *add_operand(struct program *program, struct mixing *plain,
                                  struct mixing *device, capu_operand *operands)
{
    static const uint32_t roles[] = {CAPU_READ,  CAPU_READ,          CAPU_WRITE,
                                     CAPU_WRITE, CAPU_WRITE_CLEARED, CAPU_UPDATE};
    struct shadow *tensor = pick(program);
    struct mixing_operand *to = &plain->operands[plain->count];
    uint64_t from = 0;
    uint64_t count = tensor->count;

    for (size_t i = 0; i < plain->count; i++) {
        /* A tensor named twice merges; its parts may overlap, so that is tested elsewhere. */
        if (device->operands[i].address >= tensor->address &&
            device->operands[i].address < tensor->address + tensor->count) {
            return NULL;
        }
    }
    to->role = roles[draw(program, sizeof(roles) / sizeof(roles[0]))];
    if (draw(program, 4) == 0 && count > 1) {
        from = draw(program, count - 1);
        count = 1 + draw(program, count - from);
    }
    to->address = tensor->bytes + from;
    to->bytes = count;
    to->written_percent = (uint32_t)draw(program, 101);
    device->operands[plain->count] = *to;
    device->operands[plain->count].address = tensor->address + from;
    operands[plain->count] = capu_operand_of(
        tensor->address + from, count == tensor->count && draw(program, 2) == 0 ? 0 : count,
        (capu_role)to->role);
    plain->count++;
    return tensor;
}

static bool is_whole(const struct shadow *tensor, const struct mixing_operand *operand)
{
    return operand->bytes == tensor->count;
}

static uint64_t pages_of(struct program *program, struct shadow *const *tensors, size_t count)
{
    uint64_t pages = context_fixed_pages(program->rig.context);

    for (size_t i = 0; i < count; i++) {
        pages += tensors_find(&program->rig.context->tensors, tensors[i]->address)->page_count;
    }
    return pages;
}

/* Does to plain memory what the op did to the device's. */
static void run_plain(struct mixing *plain, struct shadow *const *tensors)
{
    for (size_t i = 0; i < plain->count; i++) {
        struct mixing_operand *operand = &plain->operands[i];

        if (operand->role == CAPU_WRITE_CLEARED) {
            memset(operand->address, 0, operand->bytes);
        }
    }
    mixing_run(NULL, plain);
    for (size_t i = 0; i < plain->count; i++) {
        if (plain->operands[i].role != CAPU_READ) {
            tensors[i]->is_defined = true;
        }
    }
}

static void run_op(struct program *program)
{
    struct mixing plain = {.seed = mixing_random(&program->state)};
    struct mixing device = plain;
    struct shadow *tensors[MIXING_OPERANDS];
    capu_operand operands[MIXING_OPERANDS];
    capu_op op = {.size = sizeof(op), .name = "mix", .run = mixing_run};
    size_t wanted = 1 + draw(program, MIXING_OPERANDS - 1);
    bool reads_undefined = false;
    capu_status status;

    for (size_t i = 0; i < wanted; i++) {
        struct shadow *tensor = add_operand(program, &plain, &device, operands);

        if (tensor != NULL) {
            const struct mixing_operand *operand = &plain.operands[plain.count - 1];
            bool reads = operand->role == CAPU_READ || operand->role == CAPU_UPDATE;

            tensors[plain.count - 1] = tensor;
            reads_undefined = reads_undefined || (reads && !tensor->is_defined);
            if (!is_whole(tensor, operand) && !tensor->is_defined) {
                return; /* the rest of the tensor would stay undefined, and be compared later */
            }
        }
    }
    device.count = plain.count;
    op.arguments = &device;
    op.argument_bytes = sizeof(device);
    op.operands = operands;
    op.operand_count = plain.count;
    if (draw(program, 10) == 0) {
        status = capu_access_begin(program->rig.context, &op);
        if (status == CAPU_OK) {
            mixing_run(NULL, &device);
            WORKS(program, capu_access_end(program->rig.context));
        }
    } else {
        status = capu_run(program->rig.context, &op);
    }
    if (reads_undefined) {
        HOLDS(program, status == CAPU_UNDEFINED_READ);
        return;
    }
    /* Asked afterwards: slabs that became empty give their pages back before an op is refused. */
    if (pages_of(program, tensors, plain.count) > pages_limit(program->rig.context->pages)) {
        HOLDS(program, status == CAPU_OVER_BUDGET);
        return;
    }
    HOLDS(program, status == CAPU_OK);
    run_plain(&plain, tensors);
    program->ops++;
}

static void upload(struct program *program)
{
    struct shadow *tensor = pick(program);
    uint64_t from = draw(program, 2) == 0 || !tensor->is_defined ? 0 : draw(program, tensor->count);
    uint64_t count = tensor->count - from;
    static unsigned char source[LARGEST_PAGES * RIG_PAGE];

    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = mixing_random(&program->state);

        memcpy(source + at, &word, count - at < sizeof(word) ? count - at : sizeof(word));
    }
    WORKS(program, capu_upload(program->rig.context, tensor->address + from, source, count));
    memcpy(tensor->bytes + from, source, count);
    memset(source, 0xa5,
           count); /* it was copied: what the caller does to it now is his own affair */
    tensor->is_defined = true;
}

static void download(struct program *program)
{
    struct shadow *tensor = pick(program);
    uint64_t from = draw(program, tensor->count);

    if (tensor->is_defined) {
        check_bytes(program, tensor, from, 1 + draw(program, tensor->count - from));
    }
}

static void zero(struct program *program)
{
    struct shadow *tensor = pick(program);

    WORKS(program, capu_zero(program->rig.context, tensor->address,
                             draw(program, 2) == 0 ? 0 : tensor->count));
    memset(tensor->bytes, 0, tensor->count);
    tensor->is_defined = true;
}

static void copy(struct program *program)
{
    struct shadow *from = pick(program);
    struct shadow *to = pick(program);
    uint64_t count = from->count < to->count ? from->count : to->count;
    struct shadow *both[] = {from, to};

    if (from == to || !from->is_defined || (count < to->count && !to->is_defined) ||
        pages_of(program, both, 2) > pages_limit(program->rig.context->pages)) {
        return;
    }
    WORKS(program, capu_copy(program->rig.context, to->address, from->address, count));
    memcpy(to->bytes, from->bytes, count);
    to->is_defined = true;
}

static void turn_iteration(struct program *program)
{
    static const char *const labels[] = {NULL, "train", "validate"};

    if (program->in_iteration) {
        WORKS(program, capu_iteration_end(program->rig.context));
    } else {
        WORKS(program, capu_iteration_begin(program->rig.context, labels[draw(program, 3)]));
        for (size_t i = 0; i < program->tensor_count; i++) {
            program->tensors[i].is_defined &= !program->tensors[i].is_transient;
        }
    }
    program->in_iteration = !program->in_iteration;
}

static void step(struct program *program)
{
    uint64_t choice = draw(program, 100);

    if (program->tensor_count == 0 || choice < 6) {
        allocate(program);
    } else if (choice < 9) {
        free_blob(program);
    } else if (choice < 20) {
        upload(program);
    } else if (choice < 28) {
        download(program);
    } else if (choice < 33) {
        zero(program);
    } else if (choice < 38) {
        copy(program);
    } else if (choice < 43) {
        turn_iteration(program);
    } else if (choice < 44) {
        WORKS(program, capu_synchronize(program->rig.context));
    } else {
        run_op(program);
    }
}

static void run_program(uint64_t seed, struct rig_options options)
{
    struct program program = {.state = seed};
    capu_report report = CAPU_REPORT_INIT;

    options.budget_pages = LARGEST_PAGES * 2 + draw(&program, 80);
    if (options.mode == CAPU_MODE_OFF) {
        options.budget_pages = 2048;
    }
    options.clear_fresh = draw(&program, 4) == 0;
    rig_init(&program.rig, &options);
    for (size_t i = 0; i < STEPS; i++) {
        snprintf(program.where, sizeof(program.where), "seed %llu, step %zu",
                 (unsigned long long)seed, i);
        step(&program);
        rig_check(&program.rig);
    }
    for (size_t i = 0; i < program.tensor_count; i++) {
        if (program.tensors[i].is_defined) {
            check_bytes(&program, &program.tensors[i], 0, program.tensors[i].count);
        }
        free(program.tensors[i].bytes);
    }
    WORKS(&program, capu_synchronize(program.rig.context));
    if (capu_report_get(program.rig.context, &report) == CAPU_OK) {
        HOLDS(&program, report.peak_bytes <= report.budget_bytes);
    }
    rig_finish(&program.rig);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void run_programs(const struct rig_options *options, uint64_t share)
{
    uint64_t first = setting("CAPUCHIN_SEED", 1);
    uint64_t count = setting("CAPUCHIN_PROGRAMS", 1000) / share;

    printf("random programs: seeds %llu to %llu\n", (unsigned long long)first,
           (unsigned long long)(first + count));
    for (uint64_t seed = first; seed <= first + count; seed++) {
        struct rig_options own = *options;

        if (own.delay_seed != 0) {
            own.delay_seed = seed;
        }
        run_program(seed, own);
    }
}

START_TEST(passive)
{
    run_programs(&(struct rig_options){0}, 1);
}
END_TEST

START_TEST(strict)
{
    run_programs(&(struct rig_options){.strict = true}, 2);
}
END_TEST

START_TEST(late_streams)
{
    run_programs(&(struct rig_options){.delay_seed = 1}, 10);
}
END_TEST

START_TEST(little_host_memory)
{
    run_programs(&(struct rig_options){.host_budget_bytes = TENSORS * LARGEST_PAGES * RIG_PAGE}, 4);
}
END_TEST

START_TEST(off)
{
    run_programs(&(struct rig_options){.mode = CAPU_MODE_OFF, .strict = true}, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random programs");
    TCase *programs = tcase_create("programs");

    tcase_set_timeout(programs, 600);
    tcase_add_test(programs, passive);
    tcase_add_test(programs, strict);
    tcase_add_test(programs, late_streams);
    tcase_add_test(programs, little_host_memory);
    tcase_add_test(programs, off);
    suite_add_tcase(suite, programs);
    return suite_run(suite);
}

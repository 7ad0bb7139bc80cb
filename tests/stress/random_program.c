/* The steps of random programs, see random_program.h. */
#include "tests/stress/random_program.h"

#include "device/adaptor_fault.h"
#include "tests/support/mixing.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LARGEST_PAGES = PROGRAM_LARGEST_PAGES, TENSORS = PROGRAM_TENSORS };

uint64_t random_draw(struct program *program, uint64_t below)
{
    return mixing_random(&program->state) % below;
}

#define HOLDS PROGRAM_HOLDS
#define WORKS PROGRAM_WORKS
#define TRIES PROGRAM_TRIES

/* Calls that may fail at the call. A query that fails says that it is not reached. */
static const struct {
    enum adaptor_slot slot;
    uint32_t one_in;
} faults[] = {
    {ADAPTOR_PAGE_CREATE, 4},   {ADAPTOR_RANGE_RESERVE, 2}, {ADAPTOR_MAP, 20},
    {ADAPTOR_HOST_ALLOC, 2},    {ADAPTOR_EVENT_CREATE, 4},  {ADAPTOR_STREAM_SYNCHRONIZE, 20},
    {ADAPTOR_EVENT_RECORD, 60}, {ADAPTOR_EVENT_WAIT, 10},   {ADAPTOR_STREAM_FOLLOW, 20},
    {ADAPTOR_COPY_OUT, 20},     {ADAPTOR_COPY_IN, 20},      {ADAPTOR_FILL, 20},
    {ADAPTOR_RUN, 20},          {ADAPTOR_UNMAP, 200}};

void random_faults(struct program *program, uint64_t number)
{
    size_t kind = number % (sizeof(faults) / sizeof(faults[0]));
    struct adaptor_fault_plan plan = {.slot = faults[kind].slot,
                                      .one_in = faults[kind].one_in,
                                      .seed = number,
                                      .status = CAPU_DEVICE_FAILED};

    adaptor_fault_arm(program->rig.faults, &plan);
}

bool random_is_refused(struct program *program, capu_status status)
{
    bool is_faulty = program->rig.faults != NULL && adaptor_fault_hits(program->rig.faults) > 0;
    const char *what = "";

    if (is_faulty && status == CAPU_DEVICE_LOST) {
        program->is_lost = true;
    }
    if (!is_faulty || status != CAPU_DEVICE_FAILED) {
        return false;
    }
    ck_assert_msg(context_validate(program->rig.context, &what), "%s: after %s: %s", program->where,
                  capu_last_error(program->rig.context), what);
    program->refused++;
    return true;
}

static struct shadow *pick(struct program *program)
{
    return &program->tensors[random_draw(program, program->tensor_count)];
}

static void describe(struct program *program, struct shadow *tensor)
{
    tensor->is_transient = random_draw(program, 2) == 0;
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
void random_allocate(struct program *program)
{
    uint64_t count = 1 + random_draw(program, LARGEST_PAGES * RIG_PAGE);
    uint64_t offset = 0;
    void *address;

    if (program->tensor_count + 4 > TENSORS) {
        return;
    }
    if (random_draw(program, 3) == 0) {
        count = 1 + random_draw(program, RIG_PAGE);
    }
    WORKS(program, capu_malloc(program->rig.context, count, &address));
    if (program->is_lost) {
        return;
    }
    program->blob_count++;
    for (size_t pieces = random_draw(program, 3); pieces > 0 && count - offset > 1; pieces--) {
        uint64_t here = 1 + random_draw(program, count - offset - 1);

        WORKS(program, capu_split(program->rig.context, (unsigned char *)address + offset, here));
        add_tensor(program, (unsigned char *)address + offset, here);
        offset += here;
    }
    add_tensor(program, (unsigned char *)address + offset, count - offset);
}

/* A plan gives tensors up behind their last planned access before they are overwritten or the
   iteration ends: an iteration that leaves its plan, or reads between iterations, may ask for them
   all the same, and is told. */
static bool is_given_up(struct program *program, const struct shadow *const *tensors, size_t count,
                        capu_status status)
{
    bool is_transient = false;

    for (size_t i = 0; i < count; i++) {
        is_transient = is_transient || tensors[i]->is_transient || tensors[i]->is_overwritten;
    }
    program->given_up += status == CAPU_CONTENTS_LOST;
    return program->is_lost || (status == CAPU_CONTENTS_LOST && is_transient &&
                                program->rig.context->config.mode == CAPU_MODE_GUIDED);
}

static void check_bytes(struct program *program, const struct shadow *tensor, uint64_t from,
                        uint64_t count)
{
    static unsigned char bytes[LARGEST_PAGES * RIG_PAGE];

    capu_status status;

    TRIES(program, status,
          capu_download(program->rig.context, bytes, tensor->address + from, count));
    if (is_given_up(program, &tensor, 1, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    HOLDS(program, memcmp(bytes, tensor->bytes + from, count) == 0);
}

void random_free(struct program *program, size_t blob)
{
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
    to->role = roles[random_draw(program, sizeof(roles) / sizeof(roles[0]))];
    if (program->is_pure && random_draw(program, 16) > 0) {
        to->role = tensor->is_defined ? CAPU_READ : CAPU_WRITE;
    }
    if (!program->is_pure && random_draw(program, 4) == 0 && count > 1) {
        from = random_draw(program, count - 1);
        count = 1 + random_draw(program, count - from);
    }
    to->address = tensor->bytes + from;
    to->bytes = count;
    to->written_percent = (uint32_t)random_draw(program, 101);
    device->operands[plain->count] = *to;
    device->operands[plain->count].address = tensor->address + from;
    operands[plain->count] = capu_operand_of(
        tensor->address + from, count == tensor->count && random_draw(program, 2) == 0 ? 0 : count,
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
            tensors[i]->is_overwritten |= plain->operands[i].role != CAPU_UPDATE;
        }
    }
}

static void run_op(struct program *program)
{
    struct mixing plain = {.seed = mixing_random(&program->state) ^ program->salt};
    struct mixing device = plain;
    struct shadow *tensors[MIXING_OPERANDS];
    capu_operand operands[MIXING_OPERANDS];
    capu_op op = {.size = sizeof(op), .name = "mix", .run = mixing_run};
    size_t wanted = 1 + random_draw(program, MIXING_OPERANDS - 1);
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
    if (random_draw(program, 10) == 0) {
        TRIES(program, status, capu_access_begin(program->rig.context, &op));
        if (status == CAPU_OK) {
            mixing_run(NULL, &device);
            WORKS(program, capu_access_end(program->rig.context));
        }
    } else {
        TRIES(program, status, capu_run(program->rig.context, &op));
    }
    if (program->is_lost) {
        return;
    }
    if (reads_undefined) {
        HOLDS(program, status == CAPU_UNDEFINED_READ);
        return;
    }
    if (is_given_up(program, (const struct shadow *const *)tensors, plain.count, status)) {
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
    uint64_t from = random_draw(program, 2) == 0 || !tensor->is_defined
                        ? 0
                        : random_draw(program, tensor->count);
    uint64_t count = tensor->count - from;
    static unsigned char source[LARGEST_PAGES * RIG_PAGE];
    capu_status status;

    for (uint64_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = mixing_random(&program->state) ^ program->salt;

        memcpy(source + at, &word, count - at < sizeof(word) ? count - at : sizeof(word));
    }
    TRIES(program, status,
          capu_upload(program->rig.context, tensor->address + from, source, count));
    if (is_given_up(program, (const struct shadow *const *)&tensor, 1, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    memcpy(tensor->bytes + from, source, count);
    memset(source, 0xa5,
           count); /* it was copied: what the caller does to it now is his own affair */
    tensor->is_defined = true;
    tensor->is_overwritten = true;
}

static void download(struct program *program)
{
    struct shadow *tensor = pick(program);
    uint64_t from = random_draw(program, tensor->count);

    if (tensor->is_defined) {
        check_bytes(program, tensor, from, 1 + random_draw(program, tensor->count - from));
    }
}

static void zero(struct program *program)
{
    struct shadow *tensor = pick(program);

    WORKS(program, capu_zero(program->rig.context, tensor->address,
                             random_draw(program, 2) == 0 ? 0 : tensor->count));
    memset(tensor->bytes, 0, tensor->count);
    tensor->is_defined = true;
    tensor->is_overwritten = true;
}

static void copy(struct program *program)
{
    struct shadow *from = pick(program);
    struct shadow *to = pick(program);
    uint64_t count = from->count < to->count ? from->count : to->count;
    struct shadow *both[] = {from, to};
    capu_status status;

    if (from == to || !from->is_defined || (count < to->count && !to->is_defined) ||
        pages_of(program, both, 2) > pages_limit(program->rig.context->pages)) {
        return;
    }
    TRIES(program, status, capu_copy(program->rig.context, to->address, from->address, count));
    if (is_given_up(program, (const struct shadow *const *)both, 2, status)) {
        return;
    }
    HOLDS(program, status == CAPU_OK);
    memcpy(to->bytes, from->bytes, count);
    to->is_defined = true;
    to->is_overwritten = true;
}

/* Up to three pieces take the tensor's place; the cut one is described anew. What a plan gave up
   stays lost, but in always-resident parts, which become undefined. */
void random_split(struct program *program)
{
    struct shadow old = *pick(program);
    struct shadow *place = program->tensors;
    uint64_t from = random_draw(program, 2) == 0 ? 0 : random_draw(program, old.count);
    uint64_t ends[] = {from, from + 1 + random_draw(program, old.count - from), old.count};
    uint64_t at = 0;
    bool was_lost;

    while (place->address != old.address) {
        place++;
    }
    if (program->tensor_count + 2 > TENSORS || ends[1] - from == old.count) {
        return;
    }
    WORKS(program, capu_split(program->rig.context, old.address + from, ends[1] - from));
    was_lost =
        tensor_is_lost(tensors_find(&program->rig.context->tensors, old.address)) ||
        tensor_is_lost(tensors_find(&program->rig.context->tensors, old.address + from)) ||
        tensor_is_lost(tensors_find(&program->rig.context->tensors, old.address + old.count - 1));
    *place = program->tensors[--program->tensor_count];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct shadow *piece = &program->tensors[program->tensor_count];

        if (ends[i] == at) {
            continue;
        }
        *piece = old;
        piece->address = old.address + at;
        piece->count = ends[i] - at;
        piece->bytes = malloc(piece->count);
        HOLDS(program, piece->bytes != NULL);
        memcpy(piece->bytes, old.bytes + at, piece->count);
        piece->is_transient = i != 1 && old.is_transient;
        piece->is_defined =
            old.is_defined &&
            (!was_lost || tensors_find(&program->rig.context->tensors, piece->address)->is_defined);
        program->tensor_count++;
        at = ends[i];
    }
    free(old.bytes);
}

void random_describe(struct program *program)
{
    describe(program, pick(program));
}

void random_check(struct program *program)
{
    if (!program->is_lost) {
        rig_check(&program->rig);
    }
}

void random_turn(struct program *program, const char *label)
{
    if (program->in_iteration) {
        WORKS(program, capu_iteration_end(program->rig.context));
    } else {
        WORKS(program, capu_iteration_begin(program->rig.context, label));
        for (size_t i = 0; i < program->tensor_count; i++) {
            program->tensors[i].is_defined &= !program->tensors[i].is_transient;
        }
    }
    program->in_iteration = !program->in_iteration;
}

void random_work(struct program *program)
{
    uint64_t choice = random_draw(program, 100);

    if (program->is_pure && choice < 34 && random_draw(program, 4) > 0) {
        choice = choice < 8 ? 21 : 99; /* zeros, which are no op, or an op */
    }
    if (choice < 15) {
        upload(program);
    } else if (choice < 21) {
        download(program);
    } else if (choice < 28) {
        zero(program);
    } else if (choice < 34) {
        copy(program);
    } else {
        run_op(program);
    }
}

void random_step(struct program *program)
{
    static const char *const labels[] = {NULL, "train", "validate"};
    uint64_t choice = random_draw(program, 100);

    if (program->tensor_count == 0 || choice < 6) {
        random_allocate(program);
    } else if (choice < 9) {
        random_free(program, pick(program)->blob);
    } else if (choice < 14) {
        random_turn(program, labels[random_draw(program, 3)]);
    } else if (choice < 15) {
        WORKS(program, capu_synchronize(program->rig.context));
    } else if (choice < 17) {
        random_split(program);
    } else if (choice < 19) {
        random_describe(program);
    } else {
        random_work(program);
    }
}

void random_finish(struct program *program)
{
    capu_report report = CAPU_REPORT_INIT;

    for (size_t i = 0; i < program->tensor_count; i++) {
        if (program->tensors[i].is_defined && !program->is_lost) {
            check_bytes(program, &program->tensors[i], 0, program->tensors[i].count);
        }
        free(program->tensors[i].bytes);
    }
    WORKS(program, capu_synchronize(program->rig.context));
    if (program->is_lost) {
        capu_context_destroy(program->rig.context);
        return;
    }
    if (capu_report_get(program->rig.context, &report) == CAPU_OK) {
        HOLDS(program, report.peak_bytes <= report.budget_bytes);
    }
    rig_finish(&program->rig);
}

/* A number from the environment. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

void random_programs(const struct rig_options *options, uint64_t share,
                     void (*run)(uint64_t seed, struct rig_options options, void *user), void *user)
{
    uint64_t first = setting("TEST_SEED", 1);
    uint64_t last = first + setting("TEST_PROGRAMS", 1000) / share;

    printf("seeds %" PRIu64 " to %" PRIu64 "\n", first, last);
    for (uint64_t seed = first; seed <= last; seed++) {
        struct rig_options own = *options;

        own.delay_seed = own.delay_seed != 0 ? seed : 0;
        run(seed, own, user);
    }
}

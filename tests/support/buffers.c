/* Tensors with a mirror, see buffers.h. */
#include "tests/support/buffers.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tensors that a call on the buffer names: itself, or its parts. */
static size_t tensors_of(struct buffer *buffer, struct buffer **first)
{
    *first = buffer->part_count > 0 ? buffer->parts : buffer;
    return buffer->part_count > 0 ? buffer->part_count : 1;
}

static capu_context *context_of(const struct buffers *buffers)
{
    return buffers->rig->context;
}

static void refuse(const struct buffers *buffers, const char *call, capu_status status)
{
    ck_abort_msg("%s: %s: %s: %s", buffers->where, call, capu_status_name(status),
                 capu_last_error(context_of(buffers)));
}

void buffers_accept(struct buffers *buffers, capu_status status, const char *call)
{
    if (status == CAPU_OVER_BUDGET) {
        buffers->ended = status;
        snprintf(buffers->ended_text, sizeof(buffers->ended_text), "%s: %s", call,
                 capu_last_error(context_of(buffers)));
    } else if (status != CAPU_OK) {
        refuse(buffers, call, status);
    }
}

static bool is_same_label(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* Notes a loss; false: the label has had one in an earlier iteration. */
static bool note_loss(struct buffers *buffers)
{
    struct buffers_loss *losses = buffers->losses;

    for (size_t i = 0; i < buffers->loss_count; i++) {
        if (is_same_label(losses[i].label, buffers->label)) {
            return losses[i].iteration == buffers->iteration;
        }
    }
    ck_assert_uint_lt(buffers->loss_count, BUFFERS_LABELS);
    losses[buffers->loss_count++] =
        (struct buffers_loss){.label = buffers->label, .iteration = buffers->iteration};
    return true;
}

static bool needs_contents(capu_role role)
{
    return role == CAPU_READ || role == CAPU_UPDATE;
}

/* Whether the contents of what the call reads may have been given up. The error names one of these
   tensors, and the op. */
static bool may_be_lost(struct buffers *buffers, const char *name, const struct buffer_use *uses,
                        size_t count)
{
    const capu_config *config = capu_context_config(context_of(buffers));
    uint64_t pages = buffers->most_pages + memory_fixed_pages(&context_of(buffers)->memory);
    const char *text = capu_last_error(context_of(buffers));

    if (config->mode != CAPU_MODE_GUIDED || config->budget_bytes >= pages * RIG_PAGE ||
        strstr(text, name) == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct buffer *tensor;
        size_t tensors = tensors_of(uses[i].buffer, &tensor);

        for (; tensors > 0 && needs_contents(uses[i].role); tensors--, tensor++) {
            if (!lineage_is_safe(&tensor->lineage) && strstr(text, tensor->name) != NULL) {
                snprintf(buffers->loss_text, sizeof(buffers->loss_text), "iteration %u: %s",
                         (unsigned)buffers->iteration, text);
                return note_loss(buffers);
            }
        }
    }
    return false;
}

static bool reads_undefined(const struct buffer_use *uses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct buffer *tensor;
        size_t tensors = tensors_of(uses[i].buffer, &tensor);

        for (; tensors > 0 && needs_contents(uses[i].role); tensors--, tensor++) {
            if (!tensor->is_defined) {
                return true;
            }
        }
    }
    return false;
}

/* The same for a call that uses buffers. Returns whether it was carried out. */
static bool accept_use(struct buffers *buffers, capu_status status, const char *name,
                       const struct buffer_use *uses, size_t count)
{
    if (reads_undefined(uses, count)) {
        ck_assert_msg(status == CAPU_UNDEFINED_READ, "%s: '%s' reads nothing: %s", buffers->where,
                      name, capu_status_name(status));
        return false;
    }
    if (status == CAPU_CONTENTS_LOST && may_be_lost(buffers, name, uses, count)) {
        return false;
    }
    buffers_accept(buffers, status, name);
    return status == CAPU_OK;
}

/* What is written now was made from what was read. An update cannot be made again. */
static void note_writes(const struct buffer_use *uses, size_t count, bool is_replayable)
{
    struct lineage *sources[LINEAGE_SOURCES];
    size_t source_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct buffer *tensor;
        size_t tensors = tensors_of(uses[i].buffer, &tensor);

        is_replayable = is_replayable && uses[i].role != CAPU_UPDATE;
        for (; tensors > 0 && uses[i].role == CAPU_READ; tensors--, tensor++) {
            if (source_count == LINEAGE_SOURCES) { /* a Check assertion is a system call */
                ck_abort_msg("an op reads more tensors than a lineage holds");
            }
            sources[source_count++] = &tensor->lineage;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct buffer *tensor;
        size_t tensors = tensors_of(uses[i].buffer, &tensor);

        for (; tensors > 0 && uses[i].role != CAPU_READ; tensors--, tensor++) {
            tensor->is_defined = uses[i].role != CAPU_SCRATCH;
            lineage_write(&tensor->lineage, is_replayable, sources, source_count);
        }
    }
}

static struct buffer *add(struct buffers *buffers, const char *name)
{
    size_t number = 0;

    while (number < buffers->count && buffers->items[number].address != NULL) {
        number++;
    }
    /* Parts follow each other, so slots in between are reused for allocations only. */
    ck_assert_uint_lt(number, BUFFERS_MOST);
    buffers->count = number == buffers->count ? number + 1 : buffers->count;
    snprintf(buffers->items[number].name, BUFFERS_NAME, "%s %u", name, (unsigned)number);
    return &buffers->items[number];
}

bool buffers_describe(struct buffers *buffers, struct buffer *buffer, capu_kind kind,
                      capu_lifetime lifetime)
{
    struct buffer_use use = {buffer, CAPU_READ};
    bool was_defined = buffer->is_defined;
    capu_status status;

    if (buffers->ended != CAPU_OK) {
        return false;
    }
    status = CAPU_DESCRIBE(context_of(buffers), buffer->address, .name = buffer->name,
                           .kind = (uint32_t)kind, .lifetime = (uint32_t)lifetime);
    buffer->is_persistent =
        lifetime == CAPU_PERSISTENT ||
        (lifetime == CAPU_LIFETIME_DEFAULT &&
         (kind == CAPU_PARAMETER || kind == CAPU_OPTIMIZER || kind == CAPU_KIND_UNKNOWN));
    if (status == CAPU_CONTENTS_LOST && was_defined && may_be_lost(buffers, "", &use, 1)) {
        return false;
    }
    buffers_accept(buffers, status, "describe");
    buffer->lineage.is_held = buffer->is_persistent;
    return status == CAPU_OK;
}

static uint64_t pages_of(size_t bytes)
{
    return (bytes + RIG_PAGE - 1) / RIG_PAGE;
}

struct buffer *buffers_make(struct buffers *buffers, const char *name, capu_kind kind,
                            capu_lifetime lifetime, size_t bytes)
{
    struct buffer *buffer = add(buffers, name);
    void *address = buffer; /* of a program that has ended, never used */

    if (buffers->ended == CAPU_OK) {
        BUFFERS_OK(buffers, capu_malloc(context_of(buffers), bytes, &address));
    }
    buffer->address = address;
    buffer->bytes = bytes;
    buffer->expected = calloc(1, bytes);
    ck_assert_ptr_nonnull(buffer->expected);
    buffer->whole = NULL;
    buffer->part_count = 0;
    buffer->is_defined = context_of(buffers)->settings.config.clear_fresh != 0;
    buffer->lineage.version++;
    buffer->lineage.is_replayable = false;
    buffers_describe(buffers, buffer, kind, lifetime);
    buffers->pages += pages_of(bytes);
    buffers->most_pages =
        buffers->pages > buffers->most_pages ? buffers->pages : buffers->most_pages;
    return buffer;
}

struct buffer *buffers_split(struct buffers *buffers, struct buffer *whole, size_t part_count,
                             const char *name, capu_kind kind, capu_lifetime lifetime)
{
    size_t bytes = whole->bytes / part_count;

    ck_assert(whole->bytes % part_count == 0 && whole->part_count == 0 && whole->whole == NULL);
    ck_assert_uint_le(buffers->count + part_count, BUFFERS_MOST);
    whole->parts = &buffers->items[buffers->count];
    buffers->count += part_count;
    whole->part_count = part_count;
    whole->is_persistent = false; /* its parts may be */
    for (size_t i = 0; i < part_count; i++) {
        struct buffer *part = &whole->parts[i];

        *part = (struct buffer){.address = whole->address + i * bytes,
                                .bytes = bytes,
                                .expected = whole->expected + i * bytes,
                                .whole = whole,
                                .is_defined = whole->is_defined,
                                .lineage.version = 1};
        snprintf(part->name, BUFFERS_NAME, "%s %u", name, (unsigned)i);
        if (buffers->ended == CAPU_OK) {
            BUFFERS_OK(buffers, capu_split(context_of(buffers), part->address, bytes));
        }
        buffers_describe(buffers, part, kind, lifetime);
    }
    return whole->parts;
}

void buffers_free(struct buffers *buffers, struct buffer *buffer)
{
    ck_assert_ptr_null(buffer->whole);
    if (buffers->ended == CAPU_OK) {
        BUFFERS_OK(buffers, capu_free(context_of(buffers), buffer->address));
    }
    for (size_t i = 0; i < buffer->part_count; i++) {
        buffer->parts[i].address = NULL;
    }
    free(buffer->expected);
    buffer->expected = NULL;
    buffer->address = NULL;
    buffers->pages -= pages_of(buffer->bytes);
}

/* Fills in an op's arguments for the device and for the mirror. */
static void prepare(const struct buffer_use *uses, size_t count, capu_operand *operands,
                    struct mixing *device, struct mixing *mirror)
{
    if (count > MIXING_OPERANDS) {
        ck_abort_msg("%zu operands", count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct buffer *buffer = uses[i].buffer;

        operands[i] = capu_operand_of(buffer->address, buffer->bytes, uses[i].role);
        device->operands[i] = (struct mixing_operand){.address = buffer->address,
                                                      .bytes = buffer->bytes,
                                                      .role = uses[i].role,
                                                      .written_percent = 50};
        mirror->operands[i] = device->operands[i];
        mirror->operands[i].address = buffer->expected;
    }
    device->count = count;
    mirror->count = count;
}

bool buffers_run(struct buffers *buffers, const char *name, uint64_t by,
                 const struct buffer_use *uses, size_t count)
{
    struct mixing device = {.seed = by};
    struct mixing mirror = {.seed = by};
    capu_operand operands[MIXING_OPERANDS];
    capu_op op = {.size = sizeof(op),
                  .name = name,
                  .run = mixing_run,
                  .arguments = &device,
                  .argument_bytes = sizeof(device),
                  .operands = operands,
                  .operand_count = count};

    if (buffers->ended != CAPU_OK) {
        return false;
    }
    prepare(uses, count, operands, &device, &mirror);
    if (!accept_use(buffers, capu_run(context_of(buffers), &op), name, uses, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (uses[i].role == CAPU_WRITE_REST_ZERO) {
            memset(uses[i].buffer->expected, 0, uses[i].buffer->bytes);
        }
    }
    mixing_run(NULL, &mirror);
    note_writes(uses, count, true);
    return true;
}

void buffers_zero(struct buffers *buffers, struct buffer *buffer)
{
    struct buffer_use use = {buffer, CAPU_WRITE};

    if (buffers->ended == CAPU_OK &&
        accept_use(buffers, capu_zero(context_of(buffers), buffer->address, buffer->bytes), "zero",
                   &use, 1)) {
        memset(buffer->expected, 0, buffer->bytes);
        note_writes(&use, 1, true);
    }
}

void buffers_copy(struct buffers *buffers, struct buffer *to, struct buffer *from)
{
    struct buffer_use uses[] = {{from, CAPU_READ}, {to, CAPU_WRITE}};

    ck_assert_uint_eq(to->bytes, from->bytes);
    if (buffers->ended == CAPU_OK &&
        accept_use(buffers, capu_copy(context_of(buffers), to->address, from->address, to->bytes),
                   "copy", uses, 2)) {
        memcpy(to->expected, from->expected, to->bytes);
        note_writes(uses, 2, true);
    }
}

void buffers_upload(struct buffers *buffers, struct buffer *buffer, uint64_t value)
{
    struct mixing draw = {
        .seed = value, .count = 1, .operands = {{.bytes = buffer->bytes, .role = CAPU_WRITE}}};
    struct buffer_use use = {buffer, CAPU_WRITE};

    if (buffers->ended != CAPU_OK) {
        return;
    }
    draw.operands[0].address = buffer->expected;
    mixing_run(NULL, &draw);
    if (accept_use(
            buffers,
            capu_upload(context_of(buffers), buffer->address, buffer->expected, buffer->bytes, 0),
            "upload", &use, 1)) {
        note_writes(&use, 1, true);
    }
}

static uint64_t draw_number(const struct buffer *buffer)
{
    uint64_t number = 0;

    memcpy(&number, buffer->expected, buffer->bytes < sizeof(number) ? buffer->bytes : 8);
    return number;
}

uint64_t buffers_check(struct buffers *buffers, struct buffer *buffer)
{
    struct buffer_use use = {buffer, CAPU_READ};
    unsigned char *bytes = malloc(buffer->bytes);

    ck_assert_ptr_nonnull(bytes);
    if (buffers->ended == CAPU_OK &&
        accept_use(buffers,
                   capu_download(context_of(buffers), bytes, buffer->address, buffer->bytes, 0),
                   "download", &use, 1)) {
        ck_assert_msg(memcmp(bytes, buffer->expected, buffer->bytes) == 0, "%s: '%s' is wrong",
                      buffers->where, buffer->name);
    }
    free(bytes);
    return draw_number(buffer);
}

void buffers_begin(struct buffers *buffers, const char *label)
{
    if (buffers->ended != CAPU_OK) {
        return;
    }
    BUFFERS_OK(buffers, capu_iteration_begin(context_of(buffers), label));
    buffers->iteration++;
    buffers->label = label;
    for (size_t i = 0; i < buffers->count; i++) {
        buffers->items[i].is_defined &= buffers->items[i].is_persistent;
        lineage_turn(&buffers->items[i].lineage);
    }
}

void buffers_end(struct buffers *buffers)
{
    if (buffers->ended == CAPU_OK) {
        BUFFERS_OK(buffers, capu_iteration_end(context_of(buffers)));
    }
}

void buffers_finish(struct buffers *buffers)
{
    for (size_t i = 0; i < buffers->count; i++) {
        if (buffers->items[i].whole == NULL) {
            free(buffers->items[i].expected);
        }
    }
    buffers->count = 0;
}

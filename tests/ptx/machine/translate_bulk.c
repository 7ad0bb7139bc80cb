/*
 * Bulk copies from global to shared memory, and the mbarriers that say when they are complete. The
 * copies are carried out at once. A wait for a phase lasts until it is complete, so no test of one
 * ever fails; a thread that would go on to complete it itself does not come to that.
 */
#include "tests/ptx/machine/translator.h"

#include <inttypes.h>
#include <stdio.h>

static const char unsupported[] = "the instruction is not supported";

/* The address in brackets of shared memory, as an offset. */
static const char *shared_address(struct translator *tr, const struct ptx_operand *operand,
                                  bool is_generic)
{
    const char *text = address(tr, operand);

    return text == NULL || !is_generic ? text
                                       : expression(tr, "(%s - (u64)t->block->shared)", text);
}

/* cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [to], [from], size, [mbar] */
bool translate_bulk_copy(struct translator *tr)
{
    const char *to, *from, *bytes, *barrier;

    if (take_one_of(tr, "commit_group wait_group")) {
        (void)take_part(tr, "read");
        return is_taken(tr) && fprintf(tr->out, ";") >= 0;
    }
    if (!take_one_of(tr, "shared::cluster shared::cta") || !take_part(tr, "global") ||
        !take_part(tr, "mbarrier::complete_tx::bytes") || positions(tr) != 4) {
        return refuse(tr, unsupported);
    }
    if (!is_taken(tr)) {
        return false;
    }
    to = address(tr, operand(tr, 0, 0));
    from = address(tr, operand(tr, 1, 0));
    bytes = value(tr, operand(tr, 2, 0), 32);
    barrier = address(tr, operand(tr, 3, 0));
    if (to == NULL || from == NULL || bytes == NULL || barrier == NULL) {
        return false;
    }
    fprintf(tr->out,
            "{ u32 bytes = %s; copy_bulk(t, %s, %s, bytes, %" PRIu32
            "); mbarrier_change(t, %s, 0, -(s64)bytes, %" PRIu32 "); }",
            bytes, to, from, tr->instruction->line, barrier, tr->instruction->line);
    return true;
}

/* Changes an mbarrier; `bytes` is signed. The state before goes to the result, unless it is "_". */
static bool write_change(struct translator *tr, bool has_result, const char *barrier,
                         const char *arrivals, const char *bytes)
{
    const struct ptx_operand *result = operand(tr, 0, 0);

    if (has_result && result->kind == OPERAND_REGISTER && !assign(tr, result, 64)) {
        return false;
    }
    fprintf(tr->out, "mbarrier_change(t, %s, %s, %s, %" PRIu32 ");", barrier, arrivals, bytes,
            tr->instruction->line);
    return true;
}

static void take_order(struct translator *tr)
{
    (void)take_one_of(tr, "release acquire relaxed");
    (void)take_one_of(tr, "cta cluster");
}

/* The space and the type at the end. */
static bool take_end(struct translator *tr, bool *is_generic)
{
    *is_generic = !take_one_of(tr, "shared shared::cta shared::cluster");
    return take_part(tr, "b64") && is_taken(tr);
}

static bool arrive(struct translator *tr)
{
    bool is_announced = take_part(tr, "expect_tx");
    const struct ptx_operand *last = operand(tr, 2, 0);
    const char *barrier, *number = "1";
    bool is_generic;

    take_order(tr);
    if (!take_end(tr, &is_generic) || (is_announced && last == NULL)) {
        return refuse(tr, unsupported);
    }
    barrier = shared_address(tr, operand(tr, 1, 0), is_generic);
    number = last == NULL ? number : value(tr, last, 32);
    if (barrier == NULL || number == NULL) {
        return false;
    }
    return is_announced ? write_change(tr, true, barrier, "1", number)
                        : write_change(tr, true, barrier, number, "0");
}

/* test_wait and try_wait: of the state that an arrival returned, or of a parity. */
static bool wait_for(struct translator *tr)
{
    bool is_parity = take_part(tr, "parity");
    const char *barrier, *phase;
    bool is_generic;

    take_order(tr);
    if (!take_end(tr, &is_generic)) {
        return refuse(tr, unsupported);
    }
    barrier = shared_address(tr, operand(tr, 1, 0), is_generic);
    phase = value(tr, operand(tr, 2, 0), is_parity ? 32 : 64);
    if (barrier == NULL || phase == NULL) {
        return false;
    }
    fprintf(tr->out, "mbarrier_wait(t, %s, (u32)(%s%s), %" PRIu32 "); ", barrier, phase,
            is_parity ? "" : " >> PTX_MBARRIER_PARITY", tr->instruction->line);
    if (!assign(tr, operand(tr, 0, 0), 1)) {
        return false;
    }
    fprintf(tr->out, "1;");
    return true;
}

bool translate_mbarrier(struct translator *tr)
{
    bool is_expected, is_generic;
    const char *barrier, *number;

    if (take_part(tr, "arrive")) {
        return arrive(tr);
    }
    if (take_one_of(tr, "test_wait try_wait")) {
        return wait_for(tr);
    }
    if (take_part(tr, "inval")) {
        fprintf(tr->out, ";");
        return true;
    }
    is_expected = take_part(tr, "expect_tx");
    if (is_expected) {
        take_order(tr);
    } else if (!take_part(tr, "init")) {
        return refuse(tr, unsupported);
    }
    if (!take_end(tr, &is_generic)) {
        return refuse(tr, unsupported);
    }
    barrier = shared_address(tr, operand(tr, 0, 0), is_generic);
    number = value(tr, operand(tr, 1, 0), 32);
    if (barrier == NULL || number == NULL) {
        return false;
    }
    if (is_expected) {
        return write_change(tr, false, barrier, "0", number);
    }
    fprintf(tr->out, "mbarrier_init(t, %s, %s, %" PRIu32 ");", barrier, number,
            tr->instruction->line);
    return true;
}

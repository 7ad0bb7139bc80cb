/*
 * The lower bound as a linear program. It considers `cuts` ops, at the instants when they start. A
 * tensor that is alive at a cut and not an operand of it is on the device, on the host, or to be
 * replayed:
 *
 *   e[i]     how much longer the time from cut i to the next is than without a plan (objective)
 *   y[g,p]   share of gap g (tensor, access, next access) that is on the host at cut p
 *   s[g]     share of the gap that is copied back at some time during it
 *   r[g,p]   share of the gap that has no contents anywhere at cut p
 *   x[m,p]   op m is replayed between cut p and the next
 *   d[t,p], h[t,p]  share of a tensor on the device or the host at cut p, after its last access
 *
 * Rows: the bytes at each cut; y + r <= 1 and y <= s; what is on the host at p returns between p
 * and its deadline, and was copied out between its creation and p, at the rate of the link; the
 * copies of gaps within a window fit into it; replays take time in their interval; what is absent
 * at p is also absent at the next cut, or is replayed before it; a replay takes inputs that are
 * dead at p from d, from h or from a replay after p. Every valid plan in steady state is a
 * solution, so the least sum of e is a lower bound for all plans. The program is a relaxation: it
 * allows shares of tensors, and ignores the bytes of replays and all other cuts.
 */
#include "bench/policy/lp_bound.h"

#include <glpk.h>

#include <stdlib.h>
#include <string.h>

#define CUTS_MAX 32
/* Tensors below this share of the peak can be absent at no cost. */
#define SMALL_SHARE 10000

struct entries {
    int *rows;
    int *columns;
    double *values;
    size_t count;
    size_t capacity;
    bool has_failed;
};

struct program {
    const struct trace_index *trace_index;
    const struct trace *trace;
    const struct machine *machine;
    glp_prob *lp;
    struct entries entries;
    uint32_t cuts[CUTS_MAX];
    int cut_count;
    uint64_t small_bytes;
    double base_ms[CUTS_MAX]; /* from a cut to the next */
    int extra[CUTS_MAX];      /* columns: e */
    int memory[CUTS_MAX];     /* rows */
    double needed_gb[CUTS_MAX];
    int in_sums[CUTS_MAX]
               [CUTS_MAX]; /* rows: what is back after so many cuts, less the next column */
    int out_sums[CUTS_MAX][CUTS_MAX];
    int starts[CUTS_MAX][CUTS_MAX]; /* rows: copies in gaps from a cut on, so many cuts long */
    int total;                      /* row: all copies back */
    int replay_time[CUTS_MAX];      /* rows */
    int *replays;                   /* per op and cut: column x, or 0 */
    size_t *pending;                /* of those: whose inputs are to be added */
    size_t pending_count;
    int *dead_held; /* per tensor and cut: column d, or 0 */
    int *dead_hosted;
};

static void put(struct program *program, int row, int column, double value)
{
    struct entries *entries = &program->entries;

    if (entries->count + 1 >= entries->capacity) {
        size_t capacity = entries->capacity * 2 + 4096;
        int *rows = realloc(entries->rows, capacity * sizeof(*rows));
        int *columns = rows != NULL ? realloc(entries->columns, capacity * sizeof(*columns)) : NULL;
        double *values =
            columns != NULL ? realloc(entries->values, capacity * sizeof(*values)) : NULL;

        entries->rows = rows != NULL ? rows : entries->rows;
        entries->columns = columns != NULL ? columns : entries->columns;
        entries->has_failed |= values == NULL;
        if (values == NULL) {
            return;
        }
        entries->values = values;
        entries->capacity = capacity;
    }
    entries->count++; /* the library counts from 1 */
    entries->rows[entries->count] = row;
    entries->columns[entries->count] = column;
    entries->values[entries->count] = value;
}

/* Adds a column from 0 to `most`; a negative `most` means no limit. */
static int column(struct program *program, double most)
{
    int index = glp_add_cols(program->lp, 1);

    glp_set_col_bnds(program->lp, index, most < 0.0 ? GLP_LO : GLP_DB, 0.0, most);
    return index;
}

static int row_at_most(struct program *program, double most)
{
    int index = glp_add_rows(program->lp, 1);

    glp_set_row_bnds(program->lp, index, GLP_UP, 0.0, most);
    return index;
}

static double in_ms(const struct program *program, uint32_t tensor)
{
    return 1e-6 * (double)clock_copy_ns(program->trace->tensors[tensor].bytes,
                                        program->machine->h2d_bytes_per_s,
                                        program->machine->copy_latency_ns);
}

static double out_ms(const struct program *program, uint32_t tensor)
{
    return 1e-6 * (double)clock_copy_ns(program->trace->tensors[tensor].bytes,
                                        program->machine->d2h_bytes_per_s,
                                        program->machine->copy_latency_ns);
}

static double gigabytes(const struct program *program, uint32_t tensor)
{
    return 1e-9 * (double)program->trace_index->rounded[tensor];
}

/* Cuts are numbered on over the iterations: the op of a cut, counted on likewise. */
static int64_t op_of_cut(const struct program *program, int64_t cut)
{
    int64_t count = program->cut_count;
    int64_t iteration = cut >= 0 ? cut / count : -((count - 1 - cut) / count);

    return program->cuts[cut - iteration * count] + iteration * (int64_t)program->trace->op_count;
}

/* The first cut at that op or later. */
static int64_t cut_from(const struct program *program, int64_t op)
{
    int64_t cut = -2 * program->cut_count;

    while (op_of_cut(program, cut) < op) {
        cut++;
    }
    return cut;
}

static int wrapped(const struct program *program, int64_t cut)
{
    return (int)((cut + 4 * (int64_t)program->cut_count) % program->cut_count);
}

/* Adds -e over `steps` intervals from a cut on to a row; the base time of them. */
static double window(struct program *program, int row, int64_t cut, int steps)
{
    double base = 0.0;

    for (int i = 0; i < steps; i++) {
        int at = wrapped(program, cut + i);

        put(program, row, program->extra[at], -1.0);
        base += program->base_ms[at];
    }
    return base;
}

/*
 * Rows that say: what was added to sums[p][n] and all before it takes no longer than n intervals
 * from p on (or before p). A column carries each sum to the next.
 */
static void add_sums(struct program *program, int sums[CUTS_MAX][CUTS_MAX], bool is_before)
{
    for (int p = 0; p < program->cut_count; p++) {
        int carried = 0;

        for (int n = 0; n < program->cut_count; n++) {
            int sum = column(program, -1.0);
            int limit = row_at_most(program, 0.0);
            int first = is_before ? p - n - 1 : p;

            sums[p][n] = row_at_most(program, 0.0);
            put(program, sums[p][n], sum, -1.0);
            if (carried > 0) {
                put(program, sums[p][n], carried, 1.0);
            }
            put(program, limit, sum, 1.0);
            glp_set_row_bnds(program->lp, limit, GLP_UP, 0.0,
                             window(program, limit, first + program->cut_count, n + 1));
            carried = sum;
        }
    }
}

/* Rows that say: the copies of all gaps between two cuts take no longer than what lies between. */
static void add_windows(struct program *program)
{
    int own[CUTS_MAX][CUTS_MAX]; /* of gaps that begin at the cut, up to that length */
    int inner[CUTS_MAX][CUTS_MAX];
    int count = program->cut_count;

    for (int n = 0; n < count; n++) {
        for (int p = 0; p < count; p++) {
            int limit = row_at_most(program, 0.0);
            int both = row_at_most(program, 0.0);

            own[p][n] = column(program, -1.0);
            inner[p][n] = column(program, -1.0);
            program->starts[p][n] = row_at_most(program, 0.0);
            put(program, program->starts[p][n], own[p][n], -1.0);
            put(program, both, own[p][n], 1.0);
            put(program, both, inner[p][n], -1.0);
            if (n > 0) {
                put(program, program->starts[p][n], own[p][n - 1], 1.0);
                put(program, both, inner[(p + 1) % count][n - 1], 1.0);
            }
            put(program, limit, inner[p][n], 1.0);
            glp_set_row_bnds(program->lp, limit, GLP_UP, 0.0, window(program, limit, p, n + 1));
        }
    }
}

static void add_frame(struct program *program, double limit_gb)
{
    double total_ms = 1e-6 * (double)program->trace->total_ns;

    for (int p = 0; p < program->cut_count; p++) {
        program->extra[p] = column(program, -1.0);
        glp_set_obj_coef(program->lp, program->extra[p], 1.0);
    }
    for (int p = 0; p < program->cut_count; p++) {
        const struct trace_op *op = &program->trace->ops[program->cuts[p]];

        program->memory[p] = glp_add_rows(program->lp, 1);
        program->needed_gb[p] = -limit_gb;
        for (uint32_t i = 0; i < trace_operand_count(op); i++) {
            program->needed_gb[p] += gigabytes(program, program->trace->operands[op->first + i]);
        }
    }
    add_sums(program, program->in_sums, false);
    add_sums(program, program->out_sums, true);
    add_windows(program);
    program->total = row_at_most(program, total_ms);
    window(program, program->total, 0, program->cut_count);
    for (int p = 0; p < program->cut_count; p++) {
        program->replay_time[p] = row_at_most(program, 0.0);
        put(program, program->replay_time[p], program->extra[p], -1.0);
    }
}

/* On the host at a cut: it came before, and returns by its deadline. `made` INT64_MIN: the host has
   a copy anyway. */
static int add_hosted(struct program *program, uint32_t tensor, int64_t cut, int64_t made,
                      int64_t deadline)
{
    int share = column(program, 1.0);
    int at = wrapped(program, cut);
    int64_t back = cut_from(program, deadline) - cut;

    if (back <= program->cut_count) {
        put(program, program->in_sums[at][back - 1], share, in_ms(program, tensor));
    }
    if (made != INT64_MIN) {
        int64_t before = cut - cut_from(program, made + 1) + 1;

        if (before <= program->cut_count) {
            put(program, program->out_sums[at][before - 1], share, out_ms(program, tensor));
        }
    }
    return share;
}

/* An op's replay between a cut and the next; 0: it cannot be. */
static int replay_of(struct program *program, uint32_t op, int at)
{
    size_t index = (size_t)op * CUTS_MAX + (size_t)at;

    if (!program->trace->ops[op].replayable) {
        return 0;
    }
    if (program->replays[index] == 0) {
        program->replays[index] = column(program, 1.0);
        put(program, program->replay_time[at], program->replays[index],
            1e-6 * (double)program->trace->ops[op].ns);
        program->pending[program->pending_count++] = index;
    }
    return program->replays[index];
}

/* A replay after a cut needs an input that was used for the last time before the cut. */
static void add_input(struct program *program, int replay, uint32_t op, uint32_t tensor, int at)
{
    const struct trace_index *trace_index = program->trace_index;
    size_t index = (size_t)tensor * CUTS_MAX + (size_t)at;
    uint32_t last = trace_index->first[tensor + 1] - 1;
    uint32_t made = last;
    int needs;
    int again;

    while (made > trace_index->first[tensor] && trace_index->role[made] == USE_READ) {
        made--;
    }
    if (program->trace->tensors[tensor].persistent ||
        trace_index->rounded[tensor] <= program->small_bytes ||
        trace_index->op[last] >= program->cuts[at] || trace_index->role[made] != USE_WRITE ||
        trace_index->op[made] >= op) {
        return;
    }
    if (program->dead_held[index] == 0) {
        program->dead_held[index] = column(program, 1.0);
        put(program, program->memory[at], program->dead_held[index], -gigabytes(program, tensor));
        program->dead_hosted[index] =
            add_hosted(program, tensor, at, trace_index->op[made], op_of_cut(program, at + 1));
    }
    again = replay_of(program, trace_index->op[made], at);
    needs = row_at_most(program, 0.0);
    put(program, needs, replay, 1.0);
    put(program, needs, program->dead_held[index], -1.0);
    put(program, needs, program->dead_hosted[index], -1.0);
    if (again > 0) {
        put(program, needs, again, -1.0);
    }
}

static void add_pending(struct program *program)
{
    while (program->pending_count > 0) {
        size_t index = program->pending[--program->pending_count];
        uint32_t number = (uint32_t)(index / CUTS_MAX);
        const struct trace_op *op = &program->trace->ops[number];

        for (uint32_t i = 0; i < op->read_count; i++) {
            add_input(program, program->replays[index], number, trace_reads(program->trace, op)[i],
                      (int)(index % CUTS_MAX));
        }
    }
}

struct gap {
    uint32_t tensor;
    int64_t from; /* ops */
    int64_t to;
    int64_t made; /* INT64_MIN: never */
    uint32_t maker;
    bool can_drop;
};

static void add_gap(struct program *program, const struct gap *gap)
{
    int64_t first = cut_from(program, gap->from + 1);
    int64_t end = cut_from(program, gap->to);
    double gb = gigabytes(program, gap->tensor);
    int dropped = 0; /* at the cut after */
    int copied;
    int64_t begin = first - 1;

    if (first >= end || program->trace_index->rounded[gap->tensor] <= program->small_bytes) {
        return;
    }
    copied = column(program, 1.0);
    put(program, program->total, copied, in_ms(program, gap->tensor));
    if (end - begin <= program->cut_count) {
        put(program, program->starts[wrapped(program, begin)][end - begin - 1], copied,
            in_ms(program, gap->tensor));
    }
    for (int64_t cut = end; cut-- > first;) {
        int at = wrapped(program, cut);
        int share = add_hosted(program, gap->tensor, cut, gap->made, gap->to);
        int moves = row_at_most(program, 0.0);

        put(program, moves, share, 1.0);
        put(program, moves, copied, -1.0);
        put(program, program->memory[at], share, gb);
        program->needed_gb[at] += gb;
        /* Contents that last beyond the iteration are there at its end. */
        if (gap->can_drop && cut < program->cut_count &&
            program->trace->ops[gap->maker].replayable) {
            int once = row_at_most(program, 1.0);
            int again = row_at_most(program, 0.0);
            int nowhere = column(program, 1.0);

            put(program, once, share, 1.0);
            put(program, once, nowhere, 1.0);
            put(program, program->memory[at], nowhere, gb);
            put(program, again, nowhere, 1.0);
            put(program, again, replay_of(program, gap->maker, at), -1.0);
            if (dropped > 0) {
                put(program, again, dropped, -1.0);
            }
            dropped = nowhere;
        }
    }
    add_pending(program);
}

static void add_tensor(struct program *program, uint32_t tensor)
{
    const struct trace_index *trace_index = program->trace_index;
    bool is_persistent = program->trace->tensors[tensor].persistent;
    int64_t ops = program->trace->op_count;
    uint32_t first = trace_index->first[tensor];
    uint32_t end = trace_index->first[tensor + 1];
    int64_t made = INT64_MIN;
    uint32_t maker = TRACE_INDEX_NONE;

    for (uint32_t slot = first; is_persistent && slot < end; slot++) {
        made = trace_index->role[slot] != USE_READ ? (int64_t)trace_index->op[slot] - ops : made;
    }
    for (uint32_t slot = first; slot < end; slot++) {
        bool is_last = slot + 1 == end;
        struct gap gap = {.tensor = tensor, .from = trace_index->op[slot]};

        if (trace_index->role[slot] != USE_READ) {
            made = trace_index->op[slot];
            maker = trace_index->role[slot] == USE_WRITE ? trace_index->op[slot] : TRACE_INDEX_NONE;
        }
        if ((is_last && !is_persistent) || (!is_last && trace_index->role[slot + 1] == USE_WRITE)) {
            continue;
        }
        gap.to = !is_last                                ? trace_index->op[slot + 1]
                 : trace_index->role[first] == USE_WRITE ? ops
                                                         : ops + trace_index->op[first];
        gap.made = made;
        gap.maker = maker;
        gap.can_drop = maker != TRACE_INDEX_NONE;
        add_gap(program, &gap);
    }
}

/* Of as many parts of the crowded time, the most crowded op each; and op 0, since transients are
   made and used between two of those. */
static void choose_cuts(struct program *program, uint64_t limit, int wanted)
{
    const struct trace_index *trace_index = program->trace_index;
    const struct trace *trace = program->trace;
    int64_t *held = calloc((size_t)trace->op_count + 2, sizeof(*held));
    double crowded_ns = 0.0;
    double seen_ns = 0.0;

    if (held == NULL) {
        return;
    }
    for (uint32_t t = 0; t < trace->tensor_count; t++) {
        uint32_t first = trace_index->first[t];
        uint32_t end = trace_index->first[t + 1];

        if (first < end) {
            held[trace->tensors[t].persistent ? 0 : trace_index->op[first]] +=
                (int64_t)trace_index->rounded[t];
            held[trace->tensors[t].persistent ? trace->op_count : trace_index->op[end - 1] + 1] -=
                (int64_t)trace_index->rounded[t];
        }
    }
    for (uint32_t k = 0; k < trace->op_count; k++) {
        held[k] += k > 0 ? held[k - 1] : 0;
        crowded_ns += held[k] > (int64_t)limit ? (double)trace->ops[k].ns + 1.0 : 0.0;
    }
    program->cut_count = crowded_ns > 0.0;
    for (uint32_t k = 1; k < trace->op_count; k++) {
        int part = (int)(seen_ns / crowded_ns * (wanted - 1)) + 1;

        if (held[k] <= (int64_t)limit) {
            continue;
        }
        seen_ns += (double)trace->ops[k].ns + 1.0;
        if (part >= program->cut_count) {
            program->cuts[program->cut_count++] = k;
        } else if (held[k] > held[program->cuts[program->cut_count - 1]]) {
            program->cuts[program->cut_count - 1] = k;
        }
    }
    free(held);
    for (int p = 0; p < program->cut_count; p++) {
        uint32_t to = p + 1 < program->cut_count ? program->cuts[p + 1] : trace->op_count;

        for (uint32_t k = program->cuts[p]; k < to; k++) {
            program->base_ms[p] += 1e-6 * (double)trace->ops[k].ns;
        }
        for (uint32_t k = 0; p + 1 == program->cut_count && k < program->cuts[0]; k++) {
            program->base_ms[p] += 1e-6 * (double)trace->ops[k].ns;
        }
    }
}

/* Dual simplex from the slack basis, whose reduced costs are no less than 0: wherever it is
   stopped, its objective is a bound. */
static double solve(struct program *program, int seconds)
{
    glp_smcp options;

    for (int p = 0; p < program->cut_count; p++) {
        glp_set_row_bnds(program->lp, program->memory[p], GLP_LO, program->needed_gb[p], 0.0);
    }
    glp_load_matrix(program->lp, (int)program->entries.count, program->entries.rows,
                    program->entries.columns, program->entries.values);
    glp_std_basis(program->lp);
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUAL;
    options.tm_lim = seconds * 1000;
    glp_simplex(program->lp, &options);
    return glp_get_dual_stat(program->lp) == GLP_FEAS ? glp_get_obj_val(program->lp) : 0.0;
}

bool lp_bound(const struct trace_index *trace_index, const struct machine *machine,
              uint64_t budget_bytes, int cuts, int seconds, struct lp_result *result)
{
    const struct trace *trace = trace_index->trace;
    struct program program = {.trace_index = trace_index, .trace = trace, .machine = machine};
    uint64_t limit = budget_bytes - trace_index->fixed_bytes;
    size_t op_cuts;
    size_t tensor_cuts;
    bool is_fine;

    *result = (struct lp_result){.ns = trace->total_ns};
    choose_cuts(&program, limit, cuts < CUTS_MAX ? cuts : CUTS_MAX);
    if (program.cut_count == 0) {
        return true;
    }
    program.small_bytes = trace_index->peak_bytes / SMALL_SHARE;
    op_cuts = ((size_t)trace->op_count + 1) * CUTS_MAX;
    tensor_cuts = ((size_t)trace->tensor_count + 1) * CUTS_MAX;
    program.replays = calloc(op_cuts, sizeof(*program.replays));
    program.pending = calloc(op_cuts, sizeof(*program.pending));
    program.dead_held = calloc(tensor_cuts, sizeof(*program.dead_held));
    program.dead_hosted = calloc(tensor_cuts, sizeof(*program.dead_hosted));
    is_fine = program.replays != NULL && program.pending != NULL && program.dead_held != NULL &&
              program.dead_hosted != NULL;
    if (is_fine) {
        double extra_ms;

        program.lp = glp_create_prob();
        add_frame(&program, 1e-9 * (double)limit);
        for (uint32_t t = 0; t < trace->tensor_count; t++) {
            if (trace_index->rounded[t] > 0) {
                add_tensor(&program, t);
            }
        }
        result->rows = glp_get_num_rows(program.lp);
        result->columns = glp_get_num_cols(program.lp);
        is_fine = !program.entries.has_failed;
        extra_ms = is_fine ? solve(&program, seconds) : 0.0;
        result->is_optimal = glp_get_status(program.lp) == GLP_OPT;
        /* Sums of doubles are not exact: stay below by more than their error. */
        result->ns += (uint64_t)(extra_ms * 1e6 * (1.0 - 1e-6));
        glp_delete_prob(program.lp);
    }
    free(program.entries.rows);
    free(program.entries.columns);
    free(program.entries.values);
    free(program.replays);
    free(program.pending);
    free(program.dead_held);
    free(program.dead_hosted);
    return is_fine;
}

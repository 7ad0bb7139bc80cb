/*
 * Flow graphs, see ptx_graph.h.
 *
 * A block is control-dependent on a branch if one way out of the branch always leads to the block
 * and another may not. That follows from immediate post-dominators, which are computed as Cooper,
 * Harvey and Kennedy do it: by intersecting paths in a numbering of the reversed graph. Loops are
 * the strongly connected components. All walks keep their own stack.
 */
#include "interpose/ptx/ptx_graph.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum { CONTROLS_MOST = 1 << 24 };

static bool ends_block(const struct ptx_instruction *instruction)
{
    return instruction->effect == EFFECT_BRANCH || instruction->effect == EFFECT_BRANCH_TABLE ||
           instruction->effect == EFFECT_EXIT;
}

static bool push(uint32_t **array, size_t *count, size_t *capacity, uint32_t value)
{
    if (!array_reserve(array, capacity, *count + 1, sizeof(**array))) {
        return false;
    }
    (*array)[(*count)++] = value;
    return true;
}

static bool make_blocks(const struct ptx_function *function, struct ptx_graph *graph)
{
    size_t count = function->instruction_count;
    bool *is_leader = calloc(count + 1, sizeof(*is_leader));

    graph->block_of = malloc((count + 1) * sizeof(*graph->block_of));
    if (is_leader == NULL || graph->block_of == NULL) {
        free(is_leader);
        return false;
    }
    is_leader[0] = true;
    for (size_t i = 0; i < function->label_count; i++) {
        is_leader[function->labels[i].instruction] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (ends_block(&function->instructions[i])) {
            is_leader[i + 1] = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (is_leader[i]) {
            if (!array_reserve(&graph->blocks, &graph->block_capacity, graph->block_count + 1,
                               sizeof(*graph->blocks))) {
                free(is_leader);
                return false;
            }
            graph->blocks[graph->block_count++] =
                (struct ptx_block){.first = (uint32_t)i, .loop = PTX_NONE};
        }
        graph->blocks[graph->block_count - 1].end = (uint32_t)i + 1;
        graph->block_of[i] = (uint32_t)(graph->block_count - 1);
    }
    graph->block_of[count] = (uint32_t)graph->block_count; /* labels at the end: the end */
    free(is_leader);
    return true;
}

static bool add_target(const struct ptx_function *function, struct ptx_graph *graph,
                       const struct ptx_instruction *branch, struct span name)
{
    const struct ptx_label *label = ptx_label(function, name, branch->scope);

    if (label == NULL) {
        graph->has_lost_branch = true;
        graph->lost_line = branch->line;
        return true;
    }
    return push(&graph->successors, &graph->successor_count, &graph->successor_capacity,
                graph->block_of[label->instruction]);
}

/* Where an instruction that ends a block may go, other than to the next instruction. */
static bool add_targets(const struct ptx_function *function, struct ptx_graph *graph,
                        const struct ptx_instruction *last)
{
    const struct ptx_operand *operands = function->operands + last->operand_first;
    const struct ptx_label *table;

    if (last->effect == EFFECT_EXIT) {
        return push(&graph->successors, &graph->successor_count, &graph->successor_capacity,
                    (uint32_t)graph->block_count);
    }
    if (last->effect == EFFECT_BRANCH && last->operand_count == 1) {
        return add_target(function, graph, last, operands[0].name);
    }
    table = last->operand_count == 2 ? ptx_label(function, operands[1].name, last->scope) : NULL;
    if (table == NULL || table->target_count == 0) {
        graph->has_lost_branch = true;
        graph->lost_line = last->line;
        return true;
    }
    for (uint32_t i = 0; i < table->target_count; i++) {
        if (!add_target(function, graph, last, function->operands[table->target_first + i].name)) {
            return false;
        }
    }
    return true;
}

static bool make_edges(const struct ptx_function *function, struct ptx_graph *graph)
{
    for (size_t i = 0; i < graph->block_count; i++) {
        struct ptx_block *block = &graph->blocks[i];
        const struct ptx_instruction *last = &function->instructions[block->end - 1];

        block->successor_first = (uint32_t)graph->successor_count;
        if (ends_block(last) && !add_targets(function, graph, last)) {
            return false;
        }
        if ((!ends_block(last) || last->predicate != PTX_NONE) &&
            !push(&graph->successors, &graph->successor_count, &graph->successor_capacity,
                  (uint32_t)i + 1)) {
            return false;
        }
        block->successor_count = (uint32_t)graph->successor_count - block->successor_first;
    }
    graph->sources = malloc((graph->successor_count + 1) * sizeof(*graph->sources));
    for (size_t i = 0; graph->sources != NULL && i < graph->block_count; i++) {
        for (uint32_t j = 0; j < graph->blocks[i].successor_count; j++) {
            graph->sources[graph->blocks[i].successor_first + j] = (uint32_t)i;
        }
    }
    return graph->sources != NULL;
}

/* What the walks below need, each with an element per block and one for the end. */
struct walk {
    uint32_t *predecessors; /* of all blocks, and of the end, one after another */
    uint32_t *first;        /* index of a block's predecessors; one more at the end */
    uint32_t *number;       /* in the reversed graph's post-order; PTX_NONE: not reached */
    uint32_t *order;        /* blocks by number */
    uint32_t *above;        /* immediate post-dominator */
    uint32_t *stack;
    uint32_t *next;
    uint32_t count; /* numbered */
};

static void walk_finish(struct walk *walk)
{
    free(walk->predecessors);
    free(walk->first);
    free(walk->number);
    free(walk->order);
    free(walk->above);
    free(walk->stack);
    free(walk->next);
}

static uint32_t *numbers(size_t count)
{
    return calloc(count + 2, sizeof(uint32_t));
}

static bool walk_begin(const struct ptx_graph *graph, struct walk *walk)
{
    size_t count = graph->block_count + 1;

    *walk = (struct walk){numbers(graph->successor_count),
                          numbers(count + 1),
                          numbers(count),
                          numbers(count),
                          numbers(count),
                          numbers(count),
                          numbers(count),
                          0};
    if (walk->predecessors == NULL || walk->first == NULL || walk->number == NULL ||
        walk->order == NULL || walk->above == NULL || walk->stack == NULL || walk->next == NULL) {
        return false;
    }
    for (size_t i = 0; i < graph->successor_count; i++) {
        walk->first[graph->successors[i] + 1]++;
    }
    for (size_t i = 0; i < count; i++) {
        walk->first[i + 1] += walk->first[i];
        walk->next[i] = walk->first[i];
        walk->number[i] = PTX_NONE;
    }
    for (size_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];

        for (uint32_t j = 0; j < block->successor_count; j++) {
            uint32_t to = graph->successors[block->successor_first + j];

            walk->predecessors[walk->next[to]++] = (uint32_t)i;
        }
    }
    return true;
}

/* Numbers what reaches `start` and has no number yet, in post-order of the reversed graph. */
static void number_from(struct walk *walk, uint32_t start)
{
    uint32_t depth = 0;

    walk->stack[depth++] = start;
    walk->next[start] = walk->first[start];
    walk->number[start] = PTX_NONE - 1; /* begun */
    while (depth > 0) {
        uint32_t block = walk->stack[depth - 1];

        if (walk->next[block] == walk->first[block + 1]) {
            walk->number[block] = walk->count;
            walk->order[walk->count++] = block;
            depth--;
            continue;
        }
        block = walk->predecessors[walk->next[block]++];
        if (walk->number[block] == PTX_NONE) {
            walk->number[block] = PTX_NONE - 1;
            walk->next[block] = walk->first[block];
            walk->stack[depth++] = block;
        }
    }
}

static uint32_t meet(const struct walk *walk, uint32_t one, uint32_t other)
{
    while (one != other) {
        while (walk->number[one] < walk->number[other]) {
            one = walk->above[one];
        }
        while (walk->number[other] < walk->number[one]) {
            other = walk->above[other];
        }
    }
    return one;
}

/* Immediate post-dominators of all blocks that reach the end; `count` for the others. */
static void dominate(struct ptx_graph *graph, struct walk *walk)
{
    uint32_t end = (uint32_t)graph->block_count;
    bool has_changed = true;

    number_from(walk, end);
    for (uint32_t i = 0; i < end; i++) {
        walk->above[i] = PTX_NONE;
    }
    walk->above[end] = end;
    while (has_changed) {
        has_changed = false;
        for (uint32_t i = walk->count; i > 0; i--) {
            uint32_t block = walk->order[i - 1];
            uint32_t above = PTX_NONE;

            if (block == end) {
                continue;
            }
            for (uint32_t j = 0; j < graph->blocks[block].successor_count; j++) {
                uint32_t to = graph->successors[graph->blocks[block].successor_first + j];

                if (walk->above[to] != PTX_NONE) {
                    above = above == PTX_NONE ? to : meet(walk, above, to);
                }
            }
            if (above != walk->above[block]) {
                walk->above[block] = above;
                has_changed = true;
            }
        }
    }
    for (uint32_t i = 0; i < end; i++) {
        if (walk->above[i] == PTX_NONE) {
            walk->above[i] = end;
        }
    }
    for (uint32_t i = 0; i < end; i++) {
        graph->blocks[i].meeting = walk->above[i];
    }
}

/* Walks up from each way out of a branch to where all its ways meet. */
static capu_status list_controls(struct ptx_graph *graph, const struct walk *walk)
{
    uint32_t *pairs = NULL;
    size_t count = 0;
    size_t capacity = 0;
    capu_status status = CAPU_NO_HOST_MEMORY;
    uint32_t sum = 0;

    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *branch = &graph->blocks[i];

        for (uint32_t j = 0; branch->successor_count > 1 && j < branch->successor_count; j++) {
            uint32_t block = graph->successors[branch->successor_first + j];

            for (; block != walk->above[i] && block != graph->block_count;
                 block = walk->above[block]) {
                if (count / 2 >= CONTROLS_MOST) {
                    status = CAPU_TOO_LARGE;
                    goto free_pairs;
                }
                if (!push(&pairs, &count, &capacity, block) ||
                    !push(&pairs, &count, &capacity, branch->successor_first + j)) {
                    goto free_pairs;
                }
                graph->blocks[block].control_count++;
            }
        }
    }
    if (!array_reserve(&graph->controls, &graph->control_capacity, count / 2 + 1,
                       sizeof(*graph->controls))) {
        goto free_pairs;
    }
    graph->control_count = count / 2;
    for (size_t i = 0; i < graph->block_count; i++) {
        graph->blocks[i].control_first = sum;
        sum += graph->blocks[i].control_count;
        graph->blocks[i].control_count = 0;
    }
    for (size_t i = 0; i < count; i += 2) {
        struct ptx_block *block = &graph->blocks[pairs[i]];

        graph->controls[block->control_first + block->control_count++] = pairs[i + 1];
    }
    status = CAPU_OK;

free_pairs:
    free(pairs);
    return status;
}

/* Marks the blocks of one strongly connected component of the reversed graph (Kosaraju's second
   walk: against the edges of the first, from the last number down). */
static void mark_loop(struct ptx_graph *graph, struct walk *walk, uint32_t start)
{
    uint32_t depth = 0;
    bool is_loop = false;

    walk->stack[depth++] = start;
    graph->blocks[start].loop = start;
    walk->next[start] = 0;
    while (depth > 0) {
        uint32_t at = walk->stack[depth - 1];
        const struct ptx_block *block = &graph->blocks[at];
        uint32_t to;

        if (walk->next[at] == block->successor_count) {
            depth--;
            continue;
        }
        to = graph->successors[block->successor_first + walk->next[at]++];
        if (to == graph->block_count) {
            continue;
        }
        is_loop |= to == start;
        if (graph->blocks[to].loop == PTX_NONE) {
            graph->blocks[to].loop = start;
            walk->next[to] = 0;
            walk->stack[depth++] = to;
        }
    }
    if (!is_loop) {
        graph->blocks[start].loop = PTX_NONE - 1; /* seen, and alone */
    }
}

static void find_loops(struct ptx_graph *graph, struct walk *walk)
{
    uint32_t end = (uint32_t)graph->block_count;

    for (uint32_t i = 0; i < end; i++) {
        if (walk->number[i] == PTX_NONE) {
            graph->has_endless_loop = true;
            number_from(walk, i);
        }
    }
    for (uint32_t i = walk->count; i > 0; i--) {
        uint32_t block = walk->order[i - 1];

        if (block != end && graph->blocks[block].loop == PTX_NONE) {
            mark_loop(graph, walk, block);
        }
    }
    for (uint32_t i = 0; i < end; i++) {
        if (graph->blocks[i].loop == PTX_NONE - 1) {
            graph->blocks[i].loop = PTX_NONE;
        }
    }
}

capu_status ptx_graph_build(const struct ptx_function *function, struct ptx_graph *graph)
{
    struct walk walk = {0};
    capu_status status = CAPU_NO_HOST_MEMORY;

    *graph = (struct ptx_graph){0};
    if (make_blocks(function, graph) && make_edges(function, graph) && walk_begin(graph, &walk)) {
        dominate(graph, &walk);
        status = list_controls(graph, &walk);
        find_loops(graph, &walk);
    }
    walk_finish(&walk);
    if (status != CAPU_OK) {
        ptx_graph_finish(graph);
    }
    return status;
}

void ptx_graph_finish(struct ptx_graph *graph)
{
    free(graph->blocks);
    free(graph->successors);
    free(graph->controls);
    free(graph->sources);
    free(graph->block_of);
    *graph = (struct ptx_graph){0};
}

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

static bool push_value(uint32_t **array, size_t *count, size_t *capacity, uint32_t value)
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
    return push_value(&graph->successors, &graph->successor_count, &graph->successor_capacity,
                      graph->block_of[label->instruction]);
}

/* Where an instruction that ends a block may go, other than to the next instruction. */
static bool add_targets(const struct ptx_function *function, struct ptx_graph *graph,
                        const struct ptx_instruction *last)
{
    const struct ptx_operand *operands = function->operands + last->operand_first;
    const struct ptx_label *table;

    if (last->effect == EFFECT_EXIT) {
        return push_value(&graph->successors, &graph->successor_count, &graph->successor_capacity,
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
            !push_value(&graph->successors, &graph->successor_count, &graph->successor_capacity,
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
                if (!push_value(&pairs, &count, &capacity, block) ||
                    !push_value(&pairs, &count, &capacity, branch->successor_first + j)) {
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

/* Nested loops: strongly connected components, by Tarjan's walk. */

/* A walk over all blocks, with an element per block in each array. */
struct components {
    const struct ptx_graph *graph;
    const uint32_t *old; /* the loops that are taken apart */
    const bool *is_cut;
    uint32_t *number; /* in the order of the walk, from 1; 0: not reached */
    uint32_t *lowest; /* number that is reached from there */
    uint32_t *open;   /* blocks whose component is not known yet */
    uint32_t *path;
    uint32_t *next; /* way out of a block of the path */
    uint32_t open_count, path_count, count;
};

enum { ARRAYS = 7 };

static void release_loops(struct ptx_loops *loops)
{
    free(loops->outermost);
    free(loops->memory);
    free(loops->is_cut);
}

capu_status ptx_loops_begin(struct ptx_graph *graph, struct ptx_loops *loops)
{
    size_t count = graph->block_count;

    *loops = (struct ptx_loops){graph, calloc(count + 1, sizeof(uint32_t)),
                                calloc(ARRAYS * (count + 1), sizeof(uint32_t)),
                                calloc(graph->successor_count + 1, sizeof(bool))};
    if (loops->outermost == NULL || loops->memory == NULL || loops->is_cut == NULL) {
        release_loops(loops);
        return CAPU_NO_HOST_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        loops->outermost[i] = graph->blocks[i].loop;
    }
    return CAPU_OK;
}

void ptx_loops_end(struct ptx_loops *loops)
{
    for (size_t i = 0; i < loops->graph->block_count; i++) {
        loops->graph->blocks[i].loop = loops->outermost[i];
    }
    release_loops(loops);
}

/* Finds a block by which each loop is entered: one with a way into it from outside. */
static void find_entries(const struct ptx_graph *graph, const uint32_t *old, uint32_t *entry)
{
    for (uint32_t i = 0; i < graph->block_count; i++) {
        entry[i] = PTX_NONE;
    }
    if (graph->block_count > 0 && old[0] != PTX_NONE) {
        entry[old[0]] = 0;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];

        for (uint32_t j = 0; j < block->successor_count; j++) {
            uint32_t to = graph->successors[block->successor_first + j];

            if (to != graph->block_count && old[to] != PTX_NONE && old[to] != old[i] &&
                entry[old[to]] == PTX_NONE) {
                entry[old[to]] = to;
            }
        }
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (old[i] == i && entry[i] == PTX_NONE) {
            entry[i] = i; /* nothing leads there */
        }
    }
}

/* Cuts the last way back to the entry of each loop. `last` has an element per block. */
static void cut_ways_back(struct ptx_loops *loops, const uint32_t *old, const uint32_t *entry,
                          uint32_t *last)
{
    const struct ptx_graph *graph = loops->graph;

    for (uint32_t i = 0; i < graph->block_count; i++) {
        last[i] = PTX_NONE;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct ptx_block *block = &graph->blocks[i];

        for (uint32_t j = 0; old[i] != PTX_NONE && j < block->successor_count; j++) {
            if (graph->successors[block->successor_first + j] == entry[old[i]] &&
                !loops->is_cut[block->successor_first + j]) {
                last[old[i]] = block->successor_first + j;
            }
        }
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (last[i] != PTX_NONE) {
            loops->is_cut[last[i]] = true;
        }
    }
}

static void reach_block(struct components *walk, uint32_t block)
{
    walk->number[block] = walk->lowest[block] = ++walk->count;
    walk->open[walk->open_count++] = block;
    walk->path[walk->path_count++] = block;
    walk->next[block] = 0;
}

/* Numbers the component of which `block` was reached first. True: it is a loop. */
static bool close_component(struct components *walk, uint32_t block, bool leads_to_itself)
{
    struct ptx_block *blocks = walk->graph->blocks;
    bool is_loop = walk->open[walk->open_count - 1] != block || leads_to_itself;
    uint32_t at;

    do {
        at = walk->open[--walk->open_count];
        blocks[at].loop = is_loop ? block : PTX_NONE;
        walk->lowest[at] = UINT32_MAX; /* known */
    } while (at != block);
    return is_loop;
}

/* Goes on at the end of the path. True: a loop was found. */
static bool step_path(struct components *walk)
{
    uint32_t at = walk->path[walk->path_count - 1];
    const struct ptx_block *block = &walk->graph->blocks[at];
    bool leads_to_itself = false;

    while (walk->next[at] < block->successor_count) {
        uint32_t way = block->successor_first + walk->next[at]++;
        uint32_t to = walk->graph->successors[way];

        if (to == walk->graph->block_count || walk->old[to] != walk->old[at] || walk->is_cut[way]) {
            continue;
        }
        if (walk->number[to] == 0) {
            reach_block(walk, to);
            return false;
        }
        if (walk->lowest[to] != UINT32_MAX && walk->number[to] < walk->lowest[at]) {
            walk->lowest[at] = walk->number[to];
        }
    }
    for (uint32_t i = 0; i < block->successor_count; i++) {
        leads_to_itself |= walk->graph->successors[block->successor_first + i] == at &&
                           !walk->is_cut[block->successor_first + i];
    }
    walk->path_count--;
    if (walk->path_count > 0) {
        uint32_t before = walk->path[walk->path_count - 1];

        if (walk->lowest[at] < walk->lowest[before]) {
            walk->lowest[before] = walk->lowest[at];
        }
    }
    return walk->lowest[at] == walk->number[at] && close_component(walk, at, leads_to_itself);
}

bool ptx_loops_open(struct ptx_loops *loops)
{
    struct ptx_graph *graph = loops->graph;
    size_t count = graph->block_count + 1;
    uint32_t *old = loops->memory;
    uint32_t *entry = old + count;
    struct components walk = {.graph = graph,
                              .old = old,
                              .is_cut = loops->is_cut,
                              .number = old + 2 * count,
                              .lowest = old + 3 * count,
                              .open = old + 4 * count,
                              .path = old + 5 * count,
                              .next = old + 6 * count};
    bool has_some = false;

    memset(loops->memory, 0, ARRAYS * count * sizeof(*loops->memory));
    for (uint32_t i = 0; i < graph->block_count; i++) {
        old[i] = graph->blocks[i].loop;
    }
    find_entries(graph, old, entry);
    cut_ways_back(loops, old, entry, walk.lowest); /* which the walk sets anew */
    for (uint32_t i = 0; i < graph->block_count; i++) {
        graph->blocks[i].loop = PTX_NONE;
    }
    for (uint32_t i = 0; i < graph->block_count; i++) {
        if (old[i] != PTX_NONE && walk.number[i] == 0) {
            reach_block(&walk, i);
            while (walk.path_count > 0) {
                has_some |= step_path(&walk);
            }
        }
    }
    return has_some;
}

/*
 * What waits for what: each call on a tensor in each state.
 *
 * order.md is the table: a cell says what the call must wait for, and what it starts. Here each
 * call is made in each state, on a fresh tensor, and what happened is compared with the cell, and
 * all bytes with plain memory. Copies are under way as long as nothing waits for them (is_late in
 * rig.h), and the adaptor that checks the order of work says what comes after what.
 *
 * With ORDER_TABLE=FILE, CK_FORK=no and TEST_EFFORT=100 the test writes the tables to that file.
 * Those for one kind of device come from its test.
 */
#include "tests/api/order/order_calls.h"
#include "tests/api/order/order_states.h"

#include "runtime/api/context.h"
#include "tests/support/effort.h"

#include <stdio.h>

enum { CELL_BYTES = 24, COLUMNS_MOST = 20, CALLS_MOST = 48, TABLES_MOST = 16, LINE_BYTES = 512 };

/* When lanes last used the tensor's memory, and who comes after that. */
struct view {
    uint64_t last[3]; /* by lane: compute, h2d, d2h */
    bool has_plan;
};

enum { COMPUTE, COMES, GOES, LANES };

static char actual[TABLES_MOST][COLUMNS_MOST][CALLS_MOST][CELL_BYTES];

static capu_stream stream_of(const capu_context *context, int lane)
{
    return lane == COMPUTE ? context->lanes.compute.stream
           : lane == COMES ? context->lanes.h2d.stream
                           : context->lanes.d2h.stream;
}

static bool is_after(const struct world *world, capu_stream later, int lane, uint64_t time)
{
    return adaptor_order_is_after(world->rig.order, later, stream_of(world->rig.context, lane),
                                  time);
}

static struct view look(const struct world *world, const void *address)
{
    struct view view = {.has_plan = world->rig.context->guided.active != NULL};

    for (int lane = 0; lane < LANES; lane++) {
        view.last[lane] =
            adaptor_order_last(world->rig.order, stream_of(world->rig.context, lane), address);
    }
    return view;
}

static void add(char *cell, char letter)
{
    size_t length = strlen(cell);

    ck_assert_uint_lt(length + 1, CELL_BYTES);
    cell[length] = letter;
    cell[length + 1] = '\0';
}

/* What the cell says of one lane's last use before the call. */
static void note_wait(const struct world *world, char *cell, int lane, uint64_t time, bool host,
                      bool compute)
{
    static const char host_letters[] = {'U', 'I', 'O'};
    static const char compute_letters[] = {'\0', 'i', 'o'};

    if (!host && is_after(world, NULL, lane, time)) {
        add(cell, host_letters[lane]);
    } else if (lane != COMPUTE && !compute &&
               is_after(world, world->rig.context->lanes.compute.stream, lane, time)) {
        add(cell, compute_letters[lane]);
    }
}

static void name_status(char *cell, capu_status status)
{
    snprintf(cell, CELL_BYTES, "%s",
             status == CAPU_UNDEFINED_READ     ? "undefined"
             : status == CAPU_CONTENTS_LOST    ? "lost"
             : status == CAPU_WRONG_ORDER      ? "refused"
             : status == CAPU_UNSUPPORTED      ? "n/a"
             : status == CAPU_HOST_OVER_BUDGET ? "no room"
                                               : capu_status_name(status));
}

/* Makes the call and says what it waited for. */
static void describe_call(struct world *world, const struct order_call *call, size_t item,
                          char *cell)
{
    const capu_context *context = world->rig.context;
    const void *address = world_tensor(world, item)->span;
    struct view before = look(world, address);
    bool host[LANES];
    bool compute[LANES];
    struct view after;
    capu_status status;

    for (int lane = 0; lane < LANES; lane++) {
        host[lane] = is_after(world, NULL, lane, before.last[lane]);
        compute[lane] = is_after(world, context->lanes.compute.stream, lane, before.last[lane]);
    }
    status = call->make(world, item);
    if (status != CAPU_OK) {
        name_status(cell, status);
        return;
    }
    after = look(world, address);
    if (before.has_plan && !after.has_plan) {
        add(cell, 'l');
    }
    for (int lane = 0; lane < LANES; lane++) {
        note_wait(world, cell, lane, before.last[lane], host[lane], compute[lane]);
    }
    if (after.last[COMES] > before.last[COMES]) {
        add(cell, 'b');
    }
    if (after.last[GOES] > before.last[GOES]) {
        add(cell, 'e');
    }
    if (cell[0] == '\0') {
        add(cell, '-');
    }
}

/* The item and its neighbours are what they must be; an iteration later, all are. */
static void finish(struct world *world, size_t item)
{
    order_states_check(world);
    if (world->is_capturing) {
        world_end(world); /* it runs now */
    }
    world_check(world, item - 1, 3);
    if (world->rig.context->iteration.is_open) {
        world_end(world);
    }
    if (world->is_training) {
        world_iterate(world);
    }
    order_states_check(world);
    world_check(world, 0, world->count);
    world_finish(world);
}

static void fill_cell(const struct order_state *state, const struct order_call *call, char *cell)
{
    struct world world;

    order_state_reach(&world, state);
    describe_call(&world, call, state->item, cell);
    finish(&world, state->item);
}

static bool find_column(int number, int *table, int *column)
{
    for (*table = 0; order_tables[*table].title != NULL; ++*table) {
        for (*column = 0; order_tables[*table].states[*column].column != NULL; ++*column) {
            if (number-- == 0) {
                return true;
            }
        }
    }
    return false;
}

static int column_count(void)
{
    int count = 0;
    int table;
    int column;

    while (find_column(count, &table, &column)) {
        count++;
    }
    return count;
}

/* The text of the n-th cell of a line of a table, without blanks around it. */
static bool cell_of(const char *line, int number, char *text, size_t bytes)
{
    const char *from = line;
    size_t length;

    for (int i = 0; i <= number && from != NULL; i++) {
        from = strchr(from, '|');
        from = from != NULL ? from + 1 : NULL;
    }
    if (from == NULL || strchr(from, '|') == NULL) {
        return false;
    }
    length = (size_t)(strchr(from, '|') - from);
    while (length > 0 && from[0] == ' ') {
        from++;
        length--;
    }
    while (length > 0 && from[length - 1] == ' ') {
        length--;
    }
    snprintf(text, bytes, "%.*s", (int)length, from);
    return true;
}

/* What the document says; "?": nothing. */
static void read_expected(const struct order_table *table, int column,
                          char cells[CALLS_MOST][CELL_BYTES])
{
    FILE *file = fopen(ORDER_DOCUMENT, "r");
    char line[LINE_BYTES];
    bool is_here = false;
    int found = -1;

    for (int call = 0; call < CALLS_MOST; call++) {
        strcpy(cells[call], "?");
    }
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        char text[LINE_BYTES];

        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "## ", 3) == 0) {
            is_here = strcmp(line + 3, table->title) == 0;
        }
        if (!is_here || line[0] != '|' || !cell_of(line, 0, text, sizeof(text))) {
            continue;
        }
        if (strcmp(text, "call") == 0) {
            for (int i = 1; cell_of(line, i, text, sizeof(text)); i++) {
                found = strcmp(text, table->states[column].column) == 0 ? i : found;
            }
        }
        for (int call = 0; found > 0 && order_calls[call].name != NULL; call++) {
            if (strcmp(text, order_calls[call].name) == 0) {
                cell_of(line, found, cells[call], CELL_BYTES);
            }
        }
    }
    fclose(file);
}

static bool can_guard(void)
{
    struct rig rig;
    bool can;

    rig_init(&rig, &(struct rig_options){0});
    can = rig.context->lanes.device->capabilities.can_guard;
    rig_finish(&rig);
    return can;
}

/* Whether the cell is checked. With less than all effort, host has every other cell, and cuda the
   rest; with little, as under the sanitizers, both have a tenth. */
static bool is_due(const struct order_table *table, int number, bool is_host)
{
    int distance = effort_percent() == 100 ? 1 : effort_percent() >= 5 ? 2 : 10;

    switch (table->needs) {
    case ORDER_HOST:
        return is_host && number % ((distance + 1) / 2) == 0;
    case ORDER_CUDA:
        return !is_host && number % ((distance + 1) / 2) == 0;
    default:
        return distance == 1 || number % distance == (is_host ? 0 : 1);
    }
}

START_TEST(a_column)
{
    char expected[CALLS_MOST][CELL_BYTES];
    char differences[4096] = "";
    const struct order_state *state;
    bool is_host = can_guard();
    int table;
    int column;

    ck_assert(find_column(_i, &table, &column));
    state = &order_tables[table].states[column];
    read_expected(&order_tables[table], column, expected);
    for (int call = 0; order_calls[call].name != NULL; call++) {
        char *cell = actual[table][column][call];
        size_t length = strlen(differences);

        if (!is_due(&order_tables[table], _i + call, is_host)) {
            continue;
        }
        cell[0] = '\0';
        fill_cell(state, &order_calls[call], cell);
        if (strcmp(cell, expected[call]) != 0) {
            snprintf(differences + length, sizeof(differences) - length, "; %s: '%s', not '%s'",
                     order_calls[call].name, cell, expected[call]);
        }
    }
    ck_assert_msg(differences[0] == '\0', "%s, '%s'%s", order_tables[table].title, state->column,
                  differences);
}
END_TEST

static void write_tables(FILE *file)
{
    for (int table = 0; order_tables[table].title != NULL; table++) {
        const struct order_state *states = order_tables[table].states;

        if (actual[table][0][0][0] == '\0') {
            continue; /* not for this device */
        }
        fprintf(file, "\n## %s\n\n| call |", order_tables[table].title);
        for (int column = 0; states[column].column != NULL; column++) {
            fprintf(file, " %s |", states[column].column);
        }
        fprintf(file, "\n| --- |");
        for (int column = 0; states[column].column != NULL; column++) {
            fprintf(file, " --- |");
        }
        for (int call = 0; order_calls[call].name != NULL; call++) {
            fprintf(file, "\n| %s |", order_calls[call].name);
            for (int column = 0; states[column].column != NULL; column++) {
                fprintf(file, " %s |", actual[table][column][call]);
            }
        }
        fprintf(file, "\n");
    }
}

int main(void)
{
    const char *path = getenv("ORDER_TABLE");
    Suite *suite = suite_create("order");
    TCase *cases = tcase_create("order");
    int result;

    tcase_add_loop_test(cases, a_column, 0, column_count());
    suite_add_tcase(suite, cases);
    result = suite_run(suite);
    if (path != NULL) {
        FILE *file = fopen(path, "w");

        write_tables(file);
        fclose(file);
    }
    return result;
}

/*
 * Collectives between ranks: `mpirun -n N ranks_test` runs all cases, one after the other, each
 * with contexts and groups of its own. All ranks of a case check what they have, and that no group
 * has left its communicator behind, also after a failure.
 */
#include "tests/parallel/cases.h"

#include <string.h>

static const struct ranks_case {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"sums have one order", sums_have_one_order},
    {"integers and doubles", integers_and_doubles},
    {"ranges of several tensors", ranges_of_several_tensors},
    {"data for all", data_for_all},
    {"places are filled in", places_are_filled_in},
    {"nothing is sent on sim", nothing_is_sent_on_sim},
    {"counters", counters},
    {"modes and budgets differ", modes_and_budgets_differ},
    {"random programs", random_programs},
    {"collectives that differ", collectives_that_differ},
    {"a rank that leaves", a_rank_that_leaves},
    {"a rank over budget", a_rank_over_budget},
    {"a rank whose op fails", a_rank_whose_op_fails},
    {"a rank that says it failed", a_rank_that_says_it_failed},
    {"wrong calls", wrong_calls},
};

/* Duplicates of MPI_COMM_WORLD that exist: each one copies its attributes. */
static int duplicates;

static int note_copy(MPI_Comm comm, int key, void *extra, void *from, void *to, int *is_copied)
{
    (void)comm;
    (void)key;
    (void)extra;
    *(void **)to = from;
    *is_copied = 1;
    duplicates++;
    return MPI_SUCCESS;
}

static int note_free(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    duplicates--;
    return MPI_SUCCESS;
}

static void count_duplicates(int *key)
{
    MPI_Comm_create_keyval(note_copy, note_free, key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, *key, NULL);
}

int main(int argc, char **argv)
{
    int provided;
    int key;

    ranks_start();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    count_duplicates(&key);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc < 2 || strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            if (duplicates != 0) {
                FAIL("'%s' has left %d communicators", cases[i].name, duplicates);
            }
            MPI_Barrier(MPI_COMM_WORLD); /* the library's messages are all received */
        }
    }
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
    return 0;
}

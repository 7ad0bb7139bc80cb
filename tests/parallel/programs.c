/*
 * Programs whose ranks have the same collectives in the same order, and nothing else in common:
 * modes, budgets, ops of their own, iterations that leave their plans. Every sum is checked on
 * every rank.
 */
#include "tests/parallel/cases.h"

#include "tests/support/effort.h"

enum { TENSORS = 8, COUNT = 4096, ITERATIONS = 14 };

static void open_ranks(struct ranks *ranks, int turn, float *tensors[TENSORS])
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ranks_open(ranks,
               &(struct ranks_options){
                   .mode = (uint32_t)(CAPU_MODE_OFF + (rank + turn) % 3),
                   /* six tensors, or all of them and the workspace */
                   .budget_bytes =
                       (rank + turn) % 3 == 0 ? 4 << 20 : (uint64_t)(96 + 16 * (rank % 2)) << 10,
                   .bucket_bytes = 8192,
               });
    for (size_t i = 0; i < TENSORS; i++) {
        tensors[i] =
            ranks_tensor(ranks, "tensor", i % 2 == 0 ? CAPU_PARAMETER : CAPU_ACTIVATION, COUNT);
        ranks_fill(ranks, tensors[i], COUNT, i);
    }
}

/* Forward and backward over all tensors, with a sum of each; in some iterations one rank does
   something that its plan does not have. */
void modes_and_budgets_differ(void)
{
    for (int turn = 0; turn < 3; turn++) {
        capu_report report = CAPU_REPORT_INIT;
        uint64_t diverged = 0;
        struct ranks ranks;
        float *tensors[TENSORS];

        open_ranks(&ranks, turn, tensors);
        for (uint64_t i = 0; i < ITERATIONS; i++) {
            WORKS(&ranks, capu_iteration_begin(ranks.context, "train"));
            for (uint64_t k = 0; k < TENSORS; k++) {
                ranks_fill(&ranks, tensors[k], COUNT, i * TENSORS + k);
                if (i >= 6 && k == 3 && i % (uint64_t)ranks.ranks == (uint64_t)ranks.rank) {
                    ranks_add(&ranks, tensors[2], tensors[1], COUNT); /* only here */
                    ranks_fill(&ranks, tensors[2], COUNT, i * TENSORS + 2);
                }
            }
            for (uint64_t k = TENSORS; k-- > 0;) {
                WORKS(&ranks, capu_parallel_allreduce(ranks.group, "sum", tensors[k], COUNT,
                                                      CAPU_PARALLEL_F32));
            }
            for (uint64_t k = 0; k < TENSORS; k += 3) {
                ranks_expect_sum(&ranks, tensors[k], COUNT, i * TENSORS + k);
            }
            WORKS(&ranks, capu_iteration_end(ranks.context));
            WORKS(&ranks, capu_synchronize(ranks.context));
            if (capu_context_config(ranks.context)->mode != CAPU_MODE_OFF) {
                WORKS(&ranks, capu_report_get(ranks.context, &report));
                diverged += report.diverged;
                CHECK(report.peak_bytes <= report.budget_bytes);
            }
        }
        /* A rank alone is the odd one in each iteration, and so never: it plans with it. */
        CHECK(capu_context_config(ranks.context)->mode != CAPU_MODE_GUIDED || ranks.ranks == 1 ||
              diverged > 0);
        ranks_close(&ranks);
    }
}

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* One step that all ranks do: what is expected of a tensor afterwards is known. */
static void step(struct ranks *ranks, float *tensors[TENSORS], uint64_t *common, uint64_t *own)
{
    uint64_t seed = next(common);
    size_t which = next(common) % TENSORS;
    size_t count = 1 + next(common) % COUNT;
    float *numbers;
    int root = (int)(next(common) % (uint64_t)ranks->ranks);

    for (uint64_t i = next(own) % 4; i > 0; i--) { /* of this rank alone */
        ranks_add(ranks, tensors[next(own) % TENSORS], tensors[next(own) % TENSORS], COUNT);
    }
    ranks_fill(ranks, tensors[which], COUNT, seed);
    if (next(common) % 3 > 0) {
        WORKS(ranks, capu_parallel_allreduce(ranks->group, "sum", tensors[which], count,
                                             CAPU_PARALLEL_F32));
        if (next(own) % 2 == 0) {
            ranks_add(ranks, tensors[(which + 1) % TENSORS], tensors[which], COUNT);
        }
        ranks_expect_sum(ranks, tensors[which], count, seed);
    } else {
        WORKS(ranks, capu_parallel_broadcast(ranks->group, "copy", tensors[which], count,
                                             CAPU_PARALLEL_F32, root));
        numbers = ranks_read(ranks, tensors[which], COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(numbers[i] == ranks_number(seed, i < count ? root : ranks->rank, i));
        }
        free(numbers);
    }
}

void random_programs(void)
{
    size_t programs = effort_share(60);

    for (size_t program = 0; program < programs; program++) {
        uint64_t common = 17 + program;
        struct ranks ranks;
        float *tensors[TENSORS];
        uint64_t own;

        open_ranks(&ranks, (int)program, tensors);
        own = common * 31 + (uint64_t)ranks.rank;
        for (size_t i = 0; i < TENSORS; i++) {
            WORKS(&ranks, CAPU_DESCRIBE(ranks.context, tensors[i], .kind = CAPU_PARAMETER));
        }
        for (unsigned i = 0; i < 8; i++) {
            uint64_t same = common;

            WORKS(&ranks, capu_iteration_begin(ranks.context, i % 4 == 3 ? "other" : "train"));
            for (unsigned k = 0; k < 6; k++) {
                step(&ranks, tensors, &same, &own);
            }
            WORKS(&ranks, capu_iteration_end(ranks.context));
            common = i % 4 == 1 ? same : common; /* some iterations are like the one before */
        }
        ranks_close(&ranks);
    }
}

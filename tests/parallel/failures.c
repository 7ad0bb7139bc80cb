/* Ranks that fail, and tell the others: all of them end with an error that says which rank it was.
 */
#include "tests/parallel/cases.h"

#include <string.h>

enum { COUNT = 1000 };

/* A collective that fails in flight may have done so before its call returns. */
#define ISSUED(ranks_, call_)                                         \
    do {                                                              \
        capu_status issued_ = (call_);                                \
        WORKS(ranks_, issued_ == CAPU_OP_FAILED ? CAPU_OK : issued_); \
    } while (0)

/* A collective after the end of the group says why it has ended, also if the context goes on. */
static void expect_ended(struct ranks *ranks, const char *word)
{
    const char *text;

    CHECK(capu_parallel_allreduce(ranks->group, "later", ranks, 1, CAPU_PARALLEL_F32) ==
          CAPU_OP_FAILED);
    text = capu_last_error(ranks->context);
    if (strstr(text, "'later'") == NULL || strstr(text, word) == NULL) {
        FAIL("'%s' does not say 'later' and '%s'", text, word);
    }
}

/* The context is lost with OP_FAILED, and both texts say all of these. */
static void expect_failure(struct ranks *ranks, const char *first, const char *second,
                           const char *third)
{
    const char *texts[] = {capu_parallel_error(ranks->group), NULL};
    const char *words[] = {first, second, third};
    capu_status status = capu_synchronize(ranks->context);

    texts[0] = capu_parallel_error(ranks->group);
    texts[1] = capu_last_error(ranks->context);
    if (status != CAPU_OP_FAILED) {
        FAIL("%s instead of OP_FAILED: %s", capu_status_name(status), texts[0]);
    }
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 3; k++) {
            if (strstr(texts[i], words[k]) == NULL) {
                FAIL("'%s' does not say '%s'", texts[i], words[k]);
            }
        }
    }
    expect_ended(ranks, first);
}

static float *open_one(struct ranks *ranks)
{
    float *tensor;

    ranks_open(ranks, &(struct ranks_options){.budget_bytes = 1 << 20, .bucket_bytes = 4096});
    tensor = ranks_tensor(ranks, "t", CAPU_PARAMETER, COUNT);
    ranks_fill(ranks, tensor, COUNT, 1);
    WORKS(ranks, capu_parallel_allreduce(ranks->group, "good", tensor, COUNT, CAPU_PARALLEL_F32));
    return tensor;
}

/* The last rank has another name, size, type, kind or root. */
void collectives_that_differ(void)
{
    enum { NAME, SIZE, TYPE, KIND, ROOT, WAYS };

    for (int way = 0; way < WAYS; way++) {
        struct ranks ranks;
        float *tensor = open_one(&ranks);
        capu_parallel *group = ranks.group;
        bool is_odd = ranks.ranks > 1 && ranks.rank == ranks.ranks - 1;

        if (way == KIND ? is_odd : way == ROOT) {
            ISSUED(&ranks, capu_parallel_broadcast(group, "first", tensor, COUNT, CAPU_PARALLEL_F32,
                                                   is_odd && way == ROOT));
        } else {
            ISSUED(&ranks, capu_parallel_allreduce(
                               group, is_odd && way == NAME ? "second" : "first", tensor,
                               is_odd && way == SIZE ? COUNT / 2 : COUNT,
                               is_odd && way == TYPE ? CAPU_PARALLEL_I32 : CAPU_PARALLEL_F32));
        }
        if (ranks.ranks > 1) {
            char odd[32];

            snprintf(odd, sizeof(odd), "rank %d has", ranks.ranks - 1);
            expect_failure(&ranks, "rank 0 has", odd, way == NAME ? "'second'" : "'first'");
        }
        ranks_close(&ranks);
    }
}

void a_rank_that_leaves(void)
{
    struct ranks ranks;
    float *tensor = open_one(&ranks);

    if (ranks.rank > 0) {
        ISSUED(&ranks,
               capu_parallel_allreduce(ranks.group, "more", tensor, COUNT, CAPU_PARALLEL_F32));
        expect_failure(&ranks, "rank 0 leaves the group", "rank 1 has allreduce 'more'", "more");
    }
    ranks_close(&ranks);
}

/* The context of that rank goes on; its group does not. */
void a_rank_over_budget(void)
{
    struct ranks ranks;
    float *tensor = open_one(&ranks);
    bool is_odd = ranks.rank == ranks.ranks - 1;
    size_t count = (size_t)1 << 20;
    float *large = is_odd ? ranks_tensor(&ranks, "large", CAPU_PARAMETER, count) : tensor;
    char odd[64];

    snprintf(odd, sizeof(odd), "rank %d failed at 'large'", ranks.ranks - 1);
    if (ranks.ranks == 1) {
        ranks_close(&ranks);
        return;
    }
    if (is_odd) {
        CHECK(capu_parallel_broadcast(ranks.group, "large", large, count, CAPU_PARALLEL_F32, 0) ==
              CAPU_OVER_BUDGET);
        CHECK(strstr(capu_parallel_error(ranks.group), "CAPU_OVER_BUDGET") != NULL);
        CHECK(strstr(capu_last_error(ranks.context), "device memory") != NULL);
        expect_ended(&ranks, "CAPU_OVER_BUDGET");
        ranks_fill(&ranks, tensor, COUNT, 2);
        WORKS(&ranks, capu_synchronize(ranks.context));
    } else {
        ISSUED(&ranks,
               capu_parallel_broadcast(ranks.group, "large", large, COUNT, CAPU_PARALLEL_F32, 0));
        expect_failure(&ranks, odd, "CAPU_OVER_BUDGET", "device memory");
    }
    ranks_close(&ranks);
}

static capu_status fail(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_UNSUPPORTED;
}

/* An op of the program fails in flight, with collectives after it that never run. */
void a_rank_whose_op_fails(void)
{
    struct ranks ranks;
    float *tensor = open_one(&ranks);
    capu_op op = {.size = sizeof(op), .name = "bomb", .run = fail};
    capu_status status = CAPU_OK;

    if (ranks.rank == 0) {
        status = capu_run(ranks.context, &op);
    }
    for (int i = 0; i < 3 && status == CAPU_OK; i++) {
        status = capu_parallel_allreduce(ranks.group, "after", tensor, COUNT, CAPU_PARALLEL_F32);
    }
    if (ranks.rank == 0) {
        CHECK(capu_synchronize(ranks.context) == CAPU_OP_FAILED);
        CHECK(strstr(capu_last_error(ranks.context), "bomb") != NULL);
        capu_parallel_fail(ranks.group, CAPU_OP_FAILED, capu_last_error(ranks.context));
    } else {
        expect_failure(&ranks, "rank 0 failed", "CAPU_OP_FAILED", "bomb");
    }
    ranks_close(&ranks);
}

void a_rank_that_says_it_failed(void)
{
    struct ranks ranks;
    float *tensor = open_one(&ranks);

    if (ranks.rank == 0) {
        capu_parallel_fail(ranks.group, CAPU_FILE_FAILED, "no such corpus");
        CHECK(strstr(capu_parallel_error(ranks.group), "no such corpus") != NULL);
        expect_ended(&ranks, "no such corpus");
    } else {
        ISSUED(&ranks,
               capu_parallel_allreduce(ranks.group, "more", tensor, COUNT, CAPU_PARALLEL_F32));
        expect_failure(&ranks, "rank 0 failed", "CAPU_FILE_FAILED", "no such corpus");
    }
    ranks_close(&ranks);
}

static capu_status call_wrongly(struct ranks *ranks, int way, void *tensor)
{
    capu_parallel *group = ranks->group;

    switch (way) {
    case 0:
        return capu_parallel_allreduce(group, "", tensor, 1, CAPU_PARALLEL_F32);
    case 1:
        return capu_parallel_allreduce(group, "x", tensor, 1, CAPU_PARALLEL_BYTE);
    case 2:
        return capu_parallel_broadcast(group, "x", tensor, 1, (capu_parallel_type)9, 0);
    case 3:
        return capu_parallel_broadcast(group, "x", tensor, 1, CAPU_PARALLEL_F32, ranks->ranks);
    case 4:
        return capu_parallel_broadcast(group, "x", tensor, 1, CAPU_PARALLEL_F32, -1);
    case 5: /* a tensor ends after 4001 bytes */
        return capu_parallel_allreduce(group, "x", tensor, COUNT + 1, CAPU_PARALLEL_F32);
    case 6:
        return capu_parallel_allreduce(group, "x", tensor, 0, CAPU_PARALLEL_F32);
    case 7:
        return capu_parallel_allgather(group, "x", tensor, tensor, SIZE_MAX / 2, CAPU_PARALLEL_F32);
    case 8:
        return capu_parallel_reduce_scatter(group, "x", ranks, tensor, 1, CAPU_PARALLEL_F32);
    default:
        return capu_parallel_allreduce(group, "x", tensor, 4 * COUNT, CAPU_PARALLEL_F32);
    }
}

/* All ranks call wrongly, so all fail themselves; what one of them alone does is told the others.
 */
void wrong_calls(void)
{
    static const capu_status answers[] = {
        CAPU_INVALID, CAPU_INVALID, CAPU_INVALID,   CAPU_INVALID,       CAPU_INVALID,
        CAPU_INVALID, CAPU_INVALID, CAPU_TOO_LARGE, CAPU_WRONG_ADDRESS, CAPU_WRONG_ADDRESS,
    };
    static const char *const texts[] = {
        "needs a name",  "bytes are not", "element type",     "the root",  "the root",
        "inside an ele", "no elements",   "so many elements", "no tensor", "past the end",
    };
    capu_parallel_options options = CAPU_PARALLEL_OPTIONS_INIT;
    struct ranks ranks;
    capu_parallel *group = NULL;
    void *tensor;
    void *whole;

    for (int way = 0; way < 10; way++) {
        capu_status status;

        (void)open_one(&ranks);
        WORKS(&ranks, capu_malloc(ranks.context, 2 * COUNT * sizeof(float), &tensor));
        WORKS(&ranks, capu_malloc(ranks.context, 2 * COUNT * sizeof(float), &whole));
        WORKS(&ranks, capu_zero(ranks.context, whole, 0));
        WORKS(&ranks, capu_split(ranks.context, tensor, COUNT * sizeof(float) + 1));
        WORKS(&ranks, capu_zero(ranks.context, tensor, 2 * COUNT * sizeof(float)));
        status = call_wrongly(&ranks, way, way == 9 ? whole : tensor);
        if (status != answers[way]) {
            FAIL("call %d: %s: %s", way, capu_status_name(status),
                 capu_parallel_error(ranks.group));
        }
        CHECK(strstr(capu_parallel_error(ranks.group), capu_status_name(answers[way])) != NULL);
        if (strstr(capu_last_error(ranks.context), texts[way]) == NULL) {
            FAIL("call %d: '%s'", way, capu_last_error(ranks.context));
        }
        ranks_close(&ranks);
    }

    /* A group that cannot be made on one rank is made on none. */
    (void)open_one(&ranks);
    options.bucket_bytes = ranks.rank == 0 ? UINT64_C(2) << 30 : 0;
    CHECK(capu_parallel_create(ranks.context, MPI_COMM_WORLD, &options, &group) ==
          (ranks.rank == 0 ? CAPU_INVALID : CAPU_OP_FAILED));
    options.bucket_bytes = 4096 + (uint64_t)ranks.rank;
    CHECK(ranks.ranks == 1 ||
          capu_parallel_create(ranks.context, MPI_COMM_WORLD, &options, &group) == CAPU_OP_FAILED);
    CHECK(group == NULL);
    CHECK(capu_parallel_create(NULL, MPI_COMM_WORLD, NULL, &group) == CAPU_INVALID);
    CHECK(capu_parallel_allreduce(NULL, "x", tensor, 1, CAPU_PARALLEL_F32) == CAPU_INVALID);
    CHECK(capu_parallel_rank(NULL) == 0 && capu_parallel_ranks(NULL) == 1);
    capu_parallel_destroy(NULL);
    ranks_close(&ranks);
}

/*
 * Ranks that end without a word: `mpirun ... ends_test CASE FOLDER`. Those that are left say what
 * they have seen, in a file FOLDER/seen.RANK, and end with _exit. ends.sh reads these files.
 */
#include "tests/parallel/ranks.h"

#include <signal.h>
#include <string.h>
#include <time.h>

enum { COUNT = 200000, LATE = 3 };

static const char *folder;

static float *open_case(struct ranks *ranks, const struct ranks_options *from)
{
    char report[256];
    struct ranks_options options = *from;

    snprintf(report, sizeof(report), "%s/report.%%r", folder);
    options.report_path = report;
    options.mode = CAPU_MODE_PASSIVE;
    ranks_open(ranks, &options);
    return ranks_tensor(ranks, "gradients", CAPU_GRADIENT, COUNT);
}

/* The error of this rank, in its file; the rank ends. */
static _Noreturn void tell(struct ranks *ranks, capu_status status)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/seen.%d", folder, ranks->rank);
    file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, "%s: %s\n", capu_status_name(status), capu_last_error(ranks->context));
    CHECK(strcmp(capu_parallel_error(ranks->group), "") != 0);
    CHECK(fclose(file) == 0);
    _exit(0);
}

/* One iteration; the report's line is in its file afterwards. */
static capu_status train(struct ranks *ranks, float *tensor, unsigned iteration)
{
    capu_status status = capu_iteration_begin(ranks->context, "train");

    if (status == CAPU_OK) {
        ranks_fill(ranks, tensor, COUNT, iteration);
        status = capu_parallel_allreduce(ranks->group, "sum of gradients", tensor, COUNT,
                                         CAPU_PARALLEL_F32);
    }
    status = status == CAPU_OK ? capu_iteration_end(ranks->context) : status;
    status = status == CAPU_OK ? capu_synchronize(ranks->context) : status;
    return status == CAPU_OK ? capu_flush(ranks->context) : status;
}

/* The last rank is killed between two collectives, or ends in the middle of one. */
static void end_one(bool is_killed)
{
    struct ranks ranks;
    float *tensor =
        open_case(&ranks, &(struct ranks_options){.bucket_bytes = is_killed ? 0 : 4096});
    capu_status status = CAPU_OK;

    for (unsigned i = 1; status == CAPU_OK; i++) {
        if (ranks.rank == ranks.ranks - 1 && i == LATE && is_killed) {
            raise(SIGKILL);
        }
        if (ranks.rank == ranks.ranks - 1 && i == LATE) {
            const struct timespec moment = {.tv_nsec = 1000000};

            ranks_fill(&ranks, tensor, COUNT, i);
            (void)capu_parallel_allreduce(ranks.group, "sum of gradients", tensor, COUNT,
                                          CAPU_PARALLEL_F32);
            nanosleep(&moment, NULL); /* some buckets go */
            _exit(0);
        }
        status = train(&ranks, tensor, i);
    }
    tell(&ranks, status);
}

/* Rank 0 is there and does nothing. */
static void keep_silent(void)
{
    struct ranks ranks;
    float *tensor =
        open_case(&ranks, &(struct ranks_options){.wait_limit_ns = UINT64_C(200000000)});
    capu_status status = CAPU_OK;

    if (ranks.rank == 0) {
        for (;;) {
            pause();
        }
    }
    status = train(&ranks, tensor, 1);
    tell(&ranks, status);
}

/* Rank 0 trains alone and writes reports when the last rank ends, and mpirun ends rank 0. */
static void keep_writing(void)
{
    struct ranks ranks;
    float *tensor = open_case(&ranks, &(struct ranks_options){0});

    for (unsigned i = 1;; i++) {
        if (ranks.rank == ranks.ranks - 1 && i == LATE) {
            MPI_Barrier(MPI_COMM_WORLD);
            _exit(1);
        }
        WORKS(&ranks, capu_iteration_begin(ranks.context, "train"));
        ranks_fill(&ranks, tensor, i < COUNT ? i : COUNT, i);
        WORKS(&ranks, capu_iteration_end(ranks.context));
        WORKS(&ranks, capu_synchronize(ranks.context));
        WORKS(&ranks, capu_flush(ranks.context));
        if (i == LATE) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* The program of docs/parallel.md whose calls are in two orders. */
static void mix_orders(void)
{
    struct ranks ranks;
    float *x = open_case(&ranks, &(struct ranks_options){.wait_limit_ns = UINT64_C(200000000)});
    float *host = malloc(COUNT * sizeof(float));
    capu_status status;

    CHECK(host != NULL);
    ranks_fill(&ranks, x, COUNT, 1);
    if (ranks.rank == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
        (void)capu_parallel_allreduce(ranks.group, "sum of x", x, COUNT, CAPU_PARALLEL_F32);
    } else {
        (void)capu_parallel_allreduce(ranks.group, "sum of x", x, COUNT, CAPU_PARALLEL_F32);
        status = capu_download(ranks.context, host, x, COUNT * sizeof(float), 0);
        if (status != CAPU_OK) {
            tell(&ranks, status);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    FAIL("calls in two orders have worked");
}

/* MPI with less than it takes, and no MPI at all. */
static void begin_wrongly(int *argc, char ***argv)
{
    char text[256] = "";
    capu_config config = CAPU_CONFIG_INIT;
    capu_parallel_options options = CAPU_PARALLEL_OPTIONS_INIT;
    capu_context *context;
    capu_parallel *group = NULL;
    int provided;

    config.device = "host";
    config.budget_bytes = 1 << 20;
    config.error = options.error = text;
    config.error_bytes = options.error_bytes = sizeof(text);
    CHECK(capu_context_create(&config, &context) == CAPU_OK);
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) == CAPU_WRONG_ORDER);
    CHECK(capu_parallel_create(context, MPI_COMM_WORLD, NULL, &group) == CAPU_WRONG_ORDER);
    MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) == CAPU_UNSUPPORTED);
    CHECK(strstr(text, "MPI_Init_thread") != NULL);
    text[0] = '\0';
    CHECK(capu_parallel_create(context, MPI_COMM_WORLD, &options, &group) == CAPU_UNSUPPORTED);
    CHECK(strstr(text, "MPI_Init_thread") != NULL);
    CHECK(group == NULL);
    capu_context_destroy(context);
    MPI_Finalize();
    CHECK(capu_parallel_config(MPI_COMM_WORLD, &config) == CAPU_WRONG_ORDER);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int provided;

    folder = argc > 2 ? argv[2] : ".";
    ranks_start();
    if (strcmp(name, "wrong") == 0) {
        begin_wrongly(&argc, &argv);
        return 0;
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (strcmp(name, "killed") == 0) {
        end_one(true);
    } else if (strcmp(name, "ended") == 0) {
        end_one(false);
    } else if (strcmp(name, "silent") == 0) {
        keep_silent();
    } else if (strcmp(name, "writing") == 0) {
        keep_writing();
    } else if (strcmp(name, "order") == 0) {
        mix_orders();
    }
    FAIL("there is no case '%s'", name);
}

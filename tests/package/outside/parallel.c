/* A program of another project that can be several processes: adds up one number per rank. */
#include <capuchin/capuchin.h>
#include <capuchin/parallel.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context;
    capu_parallel *group;
    int provided;
    int32_t one = 1;
    int32_t sum = 0;
    void *number;
    int failed = 1;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    config.device = "host";
    config.budget_bytes = 4 << 20;
    if (capu_parallel_config(MPI_COMM_WORLD, &config) != CAPU_OK ||
        capu_context_create(&config, &context) != CAPU_OK) {
        return 1;
    }
    if (capu_parallel_create(context, MPI_COMM_WORLD, NULL, &group) == CAPU_OK) {
        failed = capu_malloc(context, sizeof(one), &number) != CAPU_OK ||
                 capu_upload(context, number, &one, sizeof(one), 0) != CAPU_OK ||
                 capu_parallel_allreduce(group, "ranks", number, 1, CAPU_PARALLEL_I32) != CAPU_OK ||
                 capu_download(context, &sum, number, sizeof(sum), 0) != CAPU_OK ||
                 sum != capu_parallel_ranks(group);
        if (failed) {
            fprintf(stderr, "%s; %s\n", capu_last_error(context), capu_parallel_error(group));
        }
        capu_parallel_destroy(group);
    }
    capu_context_destroy(context);
    MPI_Finalize();
    return failed;
}

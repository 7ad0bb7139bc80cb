/* A program of another project: runs ops on more memory than its budget holds. */
#include <capuchin/capuchin.h>

#include <stdio.h>
#include <string.h>

#define BYTES ((size_t)256 << 10)

static capu_status fill(capu_stream stream, const void *arguments)
{
    unsigned char *const *to = arguments;

    (void)stream;
    memset(*to, 7, BYTES);
    return CAPU_OK;
}

int main(void)
{
    capu_config config = CAPU_CONFIG_INIT;
    capu_context *context;
    void *tensors[4];
    unsigned char last = 0;
    int failed = 0;

    config.device = "host";
    config.budget_bytes = 2 * BYTES;
    if (capu_context_create(&config, &context) != CAPU_OK) {
        return 1;
    }
    for (size_t i = 0; i < 4; i++) {
        failed |= capu_malloc(context, BYTES, &tensors[i]) != CAPU_OK;
        failed |= CAPU_RUN(context, fill, &tensors[i], capu_writes(tensors[i])) != CAPU_OK;
    }
    for (size_t i = 0; i < 4; i++) {
        const unsigned char *end = (const unsigned char *)tensors[i] + BYTES - 1;

        failed |= capu_download(context, &last, end, 1, 0) != CAPU_OK || last != 7;
    }
    capu_context_destroy(context);
    printf("capuchin %s: %s\n", capu_version(), failed ? "failed" : "works");
    return failed;
}

/*
 * The smallest training loop, after: the same loop, which now runs in less memory than it uses.
 *
 * What changed: a declaration per kernel says what it reads and writes, and makes an op of it; the
 * beginning and the end of a step are marked; and tensors have names and kinds, which say which of
 * them need not outlive a step. Try CAPUCHIN_BUDGET=4MiB: the losses are those of before.c, bit for
 * bit.
 */
#include "examples/drop_in/chain.h"

#define CAPU_LAUNCHER_CHECK(status) check(status)
#include "capuchin/launcher.h"

#include <stdio.h>
#include <stdlib.h>

static capu_context *context;
static char error[256]; /* why the context could not be created */

static void check(capu_status status)
{
    if (status != CAPU_OK) {
        fprintf(stderr, "after: %s: %s\n", capu_status_text(status),
                context != NULL ? capu_last_error(context) : error);
        exit(1);
    }
}

static CAPU_WRAPPER(forward, chain_forward, (float *, output, writes),
                    (const float *, input, reads), (const float *, weight, reads));
static CAPU_WRAPPER(measure, chain_measure, (float *, loss, writes), (float *, gradient, writes),
                    (const float *, output, reads), (const float *, target, reads));
static CAPU_WRAPPER(backward, chain_backward, (float *, gradient, updates),
                    (float *, weight, updates), (const float *, input, reads),
                    (const float *, output, reads));

static float *make(const char *name, capu_kind kind, size_t bytes)
{
    void *address = NULL;

    check(capu_malloc(context, bytes, &address));
    check(CAPU_DESCRIBE(context, address, .name = name, .kind = kind));
    return address;
}

int main(void)
{
    static float values[CHAIN_ITEMS];
    capu_config config = CAPU_CONFIG_INIT;
    float *activation[CHAIN_LAYERS + 1];
    float *weight[CHAIN_LAYERS];
    float *gradient;
    float *target;
    float *loss;

    config.error = error;
    config.error_bytes = sizeof(error);
    check(capu_context_create(&config, &context));
    capu_context_make_current(context);
    gradient = make("gradient", CAPU_GRADIENT, CHAIN_BYTES);
    target = make("target", CAPU_INPUT, CHAIN_BYTES);
    loss = make("loss", CAPU_ACTIVATION, sizeof(float));
    for (int i = 0; i <= CHAIN_LAYERS; i++) {
        activation[i] = make("activation", CAPU_ACTIVATION, CHAIN_BYTES);
    }
    for (int i = 0; i < CHAIN_LAYERS; i++) {
        weight[i] = make("weight", CAPU_PARAMETER, CHAIN_BYTES);
        chain_fill(values, 0.9f, 1.1f);
        check(capu_upload(context, weight[i], values, CHAIN_BYTES, 0));
    }
    for (int step = 1; step <= CHAIN_STEPS; step++) {
        float result;

        check(capu_iteration_begin(context, NULL));
        chain_fill(values, -1.0f, 1.0f);
        check(capu_upload(context, activation[0], values, CHAIN_BYTES, 0));
        chain_fill(values, -0.5f, 0.5f);
        check(capu_upload(context, target, values, CHAIN_BYTES, 0));
        for (int i = 0; i < CHAIN_LAYERS; i++) {
            forward(activation[i + 1], activation[i], weight[i]);
        }
        measure(loss, gradient, activation[CHAIN_LAYERS], target);
        for (int i = CHAIN_LAYERS; i-- > 0;) {
            backward(gradient, weight[i], activation[i], activation[i + 1]);
        }
        check(capu_download(context, &result, loss, sizeof(result), 0));
        check(capu_iteration_end(context));
        printf("step %d  loss %a\n", step, (double)result);
    }
    capu_context_destroy(context);
    return 0;
}

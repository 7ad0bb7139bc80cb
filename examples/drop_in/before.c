/*
 * The smallest training loop, before: memory from a device API, copies, kernels.
 *
 * The four functions below have the signatures of cudaMalloc, cudaFree and cudaMemcpy, over host
 * memory so that the program runs anywhere. `diff before.c after.c` shows what using the library
 * takes.
 */
#include "examples/drop_in/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int device_malloc(void **address, size_t bytes)
{
    *address = malloc(bytes);
    return *address != NULL ? 0 : -1;
}

static int device_free(void *address)
{
    free(address);
    return 0;
}

static int copy_to_device(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static int copy_from_device(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static void check(int error)
{
    if (error != 0) {
        fprintf(stderr, "before: out of memory\n");
        exit(1);
    }
}

static float *make(size_t bytes)
{
    void *address = NULL;

    check(device_malloc(&address, bytes));
    return address;
}

int main(void)
{
    static float values[CHAIN_ITEMS];
    float *activation[CHAIN_LAYERS + 1];
    float *weight[CHAIN_LAYERS];
    float *gradient;
    float *target;
    float *loss;

    gradient = make(CHAIN_BYTES);
    target = make(CHAIN_BYTES);
    loss = make(sizeof(float));
    for (int i = 0; i <= CHAIN_LAYERS; i++) {
        activation[i] = make(CHAIN_BYTES);
    }
    for (int i = 0; i < CHAIN_LAYERS; i++) {
        weight[i] = make(CHAIN_BYTES);
        chain_fill(values, 0.9f, 1.1f);
        check(copy_to_device(weight[i], values, CHAIN_BYTES));
    }
    for (int step = 1; step <= CHAIN_STEPS; step++) {
        float result;

        chain_fill(values, -1.0f, 1.0f);
        check(copy_to_device(activation[0], values, CHAIN_BYTES));
        chain_fill(values, -0.5f, 0.5f);
        check(copy_to_device(target, values, CHAIN_BYTES));
        for (int i = 0; i < CHAIN_LAYERS; i++) {
            chain_forward(activation[i + 1], activation[i], weight[i]);
        }
        chain_measure(loss, gradient, activation[CHAIN_LAYERS], target);
        for (int i = CHAIN_LAYERS; i-- > 0;) {
            chain_backward(gradient, weight[i], activation[i], activation[i + 1]);
        }
        check(copy_from_device(&result, loss, sizeof(result)));
        printf("step %d  loss %a\n", step, (double)result);
    }
    for (int i = 0; i < CHAIN_LAYERS; i++) {
        check(device_free(weight[i]));
    }
    for (int i = 0; i <= CHAIN_LAYERS; i++) {
        check(device_free(activation[i]));
    }
    check(device_free(gradient));
    check(device_free(target));
    check(device_free(loss));
    return 0;
}

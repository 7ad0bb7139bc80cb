/* A program that is linked with the driver: it has its symbols as undefined ones. */
#include <stddef.h>
#include <stdio.h>

int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream,
                   void **parameters, void **extra);

int main(void)
{
    void *some[1] = {NULL};

    printf("launch %d\n", cuLaunchKernel(some, 1, 2, 3, 4, 5, 6, 7, some, some, some));
    printf("create %d\n", cuCtxCreate_v2(some, 0, 0));
    return 0;
}

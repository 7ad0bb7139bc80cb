/* start_runtime LIBCUDART: starts a CUDA runtime, which asks the driver for its functions. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *runtime = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*count_devices)(int *) =
        runtime != NULL ? (int (*)(int *))dlsym(runtime, "cudaGetDeviceCount") : NULL;
    int count = 0;

    if (count_devices == NULL) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "start_runtime LIBCUDART");
        return 1;
    }
    (void)count_devices(&count); /* fails: there is no device */
    return 0;
}

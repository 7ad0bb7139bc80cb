/* A program that loads another one as a plug-in, with all libraries that it needs, for itself. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = dlopen(PRODUCTS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    int (*run)(int, char **) = plugin != NULL ? (int (*)(int, char **))dlsym(plugin, "run") : NULL;

    if (run == NULL) {
        printf("%s\n", dlerror());
        return 3;
    }
    return run(argc, argv);
}

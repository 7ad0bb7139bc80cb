/* A library that is not a plug-in, and that shows when it is opened. */
#include <stdlib.h>

__attribute__((constructor)) static void show(void)
{
    setenv("PLUGIN_NONE_WAS_OPENED", "1", 1);
}

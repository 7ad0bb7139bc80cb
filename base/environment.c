/* Paths from the environment, see environment.h. */
#include "base/environment.h"

#include <stdlib.h>
#include <sys/auxv.h>

bool environment_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *environment_path(const char *name)
{
    return environment_is_secure() ? NULL : getenv(name);
}

/* The library's version. The soname is the major number. */
#ifndef CAPU_INCLUDE_VERSION_H
#define CAPU_INCLUDE_VERSION_H

#include "capuchin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAPU_VERSION_MAJOR 0
#define CAPU_VERSION_MINOR 1
#define CAPU_VERSION_PATCH 0
#define CAPU_VERSION_STRING "0.1.0"

/* The version of the library in use, which may be newer than CAPU_VERSION_STRING of the header the
   caller was compiled with. A constant. Thread: any. */
CAPU_API const char *capu_version(void);

#ifdef __cplusplus
}
#endif

#endif

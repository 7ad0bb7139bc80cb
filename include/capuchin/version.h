/*
 * The library's version, and what it promises.
 *
 * From 1.0 on, programs that were built with one version run with all later ones of the same major
 * number: functions and statuses stay, and structs, which begin with their size, only grow. The
 * soname has that number (libcapuchin.so.1). Until then every minor version may change anything,
 * so the soname has both numbers (libcapuchin.so.0.1). A patch never changes the interface.
 */
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

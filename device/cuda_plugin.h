/*
 * The plug-in that holds the cuda device: libcapuchin-cuda13.so for CUDA 13, one file per major
 * version of CUDA. The library itself has no CUDA in it, so that one package serves machines with
 * and without; the plug-in has the CUDA runtime inside, with all names hidden but one,
 * `cuda_plugin`.
 *
 * cuda_open.c is in the library and opens it. cuda_export.c is in the plug-in, together with the
 * device (cuda.c and its files) and with a copy of what these use of the rooms base and device.
 */
#ifndef CAPU_DEVICE_CUDA_PLUGIN_H
#define CAPU_DEVICE_CUDA_PLUGIN_H

#include "device/device.h"

/* Counts the changes to what both sides share, which is this header and device.h. `layout` below
   notices most changes by itself. */
#define CUDA_PLUGIN_INTERFACE 1

/* The first field stays what it is for all time; the others may be read only if it is right. */
struct cuda_plugin {
    uint64_t interface;  /* CUDA_PLUGIN_INTERFACE */
    uint64_t layout;     /* CUDA_PLUGIN_LAYOUT */
    const char *version; /* of the libcapuchin with which it was built */
    /* As cuda_device_create, for the CUDA in the plug-in. */
    capu_status (*create)(const struct device_options *options, struct device **device, char *text,
                          size_t text_bytes);
};

/* The sizes of what both sides share. */
#define CUDA_PLUGIN_LAYOUT                                                          \
    (sizeof(struct device_table) << 48 | sizeof(struct device_capabilities) << 32 | \
     sizeof(struct device_options) << 16 | sizeof(struct device_work) << 8 |        \
     sizeof(struct device_grant))

/* The name of the struct in the plug-in, and of its file. */
#define CUDA_PLUGIN_SYMBOL "cuda_plugin"
#define CUDA_PLUGIN_FILE "libcapuchin-cuda%d.so"

#endif

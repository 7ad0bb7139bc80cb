/* What a plug-in exports, see cuda_plugin.h. */
#include "device/cuda_plugin.h"

#include "capuchin/version.h"

extern const struct cuda_plugin cuda_plugin __attribute__((visibility("default")));

const struct cuda_plugin cuda_plugin = {
    .interface = CUDA_PLUGIN_INTERFACE,
    .layout = CUDA_PLUGIN_LAYOUT,
    .version = CAPU_VERSION_STRING,
    .create = cuda_device_create,
};

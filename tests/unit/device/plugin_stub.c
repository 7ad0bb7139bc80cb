/* Plug-ins that do not fit, or find no device: compiled with STUB_INTERFACE, STUB_LAYOUT,
 * STUB_VERSION. */
#include "device/cuda_plugin.h"

#include "capuchin/version.h"

static capu_status create(const struct device_options *options, struct device **device, char *text,
                          size_t text_bytes)
{
    (void)options;
    (void)device;
    return device_refuse(CAPU_NO_DEVICE, text, text_bytes, "no driver for %s", CAPU_VERSION_STRING);
}

extern const struct cuda_plugin cuda_plugin __attribute__((visibility("default")));

const struct cuda_plugin cuda_plugin = {
    .interface = STUB_INTERFACE,
    .layout = STUB_LAYOUT,
    .version = STUB_VERSION,
    .create = create,
};

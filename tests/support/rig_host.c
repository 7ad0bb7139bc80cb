/* The device of tests_rig. */
#include "tests/support/rig.h"

const struct rig_failure rig_failure = {CAPU_OP_FAILED, "bomb"};

capu_status rig_device_create(const struct device_options *options, struct device **device,
                              char *text, size_t text_bytes)
{
    return host_device_create(options, device, text, text_bytes);
}

/* The device that a config names, and its link: see device_choice.h. */
#include "runtime/context/device_choice.h"

#include "device/calibration.h"
#include "policy/format/trace.h"
#include "runtime/context/config.h"
#include "runtime/context/failure.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether `name` is "cuda" or "cuda:" and the number of a device. */
static bool read_cuda(const char *name, uint32_t *ordinal)
{
    const char *digit = name + strlen("cuda");

    *ordinal = 0;
    if (strncmp(name, "cuda", strlen("cuda")) != 0) {
        return false;
    }
    if (*digit == '\0') {
        return true;
    }
    if (*digit != ':' || digit[1] == '\0' || strlen(digit) > 4) { /* three digits are plenty */
        return false;
    }
    for (digit++; *digit >= '0' && *digit <= '9'; digit++) {
        *ordinal = *ordinal * 10 + (uint32_t)(*digit - '0');
    }
    return *digit == '\0';
}

/* The smallest page of which half is the threshold; 0: any. */
static uint64_t least_page(const capu_config *config)
{
    uint64_t page_bytes = 1;

    while (page_bytes / 2 < config->slab_threshold_bytes && page_bytes < UINT64_C(1) << 63) {
        page_bytes *= 2;
    }
    return config->slab_threshold_bytes > 0 ? page_bytes : 0;
}

static void fill_in(uint64_t *field, uint64_t measured)
{
    if (*field == 0) {
        *field = measured;
    }
}

/* A GPU is not throttled, so all rates that are given are to plan with. */
static capu_status open_cuda(const capu_config *config, struct device_options options,
                             struct device **device, char *text, size_t text_bytes)
{
    fill_in(&options.d2h_bytes_per_s, config->link_d2h_bytes_per_s);
    fill_in(&options.h2d_bytes_per_s, config->link_h2d_bytes_per_s);
    return cuda_device_create(&options, device, text, text_bytes);
}

capu_status device_choice_open(const capu_config *config, struct device **device, char *text,
                               size_t text_bytes)
{
    struct device_options options = {
        .memory_bytes = config->budget_bytes,
        .page_bytes = config->page_bytes,
        .least_page_bytes = least_page(config),
        .d2h_bytes_per_s = config->d2h_bytes_per_s,
        .h2d_bytes_per_s = config->h2d_bytes_per_s,
        .d2h_duplex_bytes_per_s = config->d2h_duplex_bytes_per_s,
        .h2d_duplex_bytes_per_s = config->h2d_duplex_bytes_per_s,
        .copy_latency_ns = config->copy_latency_ns,
        .plugin_folder = config->plugin_folder,
        .has_peers = config->peer_access != 0,
        .is_exportable = config->exportable != 0,
    };
    capu_status status;

    if (strcmp(config->device, "auto") == 0) {
        status = open_cuda(config, options, device, text, text_bytes);
        return status != CAPU_NO_DEVICE ? status
                                        : host_device_create(&options, device, text, text_bytes);
    }
    if (strcmp(config->device, "host") == 0) {
        return host_device_create(&options, device, text, text_bytes);
    }
    if (strcmp(config->device, "sim") == 0) {
        return sim_device_create(&options, device, text, text_bytes);
    }
    if (read_cuda(config->device, &options.ordinal)) {
        return open_cuda(config, options, device, text, text_bytes);
    }
    snprintf(text, text_bytes, "no device is called '%s': auto, host, sim, cuda or cuda:N",
             config->device);
    return CAPU_INVALID;
}

static uint64_t rate_for_traces(uint64_t bytes_per_s)
{
    bytes_per_s = bytes_per_s < TRACE_RATE_MIN ? TRACE_RATE_MIN : bytes_per_s;
    return bytes_per_s > TRACE_RATE_MAX ? TRACE_RATE_MAX : bytes_per_s;
}

capu_status device_choice_measure(struct device *device, const capu_config *config,
                                  struct device_link *link)
{
    struct device_link known = device->capabilities.link;
    bool is_given = known.d2h_bytes_per_s != 0 && known.h2d_bytes_per_s != 0;
    capu_status status;

    if (!is_given) {
        fill_in(&known.d2h_bytes_per_s, config->link_d2h_bytes_per_s);
        fill_in(&known.h2d_bytes_per_s, config->link_h2d_bytes_per_s);
        fill_in(&known.d2h_duplex_bytes_per_s, config->d2h_duplex_bytes_per_s);
        fill_in(&known.h2d_duplex_bytes_per_s, config->h2d_duplex_bytes_per_s);
        fill_in(&known.copy_latency_ns, config->copy_latency_ns);
    }
    status = calibration_complete(device, config->budget_bytes, &known);
    if (status == CAPU_OK && !is_given) {
        known.d2h_bytes_per_s = rate_for_traces(known.d2h_bytes_per_s);
        known.h2d_bytes_per_s = rate_for_traces(known.h2d_bytes_per_s);
    }
    *link = known;
    return status;
}

capu_status capu_link_measure(capu_config *config)
{
    char text[ERROR_TEXT_BYTES] = "";
    struct device *device = NULL;
    struct device_link link = {0};
    capu_config complete;
    capu_status status;

    if (config == NULL) {
        return CAPU_INVALID;
    }
    if (config->size != sizeof(*config)) {
        return CAPU_WRONG_STRUCT;
    }
    status = config_resolve(config, &complete, text, sizeof(text));
    if (status != CAPU_OK) {
        goto report_error;
    }
    status = device_choice_open(&complete, &device, text, sizeof(text));
    if (status != CAPU_OK) {
        goto finish_config;
    }
    if (complete.budget_bytes == 0) {
        complete.budget_bytes = device->capabilities.memory_bytes;
    }
    /* What the program or the environment says of the link is not measured. */
    if (complete.d2h_bytes_per_s == 0 || complete.h2d_bytes_per_s == 0) {
        status = device_choice_measure(device, &complete, &link);
    }
    if (status == CAPU_OK && !device->capabilities.is_simulated) {
        fill_in(&config->link_d2h_bytes_per_s, link.d2h_bytes_per_s);
        fill_in(&config->link_h2d_bytes_per_s, link.h2d_bytes_per_s);
        fill_in(&config->d2h_duplex_bytes_per_s, link.d2h_duplex_bytes_per_s);
        fill_in(&config->h2d_duplex_bytes_per_s, link.h2d_duplex_bytes_per_s);
        fill_in(&config->copy_latency_ns, link.copy_latency_ns);
    }
    device_destroy(device);
finish_config:
    config_finish(&complete);
report_error:
    if (status != CAPU_OK) {
        config_report_error(config, status, text, sizeof(text));
    }
    return status;
}

/* What a context can use of the machine: see device_choice.h. */
#include "runtime/context/device_choice.h"

#include "capuchin/private.h"
#include "device/calibration.h"
#include "policy/format/trace.h"
#include "runtime/context/config.h"
#include "runtime/context/failure.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/*
 * Host memory, as the kernel reports it.
 *
 * The limit of a control group also applies to the groups in it, so all groups from the process's
 * own up to the root count. In a container, the path that /proc/self/cgroup gives may be one of the
 * machine, which is not visible there; then only the root of the mount is left, and that is the
 * container's own group. What the group uses already is not subtracted: much of it is page cache,
 * which goes away when memory is needed.
 */

enum { PATH_BYTES = 4096 };

/* Reads a number of bytes from a file that has nothing else in it; UINT64_MAX: there is no such
   file, or no limit ("max"). */
static uint64_t read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    uint64_t bytes = UINT64_MAX;

    if (file != NULL) {
        if (fscanf(file, "%" SCNu64, &bytes) != 1) {
            bytes = UINT64_MAX;
        }
        fclose(file);
    }
    return bytes;
}

static uint64_t read_available(const char *root)
{
    char line[PATH_BYTES];
    uint64_t bytes = UINT64_MAX;
    FILE *file;

    snprintf(line, sizeof(line), "%s/proc/meminfo", root);
    file = fopen(line, "re");
    while (file != NULL && bytes == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
        uint64_t kilobytes;

        if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kilobytes) == 1) {
            bytes = kilobytes * 1024;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

/* The smallest limit from the group at `path` (which is changed) up to the root of the hierarchy
   that is mounted at `mount`. */
static uint64_t smallest_limit(const char *root, const char *mount, const char *file, char *path)
{
    char name[2 * PATH_BYTES];
    uint64_t smallest = UINT64_MAX;
    bool is_root = false;

    while (!is_root) {
        char *slash = strrchr(path, '/');
        uint64_t limit;

        is_root = slash == NULL || slash[1] == '\0';
        snprintf(name, sizeof(name), "%s%s%s/%s", root, mount, is_root ? "" : path, file);
        limit = read_limit(name);
        smallest = limit < smallest ? limit : smallest;
        if (slash != NULL) {
            slash[slash == path] = '\0'; /* "/a/b" to "/a", "/a" to "/" */
        }
    }
    return smallest;
}

/* A line of /proc/self/cgroup is NUMBER:CONTROLLERS:PATH. Version 2 has one hierarchy, without
   controllers in its line. */
static uint64_t group_limit(const char *root, char *line)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

    if (path == NULL) {
        return UINT64_MAX;
    }
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (controllers[1] == '\0') {
        return smallest_limit(root, "/sys/fs/cgroup", "memory.max", path);
    }
    return strcmp(controllers + 1, "memory") == 0
               ? smallest_limit(root, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", path)
               : UINT64_MAX;
}

uint64_t host_memory_available(const char *root)
{
    char line[PATH_BYTES];
    uint64_t bytes = read_available(root);
    FILE *file;

    snprintf(line, sizeof(line), "%s/proc/self/cgroup", root);
    file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        uint64_t limit = group_limit(root, line);

        bytes = limit < bytes ? limit : bytes;
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

uint64_t host_memory_default_budget(const char *root)
{
    uint64_t bytes = host_memory_available(root);

    return bytes == UINT64_MAX ? UINT64_MAX : bytes / 100 * HOST_MEMORY_PERCENT;
}

uint64_t capuchin_host_budget_default(uint64_t processes)
{
    uint64_t bytes = host_memory_default_budget("");

    return bytes == UINT64_MAX ? UINT64_MAX : bytes / (processes > 0 ? processes : 1);
}

/*
 * The device and its link.
 */

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
static uint64_t least_page(const struct config *config)
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
static capu_status open_cuda(const struct config *config, struct device_options options,
                             struct device **device, char *text, size_t text_bytes)
{
    fill_in(&options.d2h_bytes_per_s, config->link_d2h_bytes_per_s);
    fill_in(&options.h2d_bytes_per_s, config->link_h2d_bytes_per_s);
    return cuda_device_create(&options, device, text, text_bytes);
}

capu_status device_choice_open(const struct config *config, struct device **device, char *text,
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

capu_status device_choice_measure(struct device *device, const struct config *config,
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

static void set_measured(capu_config *config, const char *name, uint64_t given, uint64_t measured)
{
    if (given == 0) {
        config_set_number(config, name, measured);
    }
}

capu_status capuchin_link_measure(capu_config *config)
{
    char text[ERROR_TEXT_BYTES] = "";
    struct device *device = NULL;
    struct device_link link = {0};
    struct config complete;
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
        set_measured(config, "link_d2h", complete.link_d2h_bytes_per_s, link.d2h_bytes_per_s);
        set_measured(config, "link_h2d", complete.link_h2d_bytes_per_s, link.h2d_bytes_per_s);
        set_measured(config, "d2h_duplex", complete.d2h_duplex_bytes_per_s,
                     link.d2h_duplex_bytes_per_s);
        set_measured(config, "h2d_duplex", complete.h2d_duplex_bytes_per_s,
                     link.h2d_duplex_bytes_per_s);
        set_measured(config, "copy_latency", complete.copy_latency_ns, link.copy_latency_ns);
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

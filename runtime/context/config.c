/*
 * Reading configs, see config.h.
 *
 * A value comes from the program, else from the environment, else from the default. Zero means
 * "not set" in every field, so one table of fields and offsets serves all of them; it repeats what
 * capuchin/context.h documents. Mistakes are errors, never ignored: a run that silently lacks its
 * budget fails later, in a place that does not lead back here.
 */
#include "runtime/context/config.h"

#include "base/environment.h"
#include "base/files.h"
#include "capuchin/status.h"
#include "policy/search/planner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/*
 * The names of files in a program of several processes: each writes its own, so the name says which
 * process it is.
 */

enum { NUMBER_BYTES = 24 };

/* Devices and pipes have no contents that another rank could replace. */
static bool is_shareable(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

/* Writes the name. False: it has a percent sign that means nothing. */
static bool expand_rank(const char *from, uint64_t rank, char *to, bool *has_rank)
{
    while (*from != '\0') {
        if (*from != '%') {
            *to++ = *from++;
            continue;
        }
        if (from[1] == 'r') {
            to += snprintf(to, NUMBER_BYTES, "%" PRIu64, rank);
            *has_rank = true;
        } else if (from[1] == '%') {
            *to++ = '%';
        } else {
            return false;
        }
        from += 2;
    }
    *to = '\0';
    return true;
}

/* Replaces `%r` in the malloc'd *path by the rank and `%%` by a percent sign. After an error *path
   is unchanged, and `text` names it: INVALID (another character follows a percent sign; there are
   several ranks, and a file rather than a device would have the same name for all),
   NO_HOST_MEMORY. */
static capu_status rank_path_expand(char **path, uint64_t rank, uint64_t rank_count, char *text,
                                    size_t text_bytes)
{
    bool has_rank = false;
    size_t marks = 0;
    char *made;

    for (const char *at = strchr(*path, '%'); at != NULL; at = strchr(at + 1, '%')) {
        marks++;
    }
    made = malloc(strlen(*path) + marks * NUMBER_BYTES + 1);
    if (made == NULL) {
        snprintf(text, text_bytes, "no memory for the name of a file");
        return CAPU_NO_HOST_MEMORY;
    }
    if (!expand_rank(*path, rank, made, &has_rank)) {
        snprintf(
            text, text_bytes,
            "'%s': in the name of a file %%r is the rank and %%%% a percent sign; nothing else "
            "may follow one",
            *path);
        free(made);
        return CAPU_INVALID;
    }
    if (rank_count > 1 && !has_rank && !is_shareable(made)) {
        snprintf(text, text_bytes,
                 "'%s': %" PRIu64 " ranks would write this file; put %%r, which is the rank, into "
                 "its name",
                 *path, rank_count);
        free(made);
        return CAPU_INVALID;
    }
    free(*path);
    *path = made;
    return CAPU_OK;
}

/*
 * Combining the fields, the environment and the defaults.
 */

extern char **environ; /* POSIX leaves the declaration to the program */

enum field_kind {
    FIELD_TEXT,
    FIELD_FILE,   /* a text: the path of a file to write */
    FIELD_FOLDER, /* a text: the path of a folder to read */
    FIELD_MODE,
    FIELD_EFFORT,
    FIELD_SWITCH,
    FIELD_SIZE,
    FIELD_BUDGET, /* a size above 0: 0 would mean the default, which is much memory */
    FIELD_COUNT
};

struct field {
    const char *name;
    const char *variable;
    enum field_kind kind;
    size_t offset;
};

#define FIELD(name_, variable_, kind_)                         \
    {                                                          \
#name_, variable_, kind_, offsetof(capu_config, name_) \
    }

static const struct field fields[] = {
    FIELD(device, "CAPUCHIN_DEVICE", FIELD_TEXT),
    FIELD(mode, "CAPUCHIN_MODE", FIELD_MODE),
    FIELD(strict, "CAPUCHIN_STRICT", FIELD_SWITCH),
    FIELD(clear_fresh, "CAPUCHIN_CLEAR_FRESH", FIELD_SWITCH),
    FIELD(budget_bytes, "CAPUCHIN_BUDGET", FIELD_BUDGET),
    FIELD(host_budget_bytes, "CAPUCHIN_HOST_BUDGET", FIELD_BUDGET),
    FIELD(page_bytes, "CAPUCHIN_PAGE", FIELD_SIZE),
    FIELD(slab_threshold_bytes, "CAPUCHIN_SLAB_THRESHOLD", FIELD_SIZE),
    FIELD(d2h_bytes_per_s, "CAPUCHIN_D2H", FIELD_SIZE),
    FIELD(h2d_bytes_per_s, "CAPUCHIN_H2D", FIELD_SIZE),
    FIELD(copy_latency_ns, "CAPUCHIN_COPY_LATENCY", FIELD_COUNT),
    FIELD(report_path, "CAPUCHIN_REPORT", FIELD_FILE),
    FIELD(trace_path, "CAPUCHIN_TRACE", FIELD_FILE),
    FIELD(trace_iteration, "CAPUCHIN_TRACE_ITERATION", FIELD_COUNT),
    FIELD(planner, "CAPUCHIN_PLANNER", FIELD_TEXT),
    FIELD(effort, "CAPUCHIN_EFFORT", FIELD_EFFORT),
    FIELD(wait_for_plan, "CAPUCHIN_WAIT_FOR_PLAN", FIELD_SWITCH),
    FIELD(plan_path, "CAPUCHIN_PLAN", FIELD_FILE),
    FIELD(sample_every, "CAPUCHIN_SAMPLE_EVERY", FIELD_COUNT),
    FIELD(plan_memory_bytes, "CAPUCHIN_PLAN_MEMORY", FIELD_SIZE),
    FIELD(keep_contents, "CAPUCHIN_KEEP_CONTENTS", FIELD_SWITCH),
    FIELD(top, "CAPUCHIN_TOP", FIELD_SWITCH),
    FIELD(timeline, "CAPUCHIN_TIMELINE", FIELD_SWITCH),
    FIELD(plugin_folder, "CAPUCHIN_PLUGIN_FOLDER", FIELD_FOLDER),
    FIELD(peer_access, "CAPUCHIN_PEER_ACCESS", FIELD_SWITCH),
    FIELD(exportable, "CAPUCHIN_EXPORTABLE", FIELD_SWITCH),
    FIELD(rank, "CAPUCHIN_RANK", FIELD_COUNT),
    FIELD(rank_count, "CAPUCHIN_RANKS", FIELD_COUNT),
    FIELD(local_rank_count, "CAPUCHIN_LOCAL_RANKS", FIELD_COUNT),
    FIELD(link_d2h_bytes_per_s, "CAPUCHIN_LINK_D2H", FIELD_SIZE),
    FIELD(link_h2d_bytes_per_s, "CAPUCHIN_LINK_H2D", FIELD_SIZE),
    FIELD(d2h_duplex_bytes_per_s, "CAPUCHIN_D2H_DUPLEX", FIELD_SIZE),
    FIELD(h2d_duplex_bytes_per_s, "CAPUCHIN_H2D_DUPLEX", FIELD_SIZE),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* How much of a text that is no file's path an error text quotes. */
enum { QUOTED_BYTES = 40 };

static void *field_of(capu_config *config, const struct field *field)
{
    return (unsigned char *)config + field->offset;
}

/* Reads one of three names; the value counts from 1, since 0 means "not set". */
static bool read_name(const char *const names[3], const char *text, uint32_t *value)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *value = i + 1;
            return true;
        }
    }
    return false;
}

static bool read_switch(const char *text, uint32_t *value)
{
    if ((text[0] != '0' && text[0] != '1') || text[1] != '\0') {
        return false;
    }
    *value = text[0] == '1';
    return true;
}

static bool read_count(const char *text, uint64_t *value)
{
    char *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0) {
        return false;
    }
    *value = number;
    return true;
}

/* What the text of a field must be, for the error message. */
static const char *wanted_text(enum field_kind kind)
{
    switch (kind) {
    case FIELD_MODE:
        return "off, passive or guided";
    case FIELD_EFFORT:
        return "quick, default or best";
    case FIELD_SWITCH:
        return "0 or 1";
    case FIELD_SIZE:
        return "a size, such as 4G, 512 MiB or 4e9";
    case FIELD_BUDGET:
        return "a size above 0, such as 4G, 512 MiB or 4e9";
    default:
        return "a whole number";
    }
}

/* Like capu_parse_size, but rejects a nonzero size that rounds to 0, such as "0.1": 0 means the
   default, and the default budget is the whole device. */
static bool read_size(const char *text, uint64_t *value)
{
    uint64_t bytes;

    if (capu_parse_size(text, &bytes) != CAPU_OK ||
        (bytes == 0 && text[strspn(text, "0.")] >= '1' && text[strspn(text, "0.")] <= '9')) {
        return false;
    }
    *value = bytes;
    return true;
}

/* Sets one numeric field from its variable. False if the text does not suit the field. */
static bool read_number(capu_config *config, const struct field *field, const char *text)
{
    void *value = field_of(config, field);

    static const char *const modes[3] = {"off", "passive", "guided"};
    static const char *const efforts[3] = {"quick", "default", "best"};

    switch (field->kind) {
    case FIELD_MODE:
        return read_name(modes, text, value);
    case FIELD_EFFORT:
        return read_name(efforts, text, value);
    case FIELD_SWITCH:
        return read_switch(text, value);
    case FIELD_SIZE:
        return read_size(text, value);
    case FIELD_BUDGET:
        return read_size(text, value) && *(uint64_t *)value > 0;
    default:
        return read_count(text, value);
    }
}

static bool is_unset(capu_config *config, const struct field *field)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_FILE:
    case FIELD_FOLDER:
        return *(const char **)field_of(config, field) == NULL;
    case FIELD_MODE:
    case FIELD_EFFORT:
    case FIELD_SWITCH:
        return *(uint32_t *)field_of(config, field) == 0;
    default:
        return *(uint64_t *)field_of(config, field) == 0;
    }
}

static bool is_string(const struct field *field)
{
    return field->kind == FIELD_TEXT || field->kind == FIELD_FILE || field->kind == FIELD_FOLDER;
}

/* The variable's value if the field takes it, NULL if not: the program has set the field, or there
   is no such variable. An empty one does not count. */
static const char *value_for(capu_config *config, const struct field *field)
{
    bool is_path = field->kind == FIELD_FILE || field->kind == FIELD_FOLDER;
    const char *value = is_path ? environment_path(field->variable) : getenv(field->variable);

    return value != NULL && value[0] != '\0' && is_unset(config, field) ? value : NULL;
}

/* Sets a field from the environment if the program did not set it. */
static capu_status read_environment(capu_config *config, const struct field *field, char *text,
                                    size_t text_bytes)
{
    const char *value = value_for(config, field);

    if (value == NULL) {
        return CAPU_OK;
    }
    if (is_string(field)) {
        *(const char **)field_of(config, field) = value;
        return CAPU_OK;
    }
    if (!read_number(config, field, value)) {
        snprintf(text, text_bytes, "%s='%s' is not %s", field->variable, value,
                 wanted_text(field->kind));
        return CAPU_INVALID;
    }
    return CAPU_OK;
}

/*
 * Rejects variables with the library's prefix that belong to no field. If the library
 * ignored CAPUCHIN_BUGET=4GiB, the run would have no budget and would fail later, somewhere else.
 */
static capu_status check_variables(char *text, size_t text_bytes)
{
    static const char prefix[] = "CAPUCHIN_";

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");
        size_t i = 0;

        if (strncmp(*entry, prefix, sizeof(prefix) - 1) != 0 || (*entry)[length] == '\0' ||
            (*entry)[length + 1] == '\0') {
            continue;
        }
        while (i < FIELDS && (strlen(fields[i].variable) != length ||
                              strncmp(fields[i].variable, *entry, length) != 0)) {
            i++;
        }
        if (i == FIELDS) {
            snprintf(text, text_bytes,
                     "%.*s: the library knows no environment variable of this name; correct or "
                     "unset it",
                     length < 100 ? (int)length : 100, *entry);
            return CAPU_INVALID;
        }
    }
    return CAPU_OK;
}

/* Writes an error text that lists the planners. */
static void list_planners(const char *wrong, char *text, size_t text_bytes)
{
    size_t used =
        (size_t)snprintf(text, text_bytes,
                         "config: there is no planner '%.*s'; choose one of:", QUOTED_BYTES, wrong);

    for (const struct planner *planner = planners; planner->name != NULL && used < text_bytes;
         planner++) {
        used += (size_t)snprintf(text + used, text_bytes - used, " %s", planner->name);
    }
}

static capu_status check_values(const capu_config *config, char *text, size_t text_bytes)
{
    if (config->reserved != 0) {
        snprintf(text, text_bytes, "config: reserved is %u; it must be 0", config->reserved);
        return CAPU_INVALID;
    }
    if (config->mode > CAPU_MODE_GUIDED || config->strict > 1 || config->clear_fresh > 1) {
        snprintf(text, text_bytes,
                 "config: mode %u, strict %u or clear_fresh %u is out of range: at most 3, 1 and 1",
                 config->mode, config->strict, config->clear_fresh);
        return CAPU_INVALID;
    }
    if (config->effort > CAPU_EFFORT_BEST || config->wait_for_plan > 1 ||
        config->keep_contents > 1) {
        snprintf(text, text_bytes,
                 "config: effort %u, wait_for_plan %u or keep_contents %u is out of range: at most "
                 "3, 1 and 1",
                 config->effort, config->wait_for_plan, config->keep_contents);
        return CAPU_INVALID;
    }
    if (config->top > 1) {
        snprintf(text, text_bytes, "config: top %u is out of range: at most 1", config->top);
        return CAPU_INVALID;
    }
    if (config->peer_access > 1 || config->exportable > 1) {
        snprintf(text, text_bytes,
                 "config: peer_access %u or exportable %u is out of range: at most 1",
                 config->peer_access, config->exportable);
        return CAPU_INVALID;
    }
    if (config->timeline > 1) {
        snprintf(text, text_bytes, "config: timeline %u is out of range: at most 1",
                 config->timeline);
        return CAPU_INVALID;
    }
    if (config->timeline == 1 && config->report_path == NULL) {
        snprintf(text, text_bytes,
                 "config: timeline (CAPUCHIN_TIMELINE) needs report_path (CAPUCHIN_REPORT%s): the "
                 "timelines are lines of that file",
                 environment_is_secure() ? ", which a set-user-ID program ignores" : "");
        return CAPU_INVALID;
    }
    if (config->rank_count > 0 ? config->rank >= config->rank_count : config->rank > 0) {
        snprintf(text, text_bytes, "config: rank %llu needs a rank_count above it, not %llu",
                 (unsigned long long)config->rank, (unsigned long long)config->rank_count);
        return CAPU_INVALID;
    }
    if (config->planner != NULL && planner_find(config->planner) == NULL) {
        list_planners(config->planner, text, text_bytes);
        return CAPU_INVALID;
    }
    if (config->page_bytes != 0 && (config->page_bytes & (config->page_bytes - 1)) != 0) {
        snprintf(text, text_bytes, "config: page_bytes %llu is not a power of two",
                 (unsigned long long)config->page_bytes);
        return CAPU_INVALID;
    }
    return CAPU_OK;
}

/* Replaces `%r` by the rank in the names of files. Pre: the strings belong to the config. */
static capu_status name_files(capu_config *config, char *text, size_t text_bytes)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < FIELDS && status == CAPU_OK; i++) {
        if (fields[i].kind == FIELD_FILE && !is_unset(config, &fields[i])) {
            status = rank_path_expand(field_of(config, &fields[i]), config->rank,
                                      config->rank_count, text, text_bytes);
        }
    }
    return status;
}

/* Rejects two results that would overwrite each other. */
static capu_status check_written_files(capu_config *config, char *text, size_t text_bytes)
{
    const struct field *written[FIELDS];
    size_t count = 0;

    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].kind == FIELD_FILE && !is_unset(config, &fields[i])) {
            written[count++] = &fields[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            const char *path = *(const char **)field_of(config, written[k]);

            if (files_are_same(*(const char **)field_of(config, written[i]), path)) {
                snprintf(text, text_bytes, "config: %s (%s) and %s (%s) name the same file, '%s'",
                         written[i]->name, written[i]->variable, written[k]->name,
                         written[k]->variable, path);
                return CAPU_INVALID;
            }
        }
    }
    return CAPU_OK;
}

/* Replaces the strings with copies that belong to the config. */
static capu_status copy_strings(capu_config *config)
{
    bool failed = false;

    for (size_t i = 0; i < FIELDS; i++) {
        const char **string = field_of(config, &fields[i]);

        if (is_string(&fields[i]) && *string != NULL) {
            *string = failed ? NULL : strdup(*string);
            failed = failed || *string == NULL;
        }
    }
    if (failed) {
        config_finish(config);
        return CAPU_NO_HOST_MEMORY;
    }
    return CAPU_OK;
}

capu_status config_resolve(const capu_config *from, capu_config *config, char *text,
                           size_t text_bytes)
{
    capu_config own = CAPU_CONFIG_INIT;
    capu_status status = CAPU_OK;

    if (from != NULL && !struct_read(&own, sizeof(own), from, from->size)) {
        snprintf(text, text_bytes,
                 "a capu_config of %zu bytes; this library's has %zu: start it with "
                 "CAPU_CONFIG_INIT",
                 from->size, sizeof(own));
        return CAPU_WRONG_STRUCT;
    }
    status = check_variables(text, text_bytes);
    for (size_t i = 0; i < FIELDS && status == CAPU_OK; i++) {
        status = read_environment(&own, &fields[i], text, text_bytes);
    }
    if (status == CAPU_OK) {
        status = check_values(&own, text, text_bytes);
    }
    if (status != CAPU_OK) {
        return status;
    }
    if (own.mode == CAPU_MODE_DEFAULT) {
        own.mode = CAPU_MODE_PASSIVE;
    }
    if (own.planner == NULL) {
        own.planner = planners[0].name;
    }
    if (own.effort == CAPU_EFFORT_UNSET) {
        own.effort = CAPU_EFFORT_DEFAULT;
    }
    if (own.device == NULL) {
        own.device = "auto";
    }
    if (own.trace_iteration == 0) {
        own.trace_iteration = 2;
    }
    if (own.sample_every == 0) {
        own.sample_every = 64;
    }
    if (own.plan_memory_bytes == 0) {
        own.plan_memory_bytes = UINT64_C(64) << 20;
    }
    own.error = NULL;
    own.error_bytes = 0;
    status = copy_strings(&own);
    if (status != CAPU_OK) {
        snprintf(text, text_bytes, "no memory for the config");
        return status;
    }
    status = name_files(&own, text, text_bytes);
    if (status == CAPU_OK) {
        status = check_written_files(&own, text, text_bytes);
    }
    if (status != CAPU_OK) {
        config_finish(&own);
        return status;
    }
    *config = own;
    return CAPU_OK;
}

/* Whether the text contains a word that begins like this one. */
static bool has_word(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if (at == text || at[-1] == ' ' || at[-1] == '(') {
            return true;
        }
    }
    return false;
}

/* Whether an error text is about a field. It quotes texts or begins with them ("cuda:1: ..."), and
   names numbers by their field, with or without "_bytes" ("page_bytes 3", "a budget of"). */
static bool is_about(const char *text, const struct field *field, const char *value)
{
    static const char unit[] = "_bytes";
    char word[QUOTED_BYTES + 2];
    size_t length = strlen(value);

    if (field->kind == FIELD_FILE) {
        length = strcspn(value, "%"); /* the text has the rank there */
    }
    if (is_string(field)) {
        snprintf(word, sizeof(word), "'%.*s",
                 length < QUOTED_BYTES ? (int)length : (int)QUOTED_BYTES, value);
        return length > 0 && (strstr(text, word) != NULL || strncmp(text, value, length) == 0);
    }
    length = (size_t)snprintf(word, sizeof(word), "%s", field->name);
    if (length > strlen(unit) && strcmp(word + length - strlen(unit), unit) == 0) {
        word[length - strlen(unit)] = '\0';
    }
    return has_word(text, word);
}

/* Appends which environment variables gave the values that an error is about, unless its text names
   them already. */
static void name_variables(const capu_config *from, char *text, size_t text_bytes)
{
    const char *between = "; from the environment: ";
    capu_config own = CAPU_CONFIG_INIT;
    size_t used = strlen(text);

    if (from != NULL && !struct_read(&own, sizeof(own), from, from->size)) {
        return;
    }
    for (size_t i = 0; i < FIELDS && used < text_bytes; i++) {
        const char *value = value_for(&own, &fields[i]);

        if (value != NULL && strstr(text, fields[i].variable) == NULL &&
            is_about(text, &fields[i], value)) {
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", between,
                                     fields[i].variable);
            between = ", ";
        }
    }
}

void config_report_error(const capu_config *from, capu_status status, char *text, size_t text_bytes)
{
    name_variables(from, text, text_bytes);
    if (from != NULL && from->size >= offsetof(capu_config, error_bytes) + sizeof(size_t) &&
        from->error != NULL && from->error_bytes > 0) {
        snprintf(from->error, from->error_bytes, "%s",
                 text[0] != '\0' ? text : capu_status_text(status));
    }
}

void config_finish(capu_config *config)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (is_string(&fields[i])) {
            free(*(char **)field_of(config, &fields[i]));
        }
    }
    *config = (capu_config){0};
}

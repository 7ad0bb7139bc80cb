/*
 * Reading configs, see config.h.
 *
 * A value comes from the program, else from the environment, else from the default. Zero means
 * "not set" in every field, so one table of fields and offsets serves all of them; it repeats what
 * docs/configuration.md says. Mistakes are errors, never ignored: a run that silently lacks its
 * budget fails later, in a place that does not lead back here.
 */
#include "runtime/context/config.h"

#include "base/assert.h"
#include "base/environment.h"
#include "base/files.h"
#include "capuchin/status.h"
#include "policy/search/planner.h"
#include "runtime/context/failure.h"

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
    const char *name; /* in error texts */
    const char *variable;
    enum field_kind kind;
    size_t offset;        /* in struct config */
    size_t public_offset; /* in capu_config; IS_SETTING: it is one of `settings` there */
};

#define IS_SETTING SIZE_MAX
#define FIELD(name_, variable_, kind_)                                                         \
    {                                                                                          \
#name_, variable_, kind_, offsetof(struct config, name_), offsetof(capu_config, name_) \
    }
#define SETTING(name_, variable_, kind_)                                     \
    {                                                                        \
#name_, variable_, kind_, offsetof(struct config, name_), IS_SETTING \
    }

/* The settings come first: the place of one in the table is its place in capu_config. */
static const struct field fields[] = {
    SETTING(clear_fresh, "CAPUCHIN_CLEAR_FRESH", FIELD_SWITCH),
    SETTING(slab_threshold_bytes, "CAPUCHIN_SLAB_THRESHOLD", FIELD_SIZE),
    SETTING(d2h_bytes_per_s, "CAPUCHIN_D2H", FIELD_SIZE),
    SETTING(h2d_bytes_per_s, "CAPUCHIN_H2D", FIELD_SIZE),
    SETTING(copy_latency_ns, "CAPUCHIN_COPY_LATENCY", FIELD_COUNT),
    SETTING(trace_iteration, "CAPUCHIN_TRACE_ITERATION", FIELD_COUNT),
    SETTING(planner, "CAPUCHIN_PLANNER", FIELD_TEXT),
    SETTING(effort, "CAPUCHIN_EFFORT", FIELD_EFFORT),
    SETTING(plan_path, "CAPUCHIN_PLAN", FIELD_FILE),
    SETTING(sample_every, "CAPUCHIN_SAMPLE_EVERY", FIELD_COUNT),
    SETTING(plan_memory_bytes, "CAPUCHIN_PLAN_MEMORY", FIELD_SIZE),
    SETTING(keep_contents, "CAPUCHIN_KEEP_CONTENTS", FIELD_SWITCH),
    SETTING(top, "CAPUCHIN_TOP", FIELD_SWITCH),
    SETTING(timeline, "CAPUCHIN_TIMELINE", FIELD_SWITCH),
    SETTING(plugin_folder, "CAPUCHIN_PLUGIN_FOLDER", FIELD_FOLDER),
    SETTING(peer_access, "CAPUCHIN_PEER_ACCESS", FIELD_SWITCH),
    SETTING(exportable, "CAPUCHIN_EXPORTABLE", FIELD_SWITCH),
    SETTING(rank, "CAPUCHIN_RANK", FIELD_COUNT),
    SETTING(rank_count, "CAPUCHIN_RANKS", FIELD_COUNT),
    SETTING(local_rank_count, "CAPUCHIN_LOCAL_RANKS", FIELD_COUNT),
    SETTING(link_d2h_bytes_per_s, "CAPUCHIN_LINK_D2H", FIELD_SIZE),
    SETTING(link_h2d_bytes_per_s, "CAPUCHIN_LINK_H2D", FIELD_SIZE),
    SETTING(d2h_duplex_bytes_per_s, "CAPUCHIN_D2H_DUPLEX", FIELD_SIZE),
    SETTING(h2d_duplex_bytes_per_s, "CAPUCHIN_H2D_DUPLEX", FIELD_SIZE),
    FIELD(device, "CAPUCHIN_DEVICE", FIELD_TEXT),
    FIELD(mode, "CAPUCHIN_MODE", FIELD_MODE),
    FIELD(wait_for_plan, "CAPUCHIN_WAIT_FOR_PLAN", FIELD_SWITCH),
    FIELD(strict, "CAPUCHIN_STRICT", FIELD_SWITCH),
    FIELD(budget_bytes, "CAPUCHIN_BUDGET", FIELD_BUDGET),
    FIELD(host_budget_bytes, "CAPUCHIN_HOST_BUDGET", FIELD_BUDGET),
    FIELD(page_bytes, "CAPUCHIN_PAGE", FIELD_SIZE),
    FIELD(report_path, "CAPUCHIN_REPORT", FIELD_FILE),
    FIELD(trace_path, "CAPUCHIN_TRACE", FIELD_FILE),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

_Static_assert(FIELDS <= 64, "capu_config.given has a bit for each");

static const char prefix[] = "CAPUCHIN_";

/* How much of a text that is no file's path an error text quotes. */
enum { QUOTED_BYTES = 40 };

static void *field_of(struct config *config, const struct field *field)
{
    return (unsigned char *)config + field->offset;
}

static bool is_string(const struct field *field)
{
    return field->kind == FIELD_TEXT || field->kind == FIELD_FILE || field->kind == FIELD_FOLDER;
}

static bool is_switch(const struct field *field)
{
    return field->kind == FIELD_MODE || field->kind == FIELD_EFFORT || field->kind == FIELD_SWITCH;
}

/* Every value as a number, strings as their addresses. */
static uint64_t value_at(const void *place, const struct field *field)
{
    return is_string(field)   ? (uintptr_t) * (const char *const *)place
           : is_switch(field) ? *(const uint32_t *)place
                              : *(const uint64_t *)place;
}

static void set_at(void *place, const struct field *field, uint64_t value)
{
    if (is_string(field)) {
        *(const char **)place = (const char *)(uintptr_t)value;
    } else if (is_switch(field)) {
        *(uint32_t *)place = (uint32_t)value;
    } else {
        *(uint64_t *)place = value;
    }
}

static size_t number_of(const struct field *field)
{
    return (size_t)(field - fields);
}

/* What the program has set: a field that is not zero, or anything by its name. False: nothing. */
static bool program_value(const capu_config *config, const struct field *field, uint64_t *value)
{
    bool is_given = (config->given >> number_of(field) & 1) != 0;

    if (field->public_offset == IS_SETTING) {
        *value = config->settings[number_of(field)];
        return is_given;
    }
    *value = value_at((const unsigned char *)config + field->public_offset, field);
    return is_given || *value != 0;
}

static void set_program_value(capu_config *config, const struct field *field, bool is_given,
                              uint64_t value)
{
    uint64_t bit = UINT64_C(1) << number_of(field);

    value = is_given ? value : 0;
    config->given = is_given ? config->given | bit : config->given & ~bit;
    if (field->public_offset == IS_SETTING) {
        ASSERT(number_of(field) < sizeof(config->settings) / sizeof(config->settings[0]));
        config->settings[number_of(field)] = value;
    } else {
        set_at((unsigned char *)config + field->public_offset, field, value);
    }
}

static const char *const modes[3] = {"off", "passive", "guided"};

/* Reads one of three names; the value counts from 1, since 0 means "not set". */
static bool read_name(const char *const *names, const char *text, uint64_t *value)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *value = i + 1;
            return true;
        }
    }
    return false;
}

static bool read_switch(const char *text, uint64_t *value)
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

    if (read_count(text, &bytes) && bytes == UINT64_MAX) {
        *value = bytes; /* no limit, as capu_config_get writes it */
        return true;
    }
    if (capu_parse_size(text, &bytes) != CAPU_OK ||
        (bytes == 0 && text[strspn(text, "0.")] >= '1' && text[strspn(text, "0.")] <= '9')) {
        return false;
    }
    *value = bytes;
    return true;
}

/* Reads a value of any kind; a string is borrowed. False if the text does not suit the field. */
static bool read_value(const struct field *field, const char *text, uint64_t *value)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_FILE:
    case FIELD_FOLDER:
        *value = (uintptr_t)text;
        return true;
    case FIELD_MODE:
        return read_name(modes, text, value);
    case FIELD_EFFORT:
        return read_name(plan_effort_names, text, value);
    case FIELD_SWITCH:
        return read_switch(text, value);
    case FIELD_SIZE:
        return read_size(text, value);
    case FIELD_BUDGET:
        return read_size(text, value) && *value > 0;
    default:
        return read_count(text, value);
    }
}

/* The variable's value; NULL: there is none. An empty one does not count. */
static const char *variable_value(const struct field *field)
{
    bool is_path = field->kind == FIELD_FILE || field->kind == FIELD_FOLDER;
    const char *value = is_path ? environment_path(field->variable) : getenv(field->variable);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Sets a field from the program, else from the environment. */
static capu_status read_field(const capu_config *from, const struct field *field,
                              struct config *config, char *text, size_t text_bytes)
{
    uint64_t value = 0;
    const char *variable;

    if (!program_value(from, field, &value)) {
        variable = variable_value(field);
        if (variable != NULL && !read_value(field, variable, &value)) {
            snprintf(text, text_bytes, "%s='%s' is not %s", field->variable, variable,
                     wanted_text(field->kind));
            return CAPU_INVALID;
        }
    }
    set_at(field_of(config, field), field, value);
    return CAPU_OK;
}

/*
 * Rejects variables with the library's prefix that belong to no field. If the library
 * ignored CAPUCHIN_BUGET=4GiB, the run would have no budget and would fail later, somewhere else.
 */
static capu_status check_variables(char *text, size_t text_bytes)
{
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

static capu_status check_values(const struct config *config, char *text, size_t text_bytes)
{
    if (config->mode > CAPU_MODE_GUIDED || config->strict > 1 || config->wait_for_plan > 1) {
        snprintf(text, text_bytes,
                 "config: mode %u, strict %u or wait_for_plan %u is out of range: at most 3, 1 and "
                 "1",
                 config->mode, config->strict, config->wait_for_plan);
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
        snprintf(text, text_bytes, "config: rank %llu needs ranks above it, not %llu",
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
static capu_status name_files(struct config *config, char *text, size_t text_bytes)
{
    capu_status status = CAPU_OK;

    for (size_t i = 0; i < FIELDS && status == CAPU_OK; i++) {
        if (fields[i].kind == FIELD_FILE &&
            value_at(field_of(config, &fields[i]), &fields[i]) != 0) {
            status = rank_path_expand(field_of(config, &fields[i]), config->rank,
                                      config->rank_count, text, text_bytes);
        }
    }
    return status;
}

/* Rejects two results that would overwrite each other. */
static capu_status check_written_files(struct config *config, char *text, size_t text_bytes)
{
    const struct field *written[FIELDS];
    size_t count = 0;

    for (size_t i = 0; i < FIELDS; i++) {
        if (fields[i].kind == FIELD_FILE &&
            value_at(field_of(config, &fields[i]), &fields[i]) != 0) {
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
static capu_status copy_strings(struct config *config)
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

/* Copies the caller's config, whatever its version; NULL: nothing is set. */
static capu_status read_program(const capu_config *from, capu_config *own, char *text,
                                size_t text_bytes)
{
    *own = (capu_config)CAPU_CONFIG_INIT;
    if (from != NULL && !struct_read(own, sizeof(*own), from, from->size)) {
        snprintf(text, text_bytes,
                 "a capu_config of %zu bytes; this library's has %zu: start it with "
                 "CAPU_CONFIG_INIT",
                 from->size, sizeof(*own));
        return CAPU_WRONG_STRUCT;
    }
    if (own->reserved != 0) {
        snprintf(text, text_bytes, "config: reserved is %u; it must be 0", own->reserved);
        return CAPU_INVALID;
    }
    return CAPU_OK;
}

capu_status config_resolve(const capu_config *from, struct config *config, char *text,
                           size_t text_bytes)
{
    struct config own = {0};
    capu_config program;
    capu_status status = read_program(from, &program, text, text_bytes);

    if (status == CAPU_OK) {
        status = check_variables(text, text_bytes);
    }
    for (size_t i = 0; i < FIELDS && status == CAPU_OK; i++) {
        status = read_field(&program, &fields[i], &own, text, text_bytes);
    }
    if (status == CAPU_OK) {
        own.stream = program.stream;
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
    if (own.effort == EFFORT_UNSET) {
        own.effort = EFFORT_DEFAULT;
    }
    if (own.device == NULL) {
        own.device = "auto";
    }
    if (own.local_rank_count == 0) {
        own.local_rank_count = 1;
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
    char ignored[1];
    capu_config own;
    size_t used = strlen(text);

    if (read_program(from, &own, ignored, sizeof(ignored)) != CAPU_OK) {
        return;
    }
    for (size_t i = 0; i < FIELDS && used < text_bytes; i++) {
        const char *value = variable_value(&fields[i]);
        uint64_t given;

        if (value != NULL && !program_value(&own, &fields[i], &given) &&
            strstr(text, fields[i].variable) == NULL && is_about(text, &fields[i], value)) {
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", between,
                                     fields[i].variable);
            between = ", ";
        }
    }
}

/* Copies a text to the buffer of a config, if that reaches so far and has one. */
static void write_error(const capu_config *config, const char *text)
{
    if (config->size >= offsetof(capu_config, error_bytes) + sizeof(size_t) &&
        config->error != NULL && config->error_bytes > 0) {
        snprintf(config->error, config->error_bytes, "%s", text);
    }
}

void config_report_error(const capu_config *from, capu_status status, char *text, size_t text_bytes)
{
    name_variables(from, text, text_bytes);
    if (from != NULL) {
        write_error(from, text[0] != '\0' ? text : capu_status_text(status));
    }
}

void config_show(const struct config *config, capu_config *shown)
{
    *shown = (capu_config)CAPU_CONFIG_INIT;
    for (size_t i = 0; i < FIELDS; i++) {
        uint64_t value = value_at((const unsigned char *)config + fields[i].offset, &fields[i]);

        set_program_value(shown, &fields[i], !is_string(&fields[i]) || value != 0, value);
    }
    shown->stream = config->stream;
}

/*
 * Setting and asking by name.
 */

/* Whether it is the name of the variable, without the prefix and in lower case. In every locale. */
static bool is_named(const struct field *field, const char *name)
{
    const char *at = field->variable + sizeof(prefix) - 1;

    while (*at != '\0' && *name == (*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at)) {
        at++;
        name++;
    }
    return *at == '\0' && *name == '\0';
}

/* NULL: there is none. */
static const struct field *field_named(const char *name)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (is_named(&fields[i], name)) {
            return &fields[i];
        }
    }
    return NULL;
}

capu_status capu_config_set(capu_config *config, const char *name, const char *value)
{
    char text[ERROR_TEXT_BYTES];
    const struct field *field;
    uint64_t number = 0;

    if (config == NULL) {
        return CAPU_INVALID;
    }
    if (config->size < sizeof(*config)) {
        snprintf(text, sizeof(text), "a capu_config of %zu bytes; this library's has %zu",
                 config->size, sizeof(*config));
        write_error(config, text);
        return CAPU_WRONG_STRUCT;
    }
    field = name != NULL ? field_named(name) : NULL;
    if (field == NULL) {
        snprintf(text, sizeof(text), "config: there is no setting '%.*s'", QUOTED_BYTES,
                 name != NULL ? name : "");
        write_error(config, text);
        return CAPU_INVALID;
    }
    if (value == NULL || value[0] == '\0') {
        set_program_value(config, field, false, 0);
        return CAPU_OK;
    }
    if (!read_value(field, value, &number)) {
        snprintf(text, sizeof(text), "config: %s='%.*s' is not %s", name, QUOTED_BYTES, value,
                 wanted_text(field->kind));
        write_error(config, text);
        return CAPU_INVALID;
    }
    set_program_value(config, field, true, number);
    return CAPU_OK;
}

capu_status capu_config_get(const capu_config *config, const char *name, char *value, size_t bytes)
{
    const struct field *field;
    char digits[NUMBER_BYTES];
    const char *text = "";
    uint64_t number = 0;

    if (config == NULL || name == NULL || value == NULL) {
        return CAPU_INVALID;
    }
    if (config->size < sizeof(*config)) {
        return CAPU_WRONG_STRUCT;
    }
    field = field_named(name);
    if (field == NULL) {
        return CAPU_INVALID;
    }
    if (program_value(config, field, &number)) {
        if ((field->kind == FIELD_MODE || field->kind == FIELD_EFFORT) && number - 1 >= 3) {
            return CAPU_INVALID;
        }
        snprintf(digits, sizeof(digits), "%" PRIu64, number);
        text = is_string(field)              ? (const char *)(uintptr_t)number
               : field->kind == FIELD_MODE   ? modes[number - 1]
               : field->kind == FIELD_EFFORT ? plan_effort_names[number - 1]
                                             : digits;
    }
    if (strlen(text) >= bytes) {
        return CAPU_TOO_LARGE;
    }
    memcpy(value, text, strlen(text) + 1);
    return CAPU_OK;
}

void config_finish(struct config *config)
{
    for (size_t i = 0; i < FIELDS; i++) {
        if (is_string(&fields[i])) {
            free(*(char **)field_of(config, &fields[i]));
        }
    }
    *config = (struct config){0};
}

/*
 * NVTX ranges: programs name what they do for profilers. With --iteration-range, each range of that
 * name begins an iteration, with the first call of CUDA in it.
 *
 * NVTX is a header. At its first call it loads the library that NVTX_INJECTION64_PATH names, which
 * `capuchin run` sets to this one, and calls the function below with a way to get at the table of
 * its own functions. Those that begin ranges are set there; all others stay as they are.
 */
#include "shim/core/ranges.h"
#include "shim/core/iteration.h"
#include "shim/driver/settings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Strings that were registered: a handle is one of these two. */
static char registered[2]; /* another one; the name */

static void note(const char *name)
{
    const char *wanted = settings_get()->iteration_range;

    if (name != NULL && wanted != NULL && strcmp(name, wanted) == 0) {
        iteration_name_next();
    }
}

static void note_attributes(const struct range_attributes *attributes)
{
    if (attributes == NULL || attributes->size < sizeof(*attributes)) {
        return;
    }
    if (attributes->message_type == RANGE_TEXT) {
        note(attributes->message);
    } else if (attributes->message_type == RANGE_REGISTERED &&
               attributes->message == &registered[1]) {
        iteration_name_next();
    }
}

static int push(const char *name)
{
    note(name);
    return RANGE_NOT_TRACKED;
}

static int push_attributes(const struct range_attributes *attributes)
{
    note_attributes(attributes);
    return RANGE_NOT_TRACKED;
}

static int push_in_domain(void *domain, const struct range_attributes *attributes)
{
    (void)domain;
    return push_attributes(attributes);
}

static uint64_t begin(const char *name)
{
    note(name);
    return 0;
}

static uint64_t begin_attributes(const struct range_attributes *attributes)
{
    note_attributes(attributes);
    return 0;
}

static uint64_t begin_in_domain(void *domain, const struct range_attributes *attributes)
{
    (void)domain;
    return begin_attributes(attributes);
}

static void *register_text(void *domain, const char *text)
{
    const char *wanted = settings_get()->iteration_range;

    (void)domain;
    return &registered[text != NULL && wanted != NULL && strcmp(text, wanted) == 0];
}

/* A table has the addresses of the header's function pointers. */
static void set(range_function **table, unsigned count, unsigned number, range_function function)
{
    if (number < count && table[number] != NULL) {
        *table[number] = function;
    }
}

int InitializeInjectionNvtx2(range_export *get_table)
{
    const struct range_callbacks *callbacks =
        settings_get()->iteration_range != NULL && get_table != NULL ? get_table(RANGE_CALLBACKS)
                                                                     : NULL;
    range_function **table = NULL;
    unsigned count = 0;

    if (callbacks == NULL || callbacks->size < sizeof(*callbacks)) {
        return 0;
    }
    if (callbacks->get(RANGE_CORE, &table, &count) != 0 && table != NULL) {
        set(table, count, RANGE_START_EX, (range_function)begin_attributes);
        set(table, count, RANGE_START, (range_function)begin);
        set(table, count, RANGE_PUSH_EX, (range_function)push_attributes);
        set(table, count, RANGE_PUSH, (range_function)push);
    }
    if (callbacks->get(RANGE_CORE_2, &table, &count) != 0 && table != NULL) {
        set(table, count, RANGE_DOMAIN_START_EX, (range_function)begin_in_domain);
        set(table, count, RANGE_DOMAIN_PUSH_EX, (range_function)push_in_domain);
        set(table, count, RANGE_DOMAIN_REGISTER, (range_function)register_text);
    }
    return 1;
}

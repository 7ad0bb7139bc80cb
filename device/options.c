/* What devices share when they are made, see options.h. */
#include "device/options.h"

#include "base/size_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

capu_status options_refuse(capu_status status, char *text, size_t text_bytes, const char *format,
                           ...)
{
    if (text != NULL && text_bytes > 0) {
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(text, text_bytes, format, arguments);
        va_end(arguments);
    }
    return status;
}

struct device_page_rule options_page_rule(const struct device_options *options,
                                          uint64_t least_bytes, uint64_t most_pages)
{
    struct device_page_rule rule = {.least_bytes = least_bytes, .most_pages = most_pages};

    if (options->least_page_bytes > least_bytes &&
        options->least_page_bytes <= options->memory_bytes) {
        rule.least_bytes = options->least_page_bytes;
    }
    return rule;
}

capu_status options_round_memory(struct device_options *options, char *text, size_t text_bytes)
{
    if (options->memory_bytes < options->page_bytes) {
        return options_refuse(
            CAPU_OVER_BUDGET, text, text_bytes, "a budget of %s is less than one page of %s",
            size_text(options->memory_bytes).text, size_text(options->page_bytes).text);
    }
    options->memory_bytes &= ~(options->page_bytes - 1);
    return CAPU_OK;
}

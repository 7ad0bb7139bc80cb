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

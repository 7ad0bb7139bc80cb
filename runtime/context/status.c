/* Names and texts of status codes, and the version. */
#include "capuchin/status.h"
#include "capuchin/version.h"

const char *capu_status_name(capu_status status)
{
    switch (status) {
#define NAME(name, value, text) \
    case CAPU_##name:           \
        return "CAPU_" #name;
        CAPU_STATUS_LIST(NAME)
#undef NAME
    }
    return "CAPU_?";
}

const char *capu_status_text(capu_status status)
{
    switch (status) {
#define TEXT(name, value, text) \
    case CAPU_##name:           \
        return text;
        CAPU_STATUS_LIST(TEXT)
#undef TEXT
    }
    return "not a status code";
}

const char *capu_version(void)
{
    return CAPU_VERSION_STRING;
}

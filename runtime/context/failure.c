/* Statuses, failures and forks, see failure.h. Also the version of the library. */
#define _GNU_SOURCE

#include "runtime/context/failure.h"

#include "capuchin/version.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Names and texts of status codes.
 */

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

/*
 * The last error, and lost contexts.
 */

capu_status failure_set(struct failure *failure, capu_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(failure->text, sizeof(failure->text), format, arguments);
    va_end(arguments);
    return status;
}

capu_status failure_explain(struct failure *failure, capu_status status, const char *attempt)
{
    char text[ERROR_TEXT_BYTES / 2];

    if (device_failure(failure->device, text, sizeof(text)) != CAPU_OK) {
        failure->lost = device_failure(failure->device, NULL, 0);
        return failure_set(failure, failure->lost, "%s", text);
    }
    if (status == CAPU_DEVICE_FAILED && text[0] != '\0') {
        return failure_set(failure, status, "%s: %s: %s", attempt, capu_status_text(status), text);
    }
    return failure_set(failure, status, "%s: %s", attempt, capu_status_text(status));
}

/*
 * Fork marks.
 */

static size_t kernel_page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

capu_status fork_mark_init(struct fork_mark *mark)
{
    unsigned *page =
        mmap(NULL, kernel_page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return CAPU_NO_HOST_MEMORY;
    }
    *mark = (struct fork_mark){.process = getpid()};
    if (madvise(page, kernel_page_bytes(), MADV_WIPEONFORK) != 0) { /* Linux before 4.14 */
        munmap(page, kernel_page_bytes());
        return CAPU_OK;
    }
    *page = 1;
    mark->page = page;
    return CAPU_OK;
}

void fork_mark_finish(struct fork_mark *mark)
{
    if (mark->page != NULL) {
        munmap((void *)(uintptr_t)mark->page, kernel_page_bytes());
    }
    *mark = (struct fork_mark){0};
}

bool fork_mark_differs(const struct fork_mark *mark)
{
    return getpid() != mark->process;
}

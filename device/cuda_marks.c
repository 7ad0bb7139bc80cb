/* Marks: see marks.h. NVTX consists of headers only and looks for a profiler at its first call. */
#include "device/marks.h"

#include "capuchin/op.h"

uint64_t marks_traffic(uint32_t role, uint64_t bytes)
{
    switch (role) {
    case CAPU_READ:
    case CAPU_WRITE:
    case CAPU_WRITE_REST_ZERO:
    case CAPU_WRITE_REST_UNDEFINED:
        return bytes;
    case CAPU_UPDATE:
        return 2 * bytes;
    default:
        return 0;
    }
}

#ifdef CAPUCHIN_HAVE_NVTX

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>

#define MARK_TEXT(name, text) text,
static const char *const texts[] = {MARK_KINDS(MARK_TEXT)};
#undef MARK_TEXT

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain; /* NULL: no profiler. Written once, by make_domain */

static void make_domain(void)
{
    domain = nvtxDomainCreateA("capuchin");
    for (uint32_t kind = 0; domain != NULL && kind < MARK_KIND_COUNT; kind++) {
        nvtxDomainNameCategoryA(domain, kind + 1, texts[kind]);
    }
}

bool marks_are_on(void)
{
    pthread_once(&once, make_domain);
    return domain != NULL;
}

struct mark {
    nvtxEventAttributes_t attributes;
    char text[128];
};

static void fill_mark(struct mark *mark, enum mark_kind kind, const char *name, uint64_t number)
{
    const char *prefix = kind == MARK_OP && name != NULL ? "" : texts[kind];

    snprintf(mark->text, sizeof(mark->text), "%s%s%s", prefix,
             prefix[0] != '\0' && name != NULL ? " " : "", name != NULL ? name : "");
    mark->attributes = (nvtxEventAttributes_t){
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .category = (uint32_t)kind + 1,
        .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
        .payload = {.ullValue = number},
        .messageType = NVTX_MESSAGE_TYPE_ASCII,
        .message = {.ascii = mark->text},
    };
}

void marks_begin(enum mark_kind kind, const char *name, uint64_t number)
{
    struct mark mark;

    if (marks_are_on()) {
        fill_mark(&mark, kind, name, number);
        nvtxDomainRangePushEx(domain, &mark.attributes);
    }
}

void marks_end(void)
{
    if (marks_are_on()) {
        nvtxDomainRangePop(domain);
    }
}

uint64_t marks_open(enum mark_kind kind, const char *name, uint64_t number)
{
    struct mark mark;

    if (!marks_are_on()) {
        return 0;
    }
    fill_mark(&mark, kind, name, number);
    return nvtxDomainRangeStartEx(domain, &mark.attributes);
}

void marks_close(uint64_t range)
{
    if (marks_are_on()) {
        nvtxDomainRangeEnd(domain, range);
    }
}

#else

bool marks_are_on(void)
{
    return false;
}

void marks_begin(enum mark_kind kind, const char *name, uint64_t number)
{
    (void)kind;
    (void)name;
    (void)number;
}

void marks_end(void)
{
}

uint64_t marks_open(enum mark_kind kind, const char *name, uint64_t number)
{
    (void)kind;
    (void)name;
    (void)number;
    return 0;
}

void marks_close(uint64_t range)
{
    (void)range;
}

#endif

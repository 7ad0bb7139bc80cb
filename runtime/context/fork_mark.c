/* Fork marks, see fork_mark.h. */
#define _GNU_SOURCE
#include "runtime/context/fork_mark.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

capu_status fork_mark_init(struct fork_mark *mark)
{
    unsigned *page =
        mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        return CAPU_NO_HOST_MEMORY;
    }
    *mark = (struct fork_mark){.process = getpid()};
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) { /* Linux before 4.14 */
        munmap(page, page_bytes());
        return CAPU_OK;
    }
    *page = 1;
    mark->page = page;
    return CAPU_OK;
}

void fork_mark_finish(struct fork_mark *mark)
{
    if (mark->page != NULL) {
        munmap((void *)(uintptr_t)mark->page, page_bytes());
    }
    *mark = (struct fork_mark){0};
}

bool fork_mark_differs(const struct fork_mark *mark)
{
    return getpid() != mark->process;
}

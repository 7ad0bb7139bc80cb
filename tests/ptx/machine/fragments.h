/* wmma.load and wmma.store, see ptx_calls. */
#ifndef CAPU_TESTS_PTX_MACHINE_FRAGMENTS_H
#define CAPU_TESTS_PTX_MACHINE_FRAGMENTS_H

#include "tests/ptx/machine/thread.h"

void fragments_load(struct ptx_thread *thread, const struct ptx_fragment *fragment, uint32_t *words,
                    uint32_t line);
void fragments_store(struct ptx_thread *thread, const struct ptx_fragment *fragment,
                     const uint32_t *words, uint32_t line);

#endif

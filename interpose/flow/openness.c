/* Reasons for which kernels are open, see openness.h. */
#include "interpose/flow/openness.h"

#include <stdio.h>
#include <string.h>

void openness_name(struct kernel *kernel, const struct ptx_instruction *instruction,
                   const char *format, struct span name)
{
    char text[KERNEL_REASON_BYTES];
    size_t length;
    int written;

    kernel->is_closed = false;
    written = snprintf(text, sizeof(text), format, (int)name.length, name.text);
    if (written < 0) {
        return;
    }
    length = strlen(text);
    /* One of each kind. */
    for (unsigned i = 0; i < kernel->reason_count; i++) {
        if (strncmp(kernel->reasons[i], text, length) == 0) {
            return;
        }
    }
    if (kernel->reason_count == KERNEL_REASONS) {
        return;
    }
    memcpy(kernel->reasons[kernel->reason_count], text, length + 1);
    if (instruction != NULL && length + 20 < sizeof(text)) {
        (void)snprintf(kernel->reasons[kernel->reason_count] + length, sizeof(text) - length,
                       " (PTX line %u)", instruction->line);
    }
    kernel->reason_count++;
}

void openness_add(struct kernel *kernel, const struct ptx_instruction *instruction,
                  const char *text)
{
    openness_name(kernel, instruction, "%.*s", (struct span){text, (uint32_t)strlen(text)});
}

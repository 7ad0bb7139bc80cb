/*
 * A call: one piece of device work as the runtime sees it, an op of the program or one of the
 * library's own. Calls are compared by their fields; the bytes of the arguments are not compared,
 * because a learning rate changes every step.
 */
#ifndef CAPU_RUNTIME_CALL_H
#define CAPU_RUNTIME_CALL_H

#include "capuchin/op.h"

#include <stdbool.h>

enum call_kind {
    CALL_RUN,      /* capu_run */
    CALL_ACCESS,   /* capu_access_begin to capu_access_end */
    CALL_ZERO,     /* capu_zero that fills its operand at once */
    CALL_FILL,     /* zeros known since an earlier capu_zero are filled into a tensor's span */
    CALL_UPLOAD,   /* capu_upload */
    CALL_DOWNLOAD, /* capu_download */
    CALL_COPY      /* capu_copy: from the first operand to the second */
};

struct call {
    enum call_kind kind;
    const char *name; /* interned */
    capu_run_function run;
    capu_run_function replay; /* NULL: `run` */
    uint64_t key;
    bool is_once;       /* fills in zeros known for long: the next iteration will not have it */
    bool is_replayable; /* as far as the caller says; updates may still prevent it */
    const capu_operand *operands;
    size_t operand_count;
};

/* The host's side of a transfer. */
struct host_side {
    unsigned char
        *memory;         /* the caller's, of an upload or a download; NULL: an upload runs again */
    unsigned char *kept; /* the library's copy of what is uploaded, uploads.h; NULL: not kept */
    uint64_t offset;     /* of an upload: where in the operand it begins; 0 if it is kept */
    uint64_t bytes;      /* of an upload; the rest of the operand becomes undefined */
};

#endif

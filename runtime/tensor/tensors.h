/*
 * Finding tensors by address, and the lists that they are in. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TENSORS_H
#define CAPU_RUNTIME_TENSORS_H

#include "base/table.h"
#include "runtime/tensor/tensor.h"

/* An address inside a tensor that was looked up lately, and where that tensor started. */
struct tensor_inside {
    const void *address;
    const void *start;
};

struct tensors {
    struct table starts;            /* each start there ever was: to its tensor, or NULL */
    struct tensor_removed *removed; /* one per entry of `starts` */
    struct tensor_inside *inside;   /* cache by address, as large as `starts` */
    size_t live_count;              /* tensors */
    void *tree;                     /* tsearch by address, for interior addresses */
};

void tensors_finish(struct tensors *tensors);

/* Makes a tensor findable. NO_HOST_MEMORY. */
capu_status tensors_add(struct tensors *tensors, struct tensor *tensor);

/* Makes it unfindable. Its start address is remembered as freed, and so is the tensor itself until
   tensors_forget. */
void tensors_remove(struct tensors *tensors, struct tensor *tensor);

/* Puts a tensor in the place of another. Pre: both start at the same address, and if one is longer,
   no third tensor is in the way. */
void tensors_replace(struct tensors *tensors, struct tensor *old, struct tensor *tensor);

/* Forgets a removed tensor that is about to be freed. */
void tensors_forget(struct tensors *tensors, const struct tensor *tensor);

/* The removed and not yet forgotten tensor that started at this address; NULL: none. */
struct tensor *tensors_find_freed(const struct tensors *tensors, const void *address);

/* The tensor that contains the address; NULL: none. */
struct tensor *tensors_find(const struct tensors *tensors, const void *address);

/* Hints that an address will soon be looked up, and a little later that it may lie inside a tensor,
   or that the tensor that starts there will be used. They change nothing; they only bring what is
   needed into the processor's cache. */
void tensors_expect(const struct tensors *tensors, const void *address);
void tensors_expect_inside(const struct tensors *tensors, const void *address);
void tensors_fetch(const struct tensors *tensors, const void *start);

/* Calls `visit` for every tensor, in address order. */
void tensors_each(const struct tensors *tensors, void (*visit)(struct tensor *tensor, void *data),
                  void *data);

/* Any tensor; NULL: there is none. For freeing them all. */
struct tensor *tensors_any(const struct tensors *tensors);

/* Whether a tensor that started at this address has been removed, and no other has taken its place.
 */
bool tensors_was_freed(const struct tensors *tensors, const void *address);

/* The name of that tensor; NULL: it had none, or was not removed. */
const char *tensors_freed_name(const struct tensors *tensors, const void *address);

/* List operations. `link_offset` says which link of the tensor: RESIDENCY or CONTENTS. */
void tensor_list_append(struct tensor_list *list, struct tensor *tensor, size_t link_offset);
void tensor_list_remove(struct tensor *tensor, size_t link_offset);

#define RESIDENCY offsetof(struct tensor, residency)
#define CONTENTS offsetof(struct tensor, contents)

#endif

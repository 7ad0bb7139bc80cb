/*
 * Finding tensors by address, and the lists that they are in. Owned by the context's thread.
 */
#ifndef CAPU_RUNTIME_TENSORS_H
#define CAPU_RUNTIME_TENSORS_H

#include "runtime/tensor.h"

struct tensors {
    struct tensor_slot *slots; /* open addressing by start address */
    size_t capacity;           /* a power of two */
    size_t count;              /* used slots, removed ones included */
    size_t live_count;         /* tensors */
    void *tree;                /* tsearch by address, for interior addresses */
};

void tensors_finish(struct tensors *tensors);

/* Makes a tensor findable. NO_HOST_MEMORY. */
capu_status tensors_add(struct tensors *tensors, struct tensor *tensor);

/* Makes it unfindable; its start address is remembered as freed. The tensor itself is remembered
   too, until tensors_forget. */
void tensors_remove(struct tensors *tensors, struct tensor *tensor);

/* Lets a tensor take over another's place. Pre: both start at the same address, and where one is
   longer, nothing else is in the way. */
void tensors_replace(struct tensors *tensors, struct tensor *old, struct tensor *tensor);

/* Forgets a removed tensor, which is about to be gone. */
void tensors_forget(struct tensors *tensors, const struct tensor *tensor);

/* The removed and not yet forgotten tensor that began exactly there, NULL if there is none. */
struct tensor *tensors_find_freed(const struct tensors *tensors, const void *address);

/* The tensor that holds the address, NULL if none does. */
struct tensor *tensors_find(const struct tensors *tensors, const void *address);

/* Calls `visit` for every tensor, in address order. */
void tensors_each(const struct tensors *tensors, void (*visit)(struct tensor *tensor, void *data),
                  void *data);

/* Some tensor, NULL if there is none: for freeing them all. */
struct tensor *tensors_any(const struct tensors *tensors);

/* Whether a tensor that began exactly there has been removed since. */
bool tensors_was_freed(const struct tensors *tensors, const void *address);

/* The name that tensor had, NULL if it had none or was not removed. */
const char *tensors_freed_name(const struct tensors *tensors, const void *address);

/* List operations on one of a tensor's links, named by offset: residency or contents. */
void tensor_list_append(struct tensor_list *list, struct tensor *tensor, size_t link_offset);
void tensor_list_remove(struct tensor *tensor, size_t link_offset);

#define RESIDENCY offsetof(struct tensor, residency)
#define CONTENTS offsetof(struct tensor, contents)

#endif

/*
 * The tensors with contents, in two lists: those of transient tensors are given up when an
 * iteration begins, those of persistent ones are counted.
 */
#ifndef CAPU_RUNTIME_CONTENTS_H
#define CAPU_RUNTIME_CONTENTS_H

#include "runtime/tensor/tensors.h"

struct residency;

/* Puts a tensor into the list it belongs to. Pre: it has contents. */
void contents_define(struct residency *residency, struct tensor *tensor);

/* Gives up the contents of a tensor, and its host copy with them. */
void contents_forget(struct residency *residency, struct tensor *tensor);

#endif

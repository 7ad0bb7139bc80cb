/* What copies and memsets of all shapes share. */
#ifndef CAPU_SHIM_COPY_H
#define CAPU_SHIM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether an address that is not ours is pageable host memory: the driver does not know it. A copy
   from or to it may make the driver's call wait. Thread: any. */
bool copy_is_pageable(uint64_t address);

/* Whether an address that is not ours is of memory that the host can look at, too. Thread: any. */
bool copy_is_visible(uint64_t address);

/* Notes a copy as an event (iteration.h), before its access begins. Pre: entered. */
void copy_note(uint64_t to, uint64_t from, bool is_from_host);

/* boxes.c */

/*
 * The bytes of a box: rows of `width` bytes, `pitch` bytes apart, in slices that are `slice` bytes
 * apart. What copies and memsets in two and three dimensions touch.
 */
struct rows {
    uint64_t address;
    size_t width, height, depth; /* none of them 0 */
    size_t pitch, slice;
};

/* From the first byte to the last. */
uint64_t rows_bytes(const struct rows *rows);

/* The next range of a box that is to be treated as one: rows with less than `gap` bytes between
   them are joined. Start with a zeroed cursor. False: there is no more. */
struct rows_cursor {
    size_t row; /* of all slices */
    uint64_t address;
    uint64_t bytes;
    bool is_dense; /* rows, and nothing between them */
};
bool rows_next(const struct rows *rows, uint64_t gap, struct rows_cursor *cursor);

/* How many slices, and rows of a slice, have at most `bytes` together; at least one of both. */
size_t rows_slices_in(const struct rows *rows, uint64_t bytes);
size_t rows_rows_in(const struct rows *rows, uint64_t bytes);

#endif

/* Texts of modules, for the tests of slices. */
#ifndef CAPU_TESTS_PTX_SLICES_TEXT_H
#define CAPU_TESTS_PTX_SLICES_TEXT_H

#include <stddef.h>

/* Reads a file of fewer than `most` bytes, and returns how many. Fails the test if it cannot. */
size_t text_read(const char *path, char *text, size_t most);

/* Replaces a part wherever it is, by one that is as long. Fails the test if it is nowhere. Pre:
   the text is terminated. */
void text_replace(char *text, const char *from, const char *to);

#endif

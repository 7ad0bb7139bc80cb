/* The PTX of the kernels, which code.cmake makes. */
#ifndef CAPU_TESTS_PTX_KERNELS_TEXT_H
#define CAPU_TESTS_PTX_KERNELS_TEXT_H

#include <string>

/* The PTX of a source file in kernels/, whatever the path to it looks like. Empty: there is none.
 */
std::string text_of_kernels(const char *file);

#endif

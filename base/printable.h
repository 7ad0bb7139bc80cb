/*
 * Text that programs and files contain, made fit for a terminal.
 *
 * Names can contain anything, whether a program gives them or a trace, plan, report or machine file
 * has them, and so can messages that quote them. Printed as it is, a control character or an escape
 * sequence could hide other lines or forge some. So all of them are printed through these
 * functions, which write "\x1b" for such a character: control characters, those that change the
 * direction of text, line separators, and bytes that are not UTF-8.
 */
#ifndef CAPU_BASE_PRINTABLE_H
#define CAPU_BASE_PRINTABLE_H

#include <stdio.h>

enum { PRINTABLE_BYTES = 2048 };

/* The text with such characters escaped, cut to fit. Returns the buffer. */
const char *printable(const char *text, char buffer[static PRINTABLE_BYTES]);

/* The same, filled up or cut to so many characters, for tables. */
const char *printable_column(const char *text, size_t width, char buffer[static PRINTABLE_BYTES]);

/* The same, and if it has more than so many characters, cut there with "..." in place of the rest.
 */
const char *printable_cut(const char *text, size_t width, char buffer[static PRINTABLE_BYTES]);

/* Prints all of the text with such characters escaped. */
void printable_print(FILE *file, const char *text);

#endif

/*
 * Assertions: what must hold unless Capuchin itself has a bug.
 *
 * A misused public function returns a status, and so does a device that fails: neither is ever
 * asserted. An assertion that fails prints its place and condition and aborts, because the program
 * would go on with a broken invariant. Three levels, by what a check costs:
 *
 *   ASSERT            a few instructions on values at hand: preconditions, indices, enum values
 *   ASSERT_INTERNAL   a look-up or a short walk that slows its function down noticeably
 *   ASSERT_EXPENSIVE  a walk over a whole structure, usually its ..._validate function
 *
 * The CMake variable CAPUCHIN_ASSERTIONS (off, cheap, internal, expensive) decides which of them
 * are compiled in. One that is compiled out costs nothing: its condition is parsed and type-checked
 * but never evaluated, so it must have no side effects.
 */
#ifndef CAPU_BASE_ASSERT_H
#define CAPU_BASE_ASSERT_H

/* 0 off, 1 cheap, 2 internal, 3 expensive. */
#ifndef CAPUCHIN_ASSERTION_LEVEL
#define CAPUCHIN_ASSERTION_LEVEL 0
#endif

#define ASSERT_ON(condition) ((condition) ? (void)0 : assert_failed(__FILE__, __LINE__, #condition))
#define ASSERT_OFF(condition) ((void)(0 && (condition)))

#if CAPUCHIN_ASSERTION_LEVEL >= 1
#define ASSERT(condition) ASSERT_ON(condition)
#else
#define ASSERT(condition) ASSERT_OFF(condition)
#endif

#if CAPUCHIN_ASSERTION_LEVEL >= 2
#define ASSERT_INTERNAL(condition) ASSERT_ON(condition)
#else
#define ASSERT_INTERNAL(condition) ASSERT_OFF(condition)
#endif

#if CAPUCHIN_ASSERTION_LEVEL >= 3
#define ASSERT_EXPENSIVE(condition) ASSERT_ON(condition)
#else
#define ASSERT_EXPENSIVE(condition) ASSERT_OFF(condition)
#endif

/* Prints "FILE:LINE: assertion failed: CONDITION" to stderr and aborts. Any thread. */
_Noreturn void assert_failed(const char *file, int line, const char *condition);

#endif

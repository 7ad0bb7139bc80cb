/* One-line ops, for tests that care about memory and not about arithmetic. */
#ifndef CAPU_TESTS_API_STEPS_H
#define CAPU_TESTS_API_STEPS_H

#include "tests/support/rig.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <string.h>

/* Allocates memory, or fails the test. */
unsigned char *step_malloc(struct rig *rig, size_t bytes);

/* Allocates whole pages and describes them by name and kind. */
unsigned char *step_tensor(struct rig *rig, const char *name, capu_kind kind, size_t page_count);

/* An op "set" that writes `value` to every byte of the range. step_try_set returns the status of
   capu_run; step_set fails the test on an error, here and below. */
capu_status step_try_set(struct rig *rig, void *address, size_t bytes, unsigned char value);
void step_set(struct rig *rig, void *address, size_t bytes, unsigned char value);

/* An op `name` that adds 1 to every byte of the range (an update). */
void step_bump(struct rig *rig, const char *name, void *address, size_t bytes);

/* An op `name` that reads `from`, adds 1 to each byte and writes the result to `to`. */
capu_status step_try_next(struct rig *rig, const char *name, void *to, const void *from,
                          size_t bytes);
void step_next(struct rig *rig, const char *name, void *to, const void *from, size_t bytes);

/* An op `name` that does nothing, with one operand of that role per address. */
capu_status step_touch(struct rig *rig, const char *name, capu_role role, size_t count,
                       void *const *addresses);

/* Fails the test unless every byte of the range reads as `value`. */
void step_expect(struct rig *rig, const void *address, size_t bytes, unsigned char value);

/* Leaves the active plan, and takes a tensor's contents away as if another tensor had taken its
   pages under the plan: reading it fails unless it can be recomputed. */
void step_lose(struct rig *rig, const void *address);

/* The result of capu_tensor_query. */
capu_tensor_state step_query(struct rig *rig, const void *address);

/* Fails the test unless the call returns `status` and the last error contains `word`. */
#define STEP_FAILS(rig_, call_, status_, word_)                                              \
    do {                                                                                     \
        capu_status answer_ = (call_);                                                       \
        ck_assert_msg(answer_ == (status_), "%s: %s: %s", #call_, capu_status_name(answer_), \
                      capu_last_error((rig_)->context));                                     \
        ck_assert_msg(strstr(capu_last_error((rig_)->context), (word_)) != NULL,             \
                      "'%s' is not in '%s'", (word_), capu_last_error((rig_)->context));     \
    } while (0)

#define PAGES(count_) ((size_t)(count_) * (size_t)RIG_PAGE)

#endif

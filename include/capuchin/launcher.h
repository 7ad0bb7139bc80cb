/*
 * Launchers: plain functions that become ops with one declaration each.
 *
 * A launcher computes something from its arguments: `void gelu_forward(float *out, const float *in,
 * int count)`. CAPU_LAUNCHER replaces the first line of its definition and says what it does to
 * each argument. Body and callers stay as they are:
 *
 *     CAPU_LAUNCHER(gelu_forward, (float *, out, writes), (const float *, in, reads),
 *                   (int, count, value))
 *     {
 *         for (int i = 0; i < count; i++) { ... }
 *     }
 *
 * A call of gelu_forward now runs the body as an op of that name, on the thread's current context
 * (capu_context_make_current). CAPU_WRAPPER does the same for a launcher that is defined elsewhere,
 * under another name:
 *
 *     CAPU_WRAPPER(run_gelu, gelu_forward, (float *, out, writes), (const float *, in, reads),
 *                  (int, count, value));
 *
 * Both take 1 to 24 arguments, each as (type, name, role) or (type, name, role, count):
 *
 * - reads, writes, writes_rest_zero, writes_rest_undefined, updates, scratch: a pointer to device
 * memory and what the op does there, as for capu_reads() and the others in capuchin/op.h. Without a
 * count, the operand reaches from the pointer to the end of its tensor. A count says how many items
 * of the pointer's type it covers; it may use the other arguments: (float *, out, writes, rows *
 * columns). An operand that is NULL or has no items is left out, so optional arguments need no
 * special case.
 * - value: anything else. It is copied. If it points to host memory, that may change only when
 * capu_op in capuchin/op.h says so.
 * - stream: the stream argument of a launcher for a GPU. The body gets the context's compute
 * stream, whatever the caller passes.
 * - name, index: a string and an integer that name the op of this call: "qkv" and 3 make "qkv.3".
 *   An index alone is appended to the launcher's name, and a NULL name stands for it. Neither is
 *   passed to the body. Names are kept until the context is destroyed, so use a few.
 *
 * The result is the status of capu_run, and ignoring it is a warning. A program that handles errors
 * in one place defines CAPU_LAUNCHER_CHECK before it includes this header; launchers then return
 * nothing and pass their status to it:
 *
 *     #define CAPU_LAUNCHER_CHECK(status) check(status)
 *     #include <capuchin/launcher.h>
 *
 * `static` in front of either macro makes the launcher static. What a launcher of CAPU_LAUNCHER may
 * do is what a run function may do: it runs later, perhaps again, on the host device on another
 * thread, and calls neither the library nor another launcher. For an op that can fail or has a
 * `replay` function, use capu_run.
 *
 * For a launcher L, the macros define L_arguments, L_run and L_body. Works in C11 and in C++11; see
 * capuchin/capuchin.hpp for lambdas.
 */
#ifndef CAPU_INCLUDE_LAUNCHER_H
#define CAPU_INCLUDE_LAUNCHER_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "capuchin/drop_in.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef CAPU_LAUNCHER_CHECK
#define CAPU_LAUNCHER_RESULT void
#define CAPU_LAUNCHER_RETURN(status_) CAPU_LAUNCHER_CHECK(status_)
#define CAPU_LAUNCHER_ATTRIBUTES
#else
#define CAPU_LAUNCHER_RESULT capu_status
#define CAPU_LAUNCHER_RETURN(status_) return status_
#define CAPU_LAUNCHER_ATTRIBUTES __attribute__((warn_unused_result))
#endif

#define CAPU_LAUNCHER(name_, ...)                                                      \
    CAPU_LAUNCHER_BEGIN(name_, __VA_ARGS__)                                            \
    static void name_##_body(CAPU_LAUNCHER_LIST(CAPU_LAUNCHER_RECEIVED, __VA_ARGS__)); \
    CAPU_LAUNCHER_END(name_, name_##_body, #name_, __VA_ARGS__)                        \
    static void name_##_body(CAPU_LAUNCHER_LIST(CAPU_LAUNCHER_RECEIVED, __VA_ARGS__))

#define CAPU_WRAPPER(name_, launcher_, ...)                      \
    CAPU_LAUNCHER_BEGIN(name_, __VA_ARGS__)                      \
    CAPU_LAUNCHER_END(name_, launcher_, #launcher_, __VA_ARGS__) \
    struct name_##_arguments

/*
 * All that follows serves these two.
 */

#define CAPU_LAUNCHER_ARGUMENT_MAX 24

/* One launch while it is put together. */
struct capu_launch {
    capu_op op;
    int64_t index;
    int has_index;
    char name[128]; /* what the op is called if it has an index */
    capu_operand operands[CAPU_LAUNCHER_ARGUMENT_MAX];
};

/* One enumerator per role, so that the compiler names a role that does not exist. */
enum capu_launcher_role {
    capu_role_is_reads,
    capu_role_is_writes,
    capu_role_is_writes_rest_zero,
    capu_role_is_writes_rest_undefined,
    capu_role_is_updates,
    capu_role_is_scratch,
    capu_role_is_value,
    capu_role_is_stream,
    capu_role_is_name,
    capu_role_is_index
};

/* The casts that the macros need, without those that C++ compilers warn of. */
#ifdef __cplusplus
extern "C++" {
struct capu_launcher_stream {
    capu_stream stream;
    operator void *() const
    {
        return stream;
    }
    template <typename Type> operator Type *() const
    {
        return static_cast<Type *>(stream);
    }
};

static inline size_t capu_launcher_count(size_t count)
{
    return count;
}

template <typename Type> static inline size_t capu_launcher_count(Type count)
{
    return static_cast<size_t>(count);
}
}
#define CAPU_LAUNCHER_BLOCK(type_, block_) static_cast<type_>(block_)
#define CAPU_LAUNCHER_STREAM(type_, stream_) \
    capu_launcher_stream                     \
    {                                        \
        stream_                              \
    }
#define CAPU_LAUNCHER_ITEMS(count_) capu_launcher_count(count_)
#else
#define CAPU_LAUNCHER_BLOCK(type_, block_) (block_)
#define CAPU_LAUNCHER_STREAM(type_, stream_) ((type_)(stream_))
#define CAPU_LAUNCHER_ITEMS(count_) ((size_t)(count_))
#endif

static inline void capu_launch_begin(struct capu_launch *launch, const char *name,
                                     capu_run_function run, const void *arguments,
                                     size_t argument_bytes)
{
    memset(&launch->op, 0, sizeof(launch->op));
    launch->op.size = sizeof(launch->op);
    launch->op.name = name;
    launch->op.run = run;
    launch->op.arguments = arguments;
    launch->op.argument_bytes = argument_bytes;
    launch->op.operands = launch->operands;
    launch->has_index = 0;
}

/* Adds an operand of `count` items; items of 0 bytes stand for the rest of the tensor. A size that
   overflows is one that capu_run rejects. */
static inline void capu_launch_add(struct capu_launch *launch, const void *address, size_t count,
                                   size_t item_bytes, capu_role role)
{
    if (address != NULL && count > 0) {
        size_t bytes =
            item_bytes > 0 && count > SIZE_MAX / item_bytes ? SIZE_MAX : count * item_bytes;

        launch->operands[launch->op.operand_count++] = capu_operand_of(address, bytes, role);
    }
}

/* One function per role; those that write take no pointer to const. */
static inline void capu_launch_reads(struct capu_launch *launch, const void *address, size_t count,
                                     size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_READ);
}

static inline void capu_launch_writes(struct capu_launch *launch, void *address, size_t count,
                                      size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_WRITE);
}

static inline void capu_launch_writes_rest_zero(struct capu_launch *launch, void *address,
                                                size_t count, size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_WRITE_REST_ZERO);
}

static inline void capu_launch_writes_rest_undefined(struct capu_launch *launch, void *address,
                                                     size_t count, size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_WRITE_REST_UNDEFINED);
}

static inline void capu_launch_updates(struct capu_launch *launch, void *address, size_t count,
                                       size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_UPDATE);
}

static inline void capu_launch_scratch(struct capu_launch *launch, void *address, size_t count,
                                       size_t item_bytes)
{
    capu_launch_add(launch, address, count, item_bytes, CAPU_SCRATCH);
}

static inline void capu_launch_name(struct capu_launch *launch, const char *name)
{
    launch->op.name = name != NULL ? name : launch->op.name;
}

static inline void capu_launch_index(struct capu_launch *launch, int64_t index)
{
    launch->index = index;
    launch->has_index = 1;
}

static inline capu_status capu_launch_end(struct capu_launch *launch)
{
    if (launch->has_index) {
        snprintf(launch->name, sizeof(launch->name), "%.100s.%" PRId64, launch->op.name,
                 launch->index);
        launch->op.name = launch->name;
    }
    return capu_run(NULL, &launch->op);
}

/* The prototype comes first, so that `static` in front of the macro applies to it. */
#define CAPU_LAUNCHER_BEGIN(name_, ...)                                                 \
    CAPU_LAUNCHER_RESULT name_(CAPU_LAUNCHER_LIST(CAPU_LAUNCHER_DECLARED, __VA_ARGS__)) \
        CAPU_LAUNCHER_ATTRIBUTES;                                                       \
    struct name_##_arguments {                                                          \
        CAPU_LAUNCHER_EACH(CAPU_LAUNCHER_FIELD, __VA_ARGS__)                            \
    };

#define CAPU_LAUNCHER_END(name_, body_, text_, ...)                                     \
    static capu_status name_##_run(capu_stream capu_stream_, const void *capu_block_)   \
    {                                                                                   \
        const struct name_##_arguments *capu_arguments_ =                               \
            CAPU_LAUNCHER_BLOCK(const struct name_##_arguments *, capu_block_);         \
        (void)capu_stream_;                                                             \
        body_(CAPU_LAUNCHER_LIST(CAPU_LAUNCHER_PASSED, __VA_ARGS__));                   \
        return CAPU_OK;                                                                 \
    }                                                                                   \
    CAPU_LAUNCHER_RESULT name_(CAPU_LAUNCHER_LIST(CAPU_LAUNCHER_DECLARED, __VA_ARGS__)) \
    {                                                                                   \
        const struct name_##_arguments capu_arguments_ = {                              \
            CAPU_LAUNCHER_EACH(CAPU_LAUNCHER_COPIED, __VA_ARGS__)};                     \
        struct capu_launch capu_launch_;                                                \
        capu_launch_begin(&capu_launch_, text_, name_##_run, &capu_arguments_,          \
                          sizeof(capu_arguments_));                                     \
        CAPU_LAUNCHER_EACH(CAPU_LAUNCHER_STEP, __VA_ARGS__)                             \
        CAPU_LAUNCHER_RETURN(capu_launch_end(&capu_launch_));                           \
    }

/* What becomes of one argument at each place, by the class of its role. */
#define CAPU_LAUNCHER_DECLARED(type_, name_, role_, ...) , type_ name_
#define CAPU_LAUNCHER_RECEIVED(type_, name_, role_, ...) \
    CAPU_LAUNCHER_CLASS(CAPU_LAUNCHER_RECEIVED_, role_)(type_, name_)
#define CAPU_LAUNCHER_PASSED(type_, name_, role_, ...) \
    CAPU_LAUNCHER_CLASS(CAPU_LAUNCHER_PASSED_, role_)(type_, name_)
#define CAPU_LAUNCHER_FIELD(type_, name_, role_, ...) \
    CAPU_LAUNCHER_CLASS(CAPU_LAUNCHER_FIELD_, role_)(type_, name_)
#define CAPU_LAUNCHER_COPIED(type_, name_, role_, ...) \
    CAPU_LAUNCHER_CLASS(CAPU_LAUNCHER_COPIED_, role_)(type_, name_)
#define CAPU_LAUNCHER_STEP(type_, name_, role_, ...) \
    (void)capu_role_is_##role_;                      \
    CAPU_LAUNCHER_CLASS(CAPU_LAUNCHER_STEP_, role_)(name_, role_, __VA_ARGS__)

#define CAPU_LAUNCHER_RECEIVED_OPERAND(type_, name_) , type_ name_
#define CAPU_LAUNCHER_RECEIVED_VALUE(type_, name_) , type_ name_
#define CAPU_LAUNCHER_RECEIVED_STREAM(type_, name_) , type_ name_
#define CAPU_LAUNCHER_RECEIVED_LABEL(type_, name_)
#define CAPU_LAUNCHER_PASSED_OPERAND(type_, name_) , capu_arguments_->name_
#define CAPU_LAUNCHER_PASSED_VALUE(type_, name_) , capu_arguments_->name_
#define CAPU_LAUNCHER_PASSED_STREAM(type_, name_) , CAPU_LAUNCHER_STREAM(type_, capu_stream_)
#define CAPU_LAUNCHER_PASSED_LABEL(type_, name_)
#define CAPU_LAUNCHER_FIELD_OPERAND(type_, name_) type_ name_;
#define CAPU_LAUNCHER_FIELD_VALUE(type_, name_) type_ name_;
#define CAPU_LAUNCHER_FIELD_STREAM(type_, name_)
#define CAPU_LAUNCHER_FIELD_LABEL(type_, name_)
#define CAPU_LAUNCHER_COPIED_OPERAND(type_, name_) name_,
#define CAPU_LAUNCHER_COPIED_VALUE(type_, name_) name_,
#define CAPU_LAUNCHER_COPIED_STREAM(type_, name_)
#define CAPU_LAUNCHER_COPIED_LABEL(type_, name_)
#define CAPU_LAUNCHER_STEP_OPERAND(name_, role_, ...) \
    capu_launch_##role_(&capu_launch_, name_, CAPU_LAUNCHER_EXTENT(name_, __VA_ARGS__));
#define CAPU_LAUNCHER_STEP_VALUE(name_, role_, ...)
#define CAPU_LAUNCHER_STEP_STREAM(name_, role_, ...) (void)(name_);
#define CAPU_LAUNCHER_STEP_LABEL(name_, role_, ...) capu_launch_##role_(&capu_launch_, name_);

/* An argument without a count arrives here with one empty token, one with a count with two. */
#define CAPU_LAUNCHER_EXTENT(name_, ...) \
    CAPU_LAUNCHER_JOIN(CAPU_LAUNCHER_EXTENT_, CAPU_LAUNCHER_COUNT(__VA_ARGS__))(name_, __VA_ARGS__)
#define CAPU_LAUNCHER_EXTENT_1(name_, empty_) 1, 0
#define CAPU_LAUNCHER_EXTENT_2(name_, count_, empty_) CAPU_LAUNCHER_ITEMS(count_), sizeof(*(name_))

/* The class of a role. One that does not exist passes for a value: the enumerator is the only
   error. */
#define CAPU_LAUNCHER_CLASS(prefix_, role_) \
    CAPU_LAUNCHER_CLASS_2(prefix_, CAPU_LAUNCHER_CLASS_##role_, VALUE, )
#define CAPU_LAUNCHER_CLASS_2(...) CAPU_LAUNCHER_CLASS_3(__VA_ARGS__)
#define CAPU_LAUNCHER_CLASS_3(prefix_, known_, class_, ...) CAPU_LAUNCHER_JOIN(prefix_, class_)
#define CAPU_LAUNCHER_CLASS_reads , OPERAND
#define CAPU_LAUNCHER_CLASS_writes , OPERAND
#define CAPU_LAUNCHER_CLASS_writes_rest_zero , OPERAND
#define CAPU_LAUNCHER_CLASS_writes_rest_undefined , OPERAND
#define CAPU_LAUNCHER_CLASS_updates , OPERAND
#define CAPU_LAUNCHER_CLASS_scratch , OPERAND
#define CAPU_LAUNCHER_CLASS_value , VALUE
#define CAPU_LAUNCHER_CLASS_stream , STREAM
#define CAPU_LAUNCHER_CLASS_name , LABEL
#define CAPU_LAUNCHER_CLASS_index , LABEL

/* EACH applies a macro to every argument in turn; LIST drops the comma in front of the first. */
#define CAPU_LAUNCHER_LIST(macro_, ...) CAPU_LAUNCHER_TAIL(CAPU_LAUNCHER_EACH(macro_, __VA_ARGS__))
#define CAPU_LAUNCHER_TAIL(...) CAPU_LAUNCHER_TAIL_2(__VA_ARGS__)
#define CAPU_LAUNCHER_TAIL_2(first_, ...) __VA_ARGS__
#define CAPU_LAUNCHER_EACH(macro_, ...)                                       \
    CAPU_LAUNCHER_JOIN(CAPU_LAUNCHER_EACH_, CAPU_LAUNCHER_COUNT(__VA_ARGS__)) \
    (macro_, __VA_ARGS__)
#define CAPU_LAUNCHER_ONE(macro_, argument_) \
    CAPU_LAUNCHER_CALL(macro_, CAPU_LAUNCHER_BARE argument_, )
#define CAPU_LAUNCHER_CALL(macro_, ...) macro_(__VA_ARGS__)
#define CAPU_LAUNCHER_BARE(...) __VA_ARGS__
#define CAPU_LAUNCHER_JOIN(a_, b_) CAPU_LAUNCHER_JOIN_2(a_, b_)
#define CAPU_LAUNCHER_JOIN_2(a_, b_) a_##b_
#define CAPU_LAUNCHER_COUNT(...)                                                                   \
    CAPU_LAUNCHER_COUNT_2(__VA_ARGS__, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, \
                          9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define CAPU_LAUNCHER_COUNT_2(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, \
                              a16, a17, a18, a19, a20, a21, a22, a23, a24, count_, ...)         \
    count_
#define CAPU_LAUNCHER_EACH_1(m, a) CAPU_LAUNCHER_ONE(m, a)
#define CAPU_LAUNCHER_EACH_2(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_1(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_3(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_2(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_4(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_3(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_5(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_4(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_6(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_5(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_7(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_6(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_8(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_7(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_9(m, a, ...) CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_8(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_10(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_9(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_11(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_10(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_12(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_11(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_13(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_12(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_14(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_13(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_15(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_14(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_16(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_15(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_17(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_16(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_18(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_17(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_19(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_18(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_20(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_19(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_21(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_20(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_22(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_21(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_23(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_22(m, __VA_ARGS__)
#define CAPU_LAUNCHER_EACH_24(m, a, ...) \
    CAPU_LAUNCHER_ONE(m, a) CAPU_LAUNCHER_EACH_23(m, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif

/*
 * C++: ops from lambdas, and objects that end what they began.
 *
 *     capu::run(context, "gelu", {capu::reads(x), capu::writes(y)},
 *               [=](capu_stream s) { gelu<<<blocks, threads, 0, cudaStream_t(s)>>>(x, y, n); });
 *
 * A thin layer over the C functions, in headers only: for C++17 and later, with or without
 * exceptions and RTTI, also in files that nvcc compiles. Everything here can be mixed with calls
 * of the C functions. Statuses, ownership, stream order and threads are those of the function that
 * is named in each comment.
 *
 * Nothing here throws, prints or allocates memory, except what the C functions allocate.
 */
#ifndef CAPU_INCLUDE_CAPUCHIN_HPP
#define CAPU_INCLUDE_CAPUCHIN_HPP

#if __cplusplus < 201703L
#error "capuchin/capuchin.hpp needs C++17"
#endif

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "capuchin/capuchin.h"

namespace capu
{

namespace detail
{

/* An operand of `count` items. One without items has no address, and run() leaves it out; a size
   that overflows is one that capu_run rejects. */
inline capu_operand operand(const void *address, std::size_t count, std::size_t item_bytes,
                            capu_role role) noexcept
{
    const std::size_t bytes = count > SIZE_MAX / item_bytes ? SIZE_MAX : count * item_bytes;

    return capu_operand_of(count > 0 ? address : nullptr, bytes, role);
}

/* Of void: 1, as sizeof says for GNU C's void pointers. */
template <typename Item> constexpr std::size_t item_bytes() noexcept
{
    if constexpr (std::is_void_v<Item>) {
        return 1;
    } else {
        return sizeof(Item);
    }
}

/* The run function of an op that is a function object: `arguments` is the library's copy of it. */
template <typename Function> capu_status call(capu_stream stream, const void *arguments) noexcept
{
    const Function &function = *static_cast<const Function *>(arguments);

    if constexpr (std::is_void_v<std::invoke_result_t<const Function &, capu_stream>>) {
        function(stream);
        return CAPU_OK;
    } else {
        return function(stream);
    }
}

} // namespace detail

/*
 * Operands: what an op does to the memory at an address, as capu_reads() and the others in
 * capuchin/op.h. Without a count, to the end of the address's tensor; a count is in items of the
 * pointer's type (bytes if that is void). An operand that is NULL or has no items is left out by
 * run(), so optional arguments need no special case. What is written is no pointer to const.
 */
inline capu_operand reads(const void *address) noexcept
{
    return capu_reads(address);
}

inline capu_operand writes(void *address) noexcept
{
    return capu_writes(address);
}

inline capu_operand writes_rest_zero(void *address) noexcept
{
    return capu_writes_rest_zero(address);
}

inline capu_operand writes_rest_undefined(void *address) noexcept
{
    return capu_writes_rest_undefined(address);
}

inline capu_operand updates(void *address) noexcept
{
    return capu_updates(address);
}

inline capu_operand scratch(void *address) noexcept
{
    return capu_scratch(address);
}

template <typename Item> capu_operand reads(const Item *address, std::size_t count) noexcept
{
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_READ);
}

template <typename Item> capu_operand writes(Item *address, std::size_t count) noexcept
{
    static_assert(!std::is_const_v<Item>, "an op cannot write what is const");
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_WRITE);
}

template <typename Item> capu_operand writes_rest_zero(Item *address, std::size_t count) noexcept
{
    static_assert(!std::is_const_v<Item>, "an op cannot write what is const");
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_WRITE_REST_ZERO);
}

template <typename Item>
capu_operand writes_rest_undefined(Item *address, std::size_t count) noexcept
{
    static_assert(!std::is_const_v<Item>, "an op cannot write what is const");
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_WRITE_REST_UNDEFINED);
}

template <typename Item> capu_operand updates(Item *address, std::size_t count) noexcept
{
    static_assert(!std::is_const_v<Item>, "an op cannot write what is const");
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_UPDATE);
}

template <typename Item> capu_operand scratch(Item *address, std::size_t count) noexcept
{
    static_assert(!std::is_const_v<Item>, "an op cannot write what is const");
    return detail::operand(address, count, detail::item_bytes<Item>(), CAPU_SCRATCH);
}

/* The name of an op: "gelu", or a text and an index: {"qkv", 3} is "qkv.3", of whose text at most
   100 bytes are kept. The library keeps names until the context is destroyed, so use a few. The
   text is borrowed: make a name where it is passed. */
class op_name
{
  public:
    op_name(const char *text) noexcept : text_(text)
    {
    }

    template <typename Index> op_name(const char *text, Index index) noexcept : has_index_(true)
    {
        static_assert(std::is_integral_v<Index>, "the index of an op's name is a whole number");
        std::snprintf(joined_, sizeof(joined_), "%.100s.%lld", text != nullptr ? text : "",
                      static_cast<long long>(index));
    }

    const char *text() const noexcept
    {
        return has_index_ ? joined_ : text_;
    }

  private:
    const char *text_ = nullptr;
    bool has_index_ = false;
    char joined_[128];
};

/* What else an op may say; see capu_op for each. */
struct op_options {
    std::uint32_t flags = 0; /* CAPU_OP_NOT_REPLAYABLE */
    std::uint64_t key = 0;
    std::uint64_t duration_ns = 0; /* on the sim device */
};

/*
 * Runs a lambda, or any other function object, as an op: capu_run with `function(stream)` as its
 * work. The function returns nothing or a capu_status, and must not throw.
 *
 * The library copies the function object byte by byte and may call the copy later, more than once,
 * and on the host device on another thread. So captures must be trivially copyable, which is
 * checked, and copies: [=] or [x, y, n]. What is captured by reference, or with `this`, is not
 * copied, and nothing can check that; see docs/lifetime.md, rule 6.
 *
 * Errors: those of capu_run. Operands that are NULL are left out.
 */
template <std::size_t Count, typename Function>
[[nodiscard]] capu_status run(capu_context *context, const op_name &name,
                              const capu_operand (&operands)[Count], const Function &function,
                              const op_options &options = {}) noexcept
{
    static_assert(std::is_trivially_copyable_v<Function>,
                  "an op's function is copied byte by byte: capture pointers and numbers, not "
                  "containers or smart pointers");
    static_assert(alignof(Function) <= alignof(std::max_align_t),
                  "an op's function may not be over-aligned");
    static_assert(std::is_invocable_v<const Function &, capu_stream>,
                  "an op's function takes a capu_stream, and is not mutable");
    if constexpr (std::is_invocable_v<const Function &, capu_stream>) {
        using result = std::invoke_result_t<const Function &, capu_stream>;
        static_assert(std::is_void_v<result> || std::is_same_v<result, capu_status>,
                      "an op's function returns nothing or a capu_status");
    }
    capu_operand present[Count];
    capu_op op = {};

    for (const capu_operand &operand : operands) {
        if (operand.address != nullptr) {
            present[op.operand_count++] = operand;
        }
    }
    op.size = sizeof(op);
    op.name = name.text();
    op.run = detail::call<Function>;
    op.arguments = &function;
    op.argument_bytes = sizeof(function);
    op.operands = present;
    op.flags = options.flags;
    op.key = options.key;
    op.duration_ns = options.duration_ns;
    return capu_run(context, &op);
}

/* Describes the tensor that contains `address`: capu_tensor_describe. */
[[nodiscard]] inline capu_status describe(capu_context *context, const void *address,
                                          const char *name, capu_kind kind,
                                          capu_lifetime lifetime = CAPU_LIFETIME_DEFAULT,
                                          capu_hint hint = CAPU_HINT_NONE) noexcept
{
    capu_tensor_info info = {};

    info.size = sizeof(info);
    info.name = name;
    info.kind = static_cast<std::uint32_t>(kind);
    info.lifetime = static_cast<std::uint32_t>(lifetime);
    info.hint = static_cast<std::uint32_t>(hint);
    return capu_tensor_describe(context, address, &info);
}

/*
 * A context that is destroyed with the object. It converts to capu_context *, so it can be passed
 * to every C function. If it could not be created it converts to NULL, which stands for the
 * thread's current context: check status() first. Make it a variable of a function: one with static
 * storage would be destroyed when the process exits, and the library does nothing at exit because
 * the device may be gone by then.
 */
class context
{
  public:
    /* capu_context_create with the environment and the defaults. */
    context() noexcept : context(capu_config_init())
    {
    }

    /* capu_context_create. The text about a failure goes to error(), unless the config has a buffer
       of its own. */
    explicit context(capu_config config) noexcept
    {
        if (config.error == nullptr) {
            config.error = error_;
            config.error_bytes = sizeof(error_);
        }
        status_ = capu_context_create(&config, &context_);
    }

    context(context &&other) noexcept : context_(other.context_), status_(other.status_)
    {
        std::memcpy(error_, other.error_, sizeof(error_));
        other.context_ = nullptr;
    }

    context &operator=(context &&other) noexcept
    {
        if (this != &other) {
            capu_context_destroy(context_);
            context_ = other.context_;
            status_ = other.status_;
            std::memcpy(error_, other.error_, sizeof(error_));
            other.context_ = nullptr;
        }
        return *this;
    }

    ~context()
    {
        capu_context_destroy(context_);
    }

    operator capu_context *() const noexcept
    {
        return context_;
    }

    /* Of the creation. */
    capu_status status() const noexcept
    {
        return status_;
    }

    /* capu_last_error; if the context could not be created, why. */
    const char *error() const noexcept
    {
        return context_ != nullptr ? capu_last_error(context_) : error_;
    }

  private:
    capu_context *context_ = nullptr;
    capu_status status_ = CAPU_OK;
    char error_[256] = "";
};

namespace detail
{

/* What begins with the object and ends with it, or before with end(). */
template <capu_status (*Begin)(capu_context *, const char *), capu_status (*End)(capu_context *)>
class scope
{
  public:
    explicit scope(capu_context *context, const char *name) noexcept
        : context_(context), status_(Begin(context, name)), is_open_(status_ == CAPU_OK)
    {
    }

    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

    /* The status is lost: call end() before to learn it. */
    ~scope()
    {
        if (is_open_) {
            (void)End(context_);
        }
    }

    /* Of the beginning. */
    capu_status status() const noexcept
    {
        return status_;
    }

    /* Ends now and returns the status, or that of the beginning if that failed. After a failure it
       is still open, and the destructor tries once more. Once it has ended it does nothing. */
    [[nodiscard]] capu_status end() noexcept
    {
        if (is_open_) {
            const capu_status status = End(context_);

            is_open_ = status != CAPU_OK;
            return status;
        }
        return status_;
    }

  private:
    capu_context *context_;
    capu_status status_;
    bool is_open_;
};

using iteration_scope = scope<capu_iteration_begin, capu_iteration_end>;
using segment_scope = scope<capu_segment_begin, capu_segment_end>;

} // namespace detail

/*
 * An iteration that ends with the object, also when the step is left early: capu_iteration_begin
 * and capu_iteration_end. Call end() to learn the status of the end. The context must outlive it.
 *
 *     capu::iteration step(context, "train");
 */
class iteration : public detail::iteration_scope
{
  public:
    explicit iteration(capu_context *context, const char *label = nullptr) noexcept
        : scope(context, label)
    {
    }
};

/* The same for a segment: capu_segment_begin and capu_segment_end. */
class segment : public detail::segment_scope
{
  public:
    segment(capu_context *context, const char *name) noexcept : scope(context, name)
    {
    }
};

} // namespace capu

#endif

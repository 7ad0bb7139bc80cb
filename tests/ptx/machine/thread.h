/*
 * What translated code and the machine know of each other. Translated code is compiled with this
 * header and the prelude, and has no state: all it uses comes with the thread.
 */
#ifndef CAPU_TESTS_PTX_MACHINE_THREAD_H
#define CAPU_TESTS_PTX_MACHINE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct ptx_thread;

enum ptx_access { PTX_READ, PTX_WRITE, PTX_ATOMIC };

enum ptx_barrier { PTX_BARRIER_SYNC, PTX_BARRIER_POPC, PTX_BARRIER_AND, PTX_BARRIER_OR };

/*
 * What a warp does together. Each lane passes words and gets words; those of one operation and mask
 * meet. SHUFFLE: value, lane or offset, clamp and segment mask; out: value, whether it was in
 * range. VOTE: predicate. MATCH: two halves of a value; out: mask, whether all match. REDUX: value.
 * TILES: two halves of the address of a row; out: 1, 2 or 4 words. PRODUCT: see exchange_matrix.c.
 */
enum ptx_exchange {
    PTX_SYNC,
    PTX_SHUFFLE_UP,
    PTX_SHUFFLE_DOWN,
    PTX_SHUFFLE_BFLY,
    PTX_SHUFFLE_IDX,
    PTX_VOTE_ALL,
    PTX_VOTE_ANY,
    PTX_VOTE_UNI,
    PTX_VOTE_BALLOT,
    PTX_MATCH_ANY,
    PTX_MATCH_ALL,
    PTX_REDUX_ADD,
    PTX_REDUX_MIN_U,
    PTX_REDUX_MAX_U,
    PTX_REDUX_MIN_S,
    PTX_REDUX_MAX_S,
    PTX_REDUX_AND,
    PTX_REDUX_OR,
    PTX_REDUX_XOR,
    PTX_ELECT,
    PTX_TILES_1,
    PTX_TILES_2,
    PTX_TILES_4,
    PTX_TILES_1_TURNED,
    PTX_TILES_2_TURNED,
    PTX_TILES_4_TURNED,
    PTX_PRODUCT_BF16_8, /* m16n8k8 and m16n8k16, sums in f32 */
    PTX_PRODUCT_BF16_16,
    PTX_PRODUCT_F16_8,
    PTX_PRODUCT_F16_16,
    PTX_PRODUCT_TF32_4,
    PTX_PRODUCT_TF32_8,
};

/* Services of the machine. `line` is that of the instruction in the PTX text. */
struct ptx_calls {
    void (*observe)(struct ptx_thread *thread, uint64_t address, uint32_t bytes,
                    enum ptx_access kind, uint32_t line);
    /* `count` 0: all threads. The result is that of a reduction of `value`. */
    uint32_t (*barrier)(struct ptx_thread *thread, enum ptx_barrier kind, uint32_t id,
                        uint32_t count, uint32_t value, uint32_t line);
    void (*arrive)(struct ptx_thread *thread, uint32_t id, uint32_t count, uint32_t line);
    void (*exchange)(struct ptx_thread *thread, enum ptx_exchange kind, uint32_t mask,
                     const uint32_t *in, uint32_t *out, uint32_t line);
    /* Ends the launch. */
    void (*fail)(struct ptx_thread *thread, uint32_t line, const char *what, uint64_t address)
        __attribute__((noreturn));
    void (*assertion)(struct ptx_thread *thread, uint32_t line, const char *message,
                      const char *file, uint32_t file_line, const char *function)
        __attribute__((noreturn));
    /* Ends the thread. */
    void (*exit)(struct ptx_thread *thread) __attribute__((noreturn));
    uint32_t (*print)(const char *format, const unsigned char *arguments);
    uint64_t (*clock)(void);
};

/* What the threads of a block share. */
struct ptx_block {
    const struct ptx_calls *calls;
    uint32_t grid[3];
    uint32_t size[3];
    uint32_t index[3];
    uint64_t grid_number;
    bool is_observed;
    uint32_t shared_bytes;  /* all of it */
    uint32_t static_bytes;  /* as the kernel declares them, for %total_smem_size */
    uint32_t dynamic_bytes; /* at the end */
    uint32_t local_bytes;   /* per thread */
    unsigned char *shared;
    unsigned char *locals; /* of all threads */
    uint64_t locals_bytes;
    unsigned char *variables;
    const unsigned char *parameters;
};

struct ptx_thread {
    struct ptx_block *block;
    unsigned char *local;
    uint32_t index[3];
    uint32_t number; /* in the block */
    /* Of the block; here since every access needs them. */
    bool is_observed;
    unsigned char *shared;
    uint64_t shared_bytes;
};

/* What a translated module exports, as "ptx_entries": its kernels in the order of the text. */
typedef void (*ptx_entry)(struct ptx_thread *thread);

#endif

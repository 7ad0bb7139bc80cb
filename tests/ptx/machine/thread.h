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
 * TILES, PRODUCT: see exchange_matrix.c.
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
    PTX_TILES_LOAD,
    PTX_TILES_STORE,
    PTX_TILES_TURN,
    PTX_PRODUCT,
};

/* An mbarrier: how many arrivals each phase takes, how many are missing in this one, and how many
   bytes are announced and have not come, which may be negative; then the parity of the phase. */
#define PTX_MBARRIER_COUNT_BITS 20
#define PTX_MBARRIER_PENDING 20
#define PTX_MBARRIER_BYTES 40
#define PTX_MBARRIER_BYTES_BITS 23
#define PTX_MBARRIER_PARITY 63

/* A product of matrices by a warp, D = A B + C, with A of m by k items. */
enum ptx_format {
    PTX_F16,
    PTX_BF16,
    PTX_TF32,
    PTX_E4M3,
    PTX_E5M2,
    PTX_S8,
    PTX_U8,
    PTX_F32,
    PTX_F64,
    PTX_S32,
};

enum ptx_matrix { PTX_MATRIX_A, PTX_MATRIX_B, PTX_MATRIX_C, PTX_MATRIX_D };

struct ptx_product {
    uint32_t m, n, k;
    uint32_t formats[4]; /* enum ptx_format, by enum ptx_matrix */
    uint32_t saturates;  /* sums of integers */
};

/* A matrix of a product in memory, by rows or by columns, of which a lane has its items. */
struct ptx_fragment {
    struct ptx_product product;
    enum ptx_matrix which;
    bool is_by_rows;
    bool is_shared; /* the address is one of shared memory; else it is generic */
    uint64_t address;
    uint64_t stride; /* in items, from row to row or column to column */
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
    /* Waits until the phase of this parity of an mbarrier, in shared memory, is complete. */
    void (*wait_phase)(struct ptx_thread *thread, const uint64_t *barrier, uint32_t parity,
                       uint32_t line);
    /* wmma.load and wmma.store: the words of this lane, once all lanes are there. */
    void (*load_fragment)(struct ptx_thread *thread, const struct ptx_fragment *fragment,
                          uint32_t *words, uint32_t line);
    void (*store_fragment)(struct ptx_thread *thread, const struct ptx_fragment *fragment,
                           const uint32_t *words, uint32_t line);
    /* Ends the launch. */
    void (*fail)(struct ptx_thread *thread, uint32_t line, const char *what, uint64_t address)
        __attribute__((noreturn));
    void (*assertion)(struct ptx_thread *thread, uint32_t line, const char *message,
                      const char *file, uint32_t file_line, const char *function)
        __attribute__((noreturn));
    /* Ends the thread. */
    void (*exit)(struct ptx_thread *thread) __attribute__((noreturn));
    uint32_t (*print)(const char *format, const unsigned char *arguments);
    /* The thread may wait for another one in a loop: lets the others go on. */
    void (*yield)(void);
    uint64_t (*clock)(void);
};

enum { PTX_RESERVED_BYTES = 1024 };

/* What the threads of a block share. */
struct ptx_block {
    const struct ptx_calls *calls;
    uint32_t grid[3];
    uint32_t size[3];
    uint32_t index[3];
    uint64_t grid_number;
    uint64_t grid_barrier; /* the address of a cooperative launch's barrier; else 0 */
    bool is_observed;
    uint32_t shared_bytes;  /* all of it */
    uint32_t static_bytes;  /* as the kernel declares them, for %total_smem_size */
    uint32_t dynamic_bytes; /* at the end */
    uint32_t local_bytes;   /* per thread */
    uint32_t reserved;      /* place of shared memory that is the system's, after all other */
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
    uint32_t spins; /* accesses that may have been repeated in a loop that waits */
};

/* What a translated module exports, as "ptx_entries": its kernels in the order of the text. */
typedef void (*ptx_entry)(struct ptx_thread *thread);

#endif

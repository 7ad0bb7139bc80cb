/*
 * Launches over the test runtime, see launch.h: what nvcc's code does before main is done for a
 * file when the first of its kernels is launched, and for a kernel when it is.
 */
#include "tests/ptx/kernels/launch.h"
#include "tests/ptx/kernels/text.h"
#include "tests/ptx/stand_in/names.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

extern "C" {
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp);
}

/* A fat binary as nvcc writes it, with one image: PTX for 8.0. */
struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    uint16_t kind, flags;
    uint32_t image_header_bytes;
    uint64_t image_bytes;
    uint32_t unused[2];
    uint16_t minor, major;
    uint32_t architecture;
    uint64_t name, options, reserved, plain_bytes;
};

static_assert(sizeof(header) == 80, "the layout of fat binaries");

/* What the runtime gets of a file, which lives until the process ends. */
struct binary {
    struct {
        uint32_t magic, version;
        const void *data;
        void *reserved;
    } wrapper;
    std::vector<char> data;
    void **handle;
};

static void register_file(const char *file, binary *made)
{
    std::string text = text_of_kernels(file);
    uint64_t bytes = (text.size() + 1 + 7) / 8 * 8;
    header head = {};

    head.magic = 0xba55ed50;
    head.version = 1;
    head.header_bytes = 16;
    head.bytes = 64 + bytes;
    head.kind = 1;
    head.flags = 0x101;
    head.image_header_bytes = 64;
    head.image_bytes = bytes;
    head.major = 8;
    head.architecture = 80;
    head.options = 0x11;
    head.plain_bytes = bytes;
    made->data.resize(sizeof(head) + bytes);
    memcpy(made->data.data(), &head, sizeof(head));
    memcpy(made->data.data() + sizeof(head), text.data(), text.size());
    made->wrapper = {0x466243b1, 1, made->data.data(), nullptr};
    made->handle = __cudaRegisterFatBinary(&made->wrapper);
}

static void register_kernel(const void *function, const char *file)
{
    static std::map<std::string, binary> &files = *new std::map<std::string, binary>;
    static std::set<const void *> known;
    const char *name;

    if (!known.insert(function).second) {
        return;
    }
    name = names_of_kernel(function);
    if (name == nullptr) {
        fprintf(stderr, "%s: a kernel without a name\n", file);
        abort();
    }
    binary &binary = files[file];

    if (binary.handle == nullptr) {
        register_file(file, &binary);
    }
    __cudaRegisterFunction(binary.handle, static_cast<const char *>(function), nullptr, name, -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(binary.handle);
}

void kernels_enqueue(const void *function, const char *file, dim3 grid, dim3 block,
                     void *const *arguments, cudaStream_t stream)
{
    register_kernel(function, file);
    (void)cudaLaunchKernel(function, grid, block, const_cast<void **>(arguments), 0, stream);
}

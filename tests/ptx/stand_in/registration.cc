/*
 * What nvcc's code does before main, for programs that g++ has compiled: hands the runtime a fat
 * binary with the program's PTX, and makes its kernels and variables known, here when they are
 * first used. The name of a kernel is that of the host function of the same address, so the program
 * must be linked with -rdynamic.
 */
#include <dlfcn.h>
#include <mutex>
#include <set>

#ifndef PROGRAM_PTX
#error "PROGRAM_PTX names the file with the PTX of the program"
#endif

/* A fat binary as nvcc writes it, with one image: PTX for 8.0. */
__asm__(".section .nv_fatbin,\"a\"\n"
        ".balign 8\n"
        ".local program_fatbin\n"
        "program_fatbin:\n"
        ".long 0xba55ed50\n.short 1\n.short 16\n.quad program_fatbin_end - program_fatbin - 16\n"
        ".short 1\n.short 0x101\n.long 64\n.quad program_fatbin_end - program_ptx\n"
        ".long 0\n.long 0\n.short 0\n.short 8\n.long 80\n.quad 0\n.quad 0x11\n.quad 0\n"
        ".quad program_fatbin_end - program_ptx\n"
        "program_ptx:\n"
        ".incbin \"" PROGRAM_PTX "\"\n"
        ".balign 8, 0\n"
        "program_fatbin_end:\n"
        ".previous\n");

extern "C" {
extern const char program_fatbin[];
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int is_external,
                       size_t bytes, int is_constant, int is_global);
void stand_in_register_kernel(const void *kernel);
void stand_in_register_variable(const void *variable);
}

static void **handle()
{
    static struct {
        unsigned magic, version;
        const void *data;
        void *reserved;
    } wrapper = {0x466243b1, 1, program_fatbin, nullptr};
    static void **const made = __cudaRegisterFatBinary(&wrapper);

    return made;
}

/* Held until what a thread uses is registered, so that no other one launches it before. */
static std::mutex registering;

/* The name of what is at the address; null if it has been registered before. */
static const char *name_once(const void *address)
{
    static std::set<const void *> known;
    Dl_info info;

    if (!known.insert(address).second || dladdr(address, &info) == 0) {
        return nullptr;
    }
    return info.dli_sname;
}

void stand_in_register_kernel(const void *kernel)
{
    const std::lock_guard<std::mutex> guard(registering);
    const char *name = name_once(kernel);

    if (name != nullptr) {
        __cudaRegisterFunction(handle(), static_cast<const char *>(kernel), nullptr, name, -1,
                               nullptr, nullptr, nullptr, nullptr, nullptr);
        __cudaRegisterFatBinaryEnd(handle());
    }
}

void stand_in_register_variable(const void *variable)
{
    const std::lock_guard<std::mutex> guard(registering);
    const char *name = name_once(variable);

    if (name != nullptr) {
        __cudaRegisterVar(handle(), static_cast<char *>(const_cast<void *>(variable)), nullptr,
                          name, 0, 0, 0, 0);
    }
}

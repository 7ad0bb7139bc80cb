/*
 * Launches of kernels on the fake runtime (tests/fake_cudart): the machine of tests/ptx executes
 * their PTX on the stream's thread. Also the few calls that the kernels' host code makes and that
 * the fake does not have. Device memory of its own is host memory, outside the fake's.
 */
#include "tests/ptx/kernels/launch.h"
#include "tests/gpu/on_fake/fake_enqueue.h"
#include "tests/ptx/kernels/text.h"
#include "tests/ptx/stand_in/names.h"

extern "C" {
#include "tests/fake_cudart/fake_cudart.h"
#include "tests/ptx/machine/machine.h"
}

#include <cstdio>
#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <vector>

/* A launch, with its parameters as the kernel expects them. */
struct launch {
    const machine_function *function;
    machine_launch shape;
    std::vector<unsigned char> parameters;
};

/* Kernels by their host functions; modules are opened when a kernel of them is first launched, and
   stay. Guarded by the lock. */
static std::mutex lock;
static std::map<std::string, machine_module *> modules;
static std::map<const void *, const machine_function *> functions;

/* Captured work runs at each launch of its graph, so it stays, too. Guarded by the lock. */
static std::list<std::function<bool()>> captured;

static machine_module *open_module(const char *file)
{
    std::string text = text_of_kernels(file);
    error_text problem = {};
    machine_module *module = nullptr;

    if (machine_open(text.data(), text.size(), &module, &problem) != CAPU_OK) {
        fprintf(stderr, "the PTX of %s: %s\n", file, problem.text);
        abort();
    }
    return module;
}

static const machine_function *function_of(const void *function, const char *file)
{
    std::lock_guard<std::mutex> guard(lock);
    const machine_function *&found = functions[function];

    if (found == nullptr) {
        const char *name = names_of_kernel(function);
        machine_module *&module = modules[file];

        if (module == nullptr) {
            module = open_module(file);
        }
        found = name != nullptr ? machine_function_find(module, name) : nullptr;
        if (found == nullptr) {
            fprintf(stderr, "the PTX of %s has no kernel %s\n", file, name != nullptr ? name : "?");
            abort();
        }
    }
    return found;
}

static bool run_kernel(const launch &launch)
{
    machine_launch shape = launch.shape;
    error_text problem = {};

    shape.parameters = launch.parameters.data();
    if (machine_run(launch.function, &shape, &problem) != CAPU_OK) {
        fprintf(stderr, "%s\n", problem.text);
        return false;
    }
    return true;
}

void kernels_enqueue(const void *function, const char *file, dim3 grid, dim3 block,
                     void *const *arguments, cudaStream_t stream)
{
    launch launch = {function_of(function, file), {}, {}};
    const machine_function *known = launch.function;

    launch.parameters.resize(known->parameter_bytes);
    for (size_t i = 0; i < known->parameter_count; i++) {
        memcpy(&launch.parameters[known->parameters[i].offset], arguments[i],
               known->parameters[i].bytes);
    }
    launch.shape = {
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, 0, nullptr, nullptr, nullptr, false};
    fake_enqueue(stream, [=] { return run_kernel(launch); });
}

static capu_status run_work(capu_stream, const void *work)
{
    return (*static_cast<const std::function<bool()> *>(work))() ? CAPU_OK : CAPU_DEVICE_FAILED;
}

static capu_status run_once(capu_stream stream, const void *work)
{
    capu_status status = run_work(stream, work);

    delete static_cast<const std::function<bool()> *>(work);
    return status;
}

void fake_enqueue(cudaStream_t stream, const std::function<bool()> &work)
{
    std::function<bool()> *kept;

    if (fake_cudart_is_captured(reinterpret_cast<capu_stream>(stream))) {
        std::lock_guard<std::mutex> guard(lock);

        captured.push_back(work);
        (void)fake_cudart_launch(reinterpret_cast<capu_stream>(stream), run_work, &captured.back());
        return;
    }
    kept = new std::function<bool()>(work);
    if (fake_cudart_launch(reinterpret_cast<capu_stream>(stream), run_once, kept) != CAPU_OK) {
        delete kept;
    }
}

cudaError_t cudaGetDevice(int *device)
{
    *device = fake_cudart_current();
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = fake_cudart_device_of(reinterpret_cast<capu_stream>(stream));
    return cudaSuccess;
}

/* Weak: gpu_facts allocates memory of the fake. */
__attribute__((weak)) cudaError_t cudaMalloc(void **address, size_t bytes)
{
    return posix_memalign(address, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

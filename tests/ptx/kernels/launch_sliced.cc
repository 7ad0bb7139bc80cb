/*
 * Launches that are compared with their address slices, see launch.h: kernels run in the calling
 * thread, on memory of the test runtime, and an observer sees each access.
 */
#include "tests/ptx/kernels/launch.h"
#include "tests/ptx/kernels/text.h"
#include "tests/ptx/stand_in/names.h"

extern "C" {
#include "tests/ptx/slices/given.h"
}

#include <check.h>
#include <map>
#include <vector>

/* What there is of a source file, until the process ends. */
struct module {
    std::string text;
    struct comparison comparison;
};

static struct given_allocation find_allocation(uint64_t address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;

    (void)cuMemGetAddressRange_v2(&base, &bytes, address);
    return {base, bytes};
}

static const struct comparison *comparison_of(const char *file)
{
    static std::map<std::string, module> &modules = *new std::map<std::string, module>;
    module &made = modules[file];

    if (made.text.empty()) {
        made.text = text_of_kernels(file);
        compare_open(made.text.data(), made.text.size(), NULL, &made.comparison);
    }
    return &made.comparison;
}

static size_t index_of(const struct comparison *comparison, const std::string &name)
{
    for (size_t i = 0; i < comparison->kernels.count; i++) {
        const struct kernel *kernel = &comparison->kernels.kernels[i];

        if (name == std::string(kernel->name.text, kernel->name.length)) {
            return i;
        }
    }
    ck_abort_msg("no kernel %s", name.c_str());
}

void kernels_enqueue(const void *function, const char *file, dim3 grid, dim3 block,
                     void *const *arguments, cudaStream_t stream)
{
    const struct comparison *comparison = comparison_of(file);
    const char *name = names_of_kernel(function);
    size_t kernel = index_of(comparison, name != NULL ? name : "?");
    const struct machine_function *full = machine_function_find(comparison->full, name);
    std::vector<unsigned char> parameters(full->parameter_bytes);
    struct machine_launch launch = {
        {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, 0, parameters.data(), NULL, NULL};
    struct error_text problem = {};

    for (size_t i = 0; i < full->parameter_count; i++) {
        memcpy(&parameters[full->parameters[i].offset], arguments[i], full->parameters[i].bytes);
    }
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaSuccess); /* what was issued before */
    if (comparison->slices[kernel].text != NULL) {
        given_launch(comparison, kernel, &launch, find_allocation);
        return;
    }
    /* Which rows it adds up it takes from shared memory. */
    ck_assert_msg(strstr(name, "backward_tokens") != NULL, "%s", comparison->refusals[kernel].text);
    ck_assert_msg(machine_run(full, &launch, &problem) == CAPU_OK, "%s", problem.text);
}

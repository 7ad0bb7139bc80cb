/* The machine, see machine.h: modules, from text to functions that can be launched. */
#include "tests/ptx/machine/machine.h"

#include "tests/ptx/machine/compile.h"
#include "tests/ptx/machine/run.h"
#include "tests/ptx/machine/translate.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS_MOST = 255, SHARED_MOST_BYTES = 227 << 10, MEMORY_ALIGNMENT = 4096 };

struct machine_module {
    char *text;
    struct ptx_module parsed;
    struct layout layout;
    void *code;            /* of dlopen */
    unsigned char *memory; /* of variables */
    struct machine_function *functions;
    struct run_kernel *kernels; /* of the functions */
    size_t function_count;
    struct machine_variable *variables;
    size_t variable_count;
};

static char *copy(const char *text, size_t count)
{
    char *copied = malloc(count + 1);

    if (copied != NULL) {
        memcpy(copied, text, count);
        copied[count] = '\0';
    }
    return copied;
}

static bool list_parameters(const struct ptx_function *function, struct machine_function *listed)
{
    struct machine_parameter *parameters =
        calloc(function->parameter_count + 1, sizeof(*parameters));

    if (parameters == NULL) {
        return false;
    }
    for (size_t i = 0; i < function->parameter_count; i++) {
        parameters[i] = (struct machine_parameter){function->parameters[i].offset,
                                                   function->parameters[i].bytes};
    }
    listed->parameters = parameters;
    listed->parameter_count = function->parameter_count;
    listed->parameter_bytes = function->parameter_bytes;
    return true;
}

static bool list_function(struct machine_module *module, size_t index, ptx_entry entry)
{
    const struct ptx_function *function = &module->parsed.functions[index];
    const struct layout_function *placed = &module->layout.functions[index];
    struct machine_function *listed = &module->functions[module->function_count];

    module->kernels[module->function_count++] = (struct run_kernel){
        .function = listed,
        .entry = entry,
        .waits = placed->waits,
        .shared_bytes = module->layout.shared_bytes,
        .local_bytes = module->layout.local_bytes,
        .variables = module->memory,
    };
    *listed = (struct machine_function){
        .module = module,
        .name = copy(function->name.text, function->name.length),
        .shared_bytes = placed->shared_bytes,
        .local_bytes = placed->local_bytes,
        .threads_most = function->threads_most == 0 ? RUN_THREADS_MOST : function->threads_most,
        .architecture = module->parsed.architecture,
        .register_count = function->register_count > REGISTERS_MOST
                              ? REGISTERS_MOST
                              : (uint32_t)function->register_count,
    };
    return listed->name != NULL && list_parameters(function, listed);
}

static bool list_functions(struct machine_module *module, const ptx_entry *entries)
{
    size_t count = module->parsed.function_count;

    module->functions = calloc(count + 1, sizeof(*module->functions));
    module->kernels = calloc(count + 1, sizeof(*module->kernels));
    if (module->functions == NULL || module->kernels == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ptx_function *function = &module->parsed.functions[i];

        if (function->has_body && function->is_kernel &&
            !list_function(module, i, entries[module->function_count])) {
            return false;
        }
    }
    return true;
}

static bool list_variables(struct machine_module *module)
{
    size_t count = module->parsed.variable_count;

    module->variables = calloc(count + 1, sizeof(*module->variables));
    for (size_t i = 0; module->variables != NULL && i < count; i++) {
        const struct ptx_variable *variable = &module->parsed.variables[i];
        struct machine_variable *listed = &module->variables[module->variable_count];

        if (variable->space == SPACE_SHARED) {
            continue;
        }
        *listed = (struct machine_variable){
            .name = copy(variable->name.text, variable->name.length),
            .space = variable->space == SPACE_CONST ? MACHINE_CONST : MACHINE_GLOBAL,
            .address = module->memory + module->layout.variable_offsets[i],
            .bytes = variable->bytes,
        };
        module->variable_count++;
        if (listed->name == NULL) {
            return false;
        }
    }
    return module->variables != NULL;
}

capu_status machine_reset(struct machine_module *module, struct error_text *problem)
{
    memset(module->memory, 0, module->layout.variable_bytes + 1);
    return layout_initialise(&module->parsed, &module->layout, module->memory, problem);
}

static capu_status make_memory(struct machine_module *module, struct error_text *problem)
{
    void *memory;

    if (posix_memalign(&memory, MEMORY_ALIGNMENT, module->layout.variable_bytes + 1) != 0) {
        return CAPU_NO_HOST_MEMORY;
    }
    module->memory = memory;
    return machine_reset(module, problem);
}

static capu_status make_code(struct machine_module *module, struct error_text *problem)
{
    char *translated;
    capu_status status = translate(&module->parsed, &module->layout, &translated, problem);

    if (status != CAPU_OK) {
        return status;
    }
    status = compile_load(translated, &module->code, problem);
    free(translated);
    return status;
}

static capu_status open_module(struct machine_module *module, size_t count,
                               struct error_text *problem)
{
    capu_status status = ptx_parse(module->text, count, &module->parsed, problem);
    const ptx_entry *entries;

    if (status == CAPU_OK) {
        status = layout_make(&module->parsed, &module->layout, problem);
    }
    if (status == CAPU_OK) {
        status = make_memory(module, problem);
    }
    if (status == CAPU_OK) {
        status = make_code(module, problem);
    }
    if (status != CAPU_OK) {
        return status;
    }
    entries = dlsym(module->code, "ptx_entries");
    if (entries == NULL) {
        return error_text_set(problem, CAPU_FILE_FAILED, "compiled code without kernels");
    }
    return list_functions(module, entries) && list_variables(module) ? CAPU_OK
                                                                     : CAPU_NO_HOST_MEMORY;
}

capu_status machine_open(const char *text, size_t count, struct machine_module **module,
                         struct error_text *problem)
{
    struct machine_module *opened = calloc(1, sizeof(*opened));
    capu_status status = CAPU_NO_HOST_MEMORY;

    if (opened != NULL) {
        opened->text = copy(text, count);
        if (opened->text != NULL) {
            status = open_module(opened, count, problem);
        }
    }
    if (status != CAPU_OK) {
        if (status == CAPU_NO_HOST_MEMORY) {
            (void)error_text_set(problem, status, "no memory for the module");
        }
        machine_close(opened);
        return status;
    }
    *module = opened;
    return CAPU_OK;
}

void machine_close(struct machine_module *module)
{
    if (module == NULL) {
        return;
    }
    for (size_t i = 0; i < module->function_count; i++) {
        free((void *)(uintptr_t)module->functions[i].name);
        free((void *)(uintptr_t)module->functions[i].parameters);
    }
    for (size_t i = 0; i < module->variable_count; i++) {
        free((void *)(uintptr_t)module->variables[i].name);
    }
    free(module->functions);
    free(module->kernels);
    free(module->variables);
    free(module->memory);
    if (module->code != NULL) {
        (void)dlclose(module->code);
    }
    layout_finish(&module->layout);
    ptx_finish(&module->parsed);
    free(module->text);
    free(module);
}

const struct machine_function *machine_function_at(const struct machine_module *module,
                                                   size_t index)
{
    return index < module->function_count ? &module->functions[index] : NULL;
}

const struct machine_function *machine_function_find(const struct machine_module *module,
                                                     const char *name)
{
    for (size_t i = 0; i < module->function_count; i++) {
        if (strcmp(module->functions[i].name, name) == 0) {
            return &module->functions[i];
        }
    }
    return NULL;
}

const struct machine_variable *machine_variable_at(const struct machine_module *module,
                                                   size_t index)
{
    return index < module->variable_count ? &module->variables[index] : NULL;
}

const struct machine_variable *machine_variable_find(const struct machine_module *module,
                                                     const char *name)
{
    for (size_t i = 0; i < module->variable_count; i++) {
        if (strcmp(module->variables[i].name, name) == 0) {
            return &module->variables[i];
        }
    }
    return NULL;
}

capu_status machine_run(const struct machine_function *function,
                        const struct machine_launch *launch, struct error_text *problem)
{
    uint64_t threads = 1;

    for (unsigned i = 0; i < 3; i++) {
        if (launch->grid[i] == 0 || launch->block[i] == 0 || launch->block[i] > RUN_THREADS_MOST) {
            return error_text_set(problem, CAPU_INVALID,
                                  "%s: an empty grid or block, or too many "
                                  "threads",
                                  function->name);
        }
        threads *= launch->block[i];
    }
    if (threads > function->threads_most) {
        return error_text_set(problem, CAPU_INVALID,
                              "%s: %" PRIu64 " threads in a block, at most %" PRIu32,
                              function->name, threads, function->threads_most);
    }
    if (launch->is_cooperative && (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2] >
                                      MACHINE_THREADS_MOST / threads) {
        return error_text_set(problem, CAPU_INVALID,
                              "%s: more than %d threads in a cooperative launch", function->name,
                              MACHINE_THREADS_MOST);
    }
    if ((uint64_t)function->shared_bytes + launch->shared_bytes > SHARED_MOST_BYTES) {
        return error_text_set(problem, CAPU_INVALID, "%s: too much shared memory", function->name);
    }
    return run_launch(&function->module->kernels[function - function->module->functions], launch,
                      problem);
}

const struct machine_function *machine_where(void)
{
    return run_where();
}

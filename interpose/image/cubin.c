/* Reading cubins, see cubin.h. */
#include "interpose/image/cubin.h"

#include "base/array.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
    INFO_FORMAT_BYTES = 4,   /* bytes follow the record's head; otherwise there are none */
    INFO_PARAMETER = 0x17,   /* u32 index, u16 ordinal, u16 offset, u32 size << 18 | ... */
    INFO_BLOCK_BYTES = 0x19, /* value: bytes of all parameters */
    INFO_PARAMETER_WIDE =
        0x45, /* u32 index, u16 ordinal, u16 offset, u32 size: blocks over 4 KiB */
    INFO_PARAMETER_SIZE = 12,
    SYMBOL_IS_KERNEL = 0x10, /* in st_other */
    PARAMETERS_MOST = 4096,  /* the largest block holds fewer than 32 KiB */
};

static capu_status note_parameter(struct cubin_kernel *kernel, struct bytes record, bool is_wide,
                                  struct error_text *problem)
{
    size_t index = bytes_u16(record, 4);
    uint32_t packed = bytes_u32(record, 8);
    size_t old_capacity = kernel->parameter_capacity;

    if (index >= PARAMETERS_MOST) {
        return error_text_set(problem, CAPU_BAD_FILE, "the parameters of %s are damaged",
                              kernel->name);
    }
    if (!array_reserve(&kernel->parameters, &kernel->parameter_capacity, index + 1,
                       sizeof(*kernel->parameters))) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to read it");
    }
    memset(kernel->parameters + old_capacity, 0,
           (kernel->parameter_capacity - old_capacity) * sizeof(*kernel->parameters));
    kernel->parameters[index].offset = bytes_u16(record, 6);
    kernel->parameters[index].bytes = is_wide ? packed : packed >> 18;
    if (kernel->parameter_count < index + 1) {
        kernel->parameter_count = index + 1;
    }
    return CAPU_OK;
}

static capu_status read_info(struct cubin_kernel *kernel, struct bytes info,
                             struct error_text *problem)
{
    uint64_t at = 0;

    while (bytes_have(info, at, 4)) {
        unsigned format = info.data[at];
        unsigned attribute = info.data[at + 1];
        unsigned value = bytes_u16(info, at + 2);
        bool is_wide = attribute == INFO_PARAMETER_WIDE;

        at += 4;
        if (format != INFO_FORMAT_BYTES) {
            if (attribute == INFO_BLOCK_BYTES) {
                kernel->parameter_bytes = value;
            }
            continue;
        }
        if (!bytes_have(info, at, value)) {
            return error_text_set(problem, CAPU_BAD_FILE, "the information about %s is cut short",
                                  kernel->name);
        }
        if ((attribute == INFO_PARAMETER || is_wide) && value >= INFO_PARAMETER_SIZE) {
            capu_status status =
                note_parameter(kernel, bytes_part(info, at, value), is_wide, problem);

            if (status != CAPU_OK) {
                return status;
            }
        }
        at += value;
    }
    kernel->has_parameters = true;
    return CAPU_OK;
}

static capu_status add_kernel(struct cubin *cubin, const char *name, struct error_text *problem)
{
    char *copy;

    if (!array_reserve(&cubin->kernels, &cubin->kernel_capacity, cubin->kernel_count + 1,
                       sizeof(*cubin->kernels))) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to read it");
    }
    copy = strdup(name);
    if (copy == NULL) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to read it");
    }
    cubin->kernels[cubin->kernel_count++] = (struct cubin_kernel){.name = copy};
    return CAPU_OK;
}

static capu_status read_symbols(struct cubin *cubin, struct bytes symbols, struct bytes names,
                                struct error_text *problem)
{
    for (uint64_t at = 0; bytes_have(symbols, at, sizeof(Elf64_Sym)); at += sizeof(Elf64_Sym)) {
        unsigned info = symbols.data[at + offsetof(Elf64_Sym, st_info)];
        unsigned other = symbols.data[at + offsetof(Elf64_Sym, st_other)];
        unsigned section = bytes_u16(symbols, at + offsetof(Elf64_Sym, st_shndx));
        const char *name = elf_file_string(names, bytes_u32(symbols, at));
        capu_status status;

        if (ELF64_ST_TYPE(info) != STT_FUNC || (other & SYMBOL_IS_KERNEL) == 0 ||
            section == SHN_UNDEF || name == NULL) {
            continue;
        }
        status = add_kernel(cubin, name, problem);
        if (status != CAPU_OK) {
            return status;
        }
    }
    return CAPU_OK;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(((const struct cubin_kernel *)left)->name,
                  ((const struct cubin_kernel *)right)->name);
}

static struct cubin_kernel *find(const struct cubin *cubin, const char *name)
{
    struct cubin_kernel key = {.name = (char *)name};

    return cubin->kernel_count == 0 ? NULL
                                    : bsearch(&key, cubin->kernels, cubin->kernel_count,
                                              sizeof(*cubin->kernels), by_name);
}

const struct cubin_kernel *cubin_find(const struct cubin *cubin, const char *name)
{
    return find(cubin, name);
}

static capu_status read_sections(struct cubin *cubin, const struct elf_file *elf,
                                 struct error_text *problem)
{
    static const char prefix[] = ".nv.info.";
    struct elf_section section;
    struct elf_section names;
    capu_status status = CAPU_OK;

    for (uint32_t i = 0; i < elf->section_count && status == CAPU_OK; i++) {
        if (elf_file_section(elf, i, &section) && section.type == SHT_SYMTAB &&
            section.link < elf->section_count && elf_file_section(elf, section.link, &names)) {
            status = read_symbols(cubin, section.contents, names.contents, problem);
        }
    }
    if (cubin->kernel_count > 0) {
        qsort(cubin->kernels, cubin->kernel_count, sizeof(*cubin->kernels), by_name);
    }
    for (uint32_t i = 0; i < elf->section_count && status == CAPU_OK; i++) {
        if (elf_file_section(elf, i, &section) &&
            strncmp(section.name, prefix, sizeof(prefix) - 1) == 0) {
            struct cubin_kernel *kernel = find(cubin, section.name + sizeof(prefix) - 1);

            if (kernel != NULL) {
                status = read_info(kernel, section.contents, problem);
            }
        }
    }
    return status;
}

capu_status cubin_read(struct bytes bytes, struct cubin *cubin, struct error_text *problem)
{
    struct elf_file elf;
    capu_status status;

    *cubin = (struct cubin){0};
    status = elf_file_open(bytes, &elf, problem);
    if (status != CAPU_OK) {
        return status;
    }
    if (elf.machine != ELF_FILE_CUDA) {
        return error_text_set(problem, CAPU_BAD_FILE, "an ELF file that is not a cubin");
    }
    cubin->is_relocatable = elf.type == ELF_FILE_RELOCATABLE;
    status = read_sections(cubin, &elf, problem);
    if (status != CAPU_OK) {
        cubin_finish(cubin);
    }
    return status;
}

void cubin_finish(struct cubin *cubin)
{
    for (size_t i = 0; i < cubin->kernel_count; i++) {
        free(cubin->kernels[i].name);
        free(cubin->kernels[i].parameters);
    }
    free(cubin->kernels);
    *cubin = (struct cubin){0};
}

/* Finding device code in files, see binary.h. */
#define _GNU_SOURCE /* memmem */

#include "interpose/image/binary.h"

#include "base/array.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
        return error_text_set(problem, CAPU_FILE_FAILED, "the parameters of %s are damaged",
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
            return error_text_set(problem, CAPU_FILE_FAILED,
                                  "the information about %s is cut short", kernel->name);
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

static struct cubin_kernel *find_kernel(const struct cubin *cubin, const char *name)
{
    struct cubin_kernel key = {.name = (char *)name};

    return cubin->kernel_count == 0 ? NULL
                                    : bsearch(&key, cubin->kernels, cubin->kernel_count,
                                              sizeof(*cubin->kernels), by_name);
}

const struct cubin_kernel *cubin_find(const struct cubin *cubin, const char *name)
{
    return find_kernel(cubin, name);
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
            struct cubin_kernel *kernel = find_kernel(cubin, section.name + sizeof(prefix) - 1);

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
        return error_text_set(problem, CAPU_FILE_FAILED, "an ELF file that is not a cubin");
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

/* Reads an image's contents. Only a lack of memory is a failure. */
static capu_status read_image(struct binary_image *image)
{
    unsigned char *contents;
    size_t count;

    if (image->image.kind != IMAGE_PTX && image->image.kind != IMAGE_ELF) {
        return CAPU_OK;
    }
    image->status = fatbin_unpack(&image->image, &contents, &count, &image->problem);
    if (image->status == CAPU_OK && image->image.kind == IMAGE_PTX) {
        image->text = (char *)contents;
        image->text_bytes = count;
    } else if (image->status == CAPU_OK) {
        image->status = cubin_read((struct bytes){contents, count}, &image->cubin, &image->problem);
        image->image.is_relocatable |= image->cubin.is_relocatable;
        free(contents);
    }
    return image->status == CAPU_NO_HOST_MEMORY ? image->status : CAPU_OK;
}

static capu_status add_image(struct binary *binary, const struct image *image,
                             struct error_text *problem)
{
    struct binary_image *added;
    capu_status status;

    if (!array_reserve(&binary->images, &binary->image_capacity, binary->image_count + 1,
                       sizeof(*binary->images))) {
        return error_text_set(problem, CAPU_NO_HOST_MEMORY, "no memory to read it");
    }
    added = &binary->images[binary->image_count++];
    *added = (struct binary_image){.image = *image, .fatbin = binary->fatbin_count - 1};
    status = read_image(added);
    if (status != CAPU_OK) {
        *problem = added->problem;
    }
    return status;
}

/* Reads fat binaries, one after another. */
static capu_status read_fatbins(struct binary *binary, struct bytes bytes, bool is_relocatable,
                                struct error_text *problem)
{
    struct fatbin_reader reader = {.bytes = bytes};
    unsigned before = binary->fatbin_count;
    struct image image;
    capu_status status = fatbin_next(&reader, &image, &binary->problem);

    while (status == CAPU_OK) {
        image.is_relocatable |= is_relocatable;
        binary->fatbin_count = before + reader.count;
        status = add_image(binary, &image, problem);
        if (status != CAPU_OK) {
            return status;
        }
        status = fatbin_next(&reader, &image, &binary->problem);
    }
    binary->is_cut |= status != CAPU_NOT_READY;
    return CAPU_OK;
}

/* An image that is a file of its own. */
static capu_status read_lone(struct binary *binary, struct bytes bytes, enum image_kind kind,
                             struct error_text *problem)
{
    struct image image = {.kind = kind, .payload = bytes, .unpacked_bytes = bytes.count};

    binary->fatbin_count = 1;
    return add_image(binary, &image, problem);
}

static capu_status read_host_file(struct binary *binary, const struct elf_file *elf,
                                  struct error_text *problem)
{
    struct elf_section section;

    for (uint32_t i = 0; i < elf->section_count; i++) {
        bool is_linked;
        capu_status status;

        if (!elf_file_section(elf, i, &section)) {
            error_text_set(&binary->problem, CAPU_FILE_FAILED,
                           "section %" PRIu32 " is damaged, or the file is cut short", i);
            binary->is_cut = true;
            continue;
        }
        is_linked = strcmp(section.name, ".nv_fatbin") == 0;
        if (!is_linked && strcmp(section.name, "__nv_relfatbin") != 0) {
            continue;
        }
        status = read_fatbins(binary, section.contents, !is_linked, problem);
        if (status != CAPU_OK) {
            return status;
        }
    }
    return CAPU_OK;
}

/* Whether the bytes look like PTX: a text with the directive that comes first. */
static bool is_ptx(struct bytes bytes)
{
    static const char directive[] = ".version";
    size_t count = bytes.count < 4096 ? bytes.count : 4096;

    return memchr(bytes.data, '\0', count) == NULL &&
           memmem(bytes.data, count, directive, sizeof(directive) - 1) != NULL;
}

static capu_status read_any(struct binary *binary, struct bytes bytes, struct error_text *problem)
{
    static const char archive[] = "!<arch>\n";
    struct elf_file elf;
    capu_status status;

    if (fatbin_is_one(bytes)) {
        return read_fatbins(binary, bytes, false, problem);
    }
    if (bytes.count >= sizeof(archive) - 1 &&
        memcmp(bytes.data, archive, sizeof(archive) - 1) == 0) {
        return error_text_set(problem, CAPU_UNSUPPORTED,
                              "an archive: give the program that is linked with it, or a member");
    }
    if (!elf_file_is_one(bytes)) {
        if (bytes.count > 0 && is_ptx(bytes)) {
            return read_lone(binary, bytes, IMAGE_PTX, problem);
        }
        return error_text_set(problem, CAPU_FILE_FAILED,
                              "not a program, library, fat binary, cubin or PTX text");
    }
    status = elf_file_open(bytes, &elf, problem);
    if (status != CAPU_OK) {
        return status;
    }
    return elf.machine == ELF_FILE_CUDA ? read_lone(binary, bytes, IMAGE_ELF, problem)
                                        : read_host_file(binary, &elf, problem);
}

capu_status binary_read_bytes(struct bytes bytes, struct binary *binary, struct error_text *problem)
{
    capu_status status;

    *binary = (struct binary){0};
    status = read_any(binary, bytes, problem);
    if (status != CAPU_OK) {
        binary_finish(binary);
    }
    return status;
}

capu_status binary_read(const char *path, struct binary *binary, struct error_text *problem)
{
    struct stat stat;
    struct bytes bytes;
    void *mapped;
    capu_status status;
    int file = open(path, O_RDONLY | O_CLOEXEC);

    *binary = (struct binary){0};
    if (file < 0) {
        return error_text_set(problem, CAPU_FILE_FAILED, "%s", strerror(errno));
    }
    if (fstat(file, &stat) != 0) {
        status = error_text_set(problem, CAPU_FILE_FAILED, "%s", strerror(errno));
        goto close_file;
    }
    if (!S_ISREG(stat.st_mode)) {
        status = error_text_set(problem, CAPU_FILE_FAILED, "not a regular file");
        goto close_file;
    }
    if (stat.st_size == 0) {
        status = error_text_set(problem, CAPU_FILE_FAILED, "the file is empty");
        goto close_file;
    }
    mapped = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) {
        status = error_text_set(problem, CAPU_FILE_FAILED, "%s", strerror(errno));
        goto close_file;
    }
    bytes = (struct bytes){mapped, (size_t)stat.st_size};
    status = binary_read_bytes(bytes, binary, problem);
    (void)munmap(mapped, (size_t)stat.st_size);

close_file:
    (void)close(file);
    return status;
}

capu_status binary_analyse(struct binary_image *image, struct error_text *problem)
{
    capu_status status;

    ASSERT(image->text != NULL && !image->is_analysed);
    image->status = ptx_parse(image->text, image->text_bytes, &image->module, &image->problem);
    if (image->status == CAPU_NO_HOST_MEMORY) {
        return error_text_set(problem, image->status, "no memory to analyse it");
    }
    if (image->status != CAPU_OK) {
        return CAPU_OK;
    }
    if (image->image.architecture == 0) {
        image->image.architecture = image->module.architecture;
    }
    status = roles_find(&image->module, &image->kernels);
    if (status != CAPU_OK) {
        ptx_finish(&image->module);
        return error_text_set(problem, status, "no memory to analyse it");
    }
    image->is_analysed = true;
    return CAPU_OK;
}

/* Whether the machine code has the kernel with other parameters than the PTX. */
static bool has_other_parameters(const struct cubin *cubin, const struct kernel *kernel)
{
    const struct cubin_kernel *compiled = NULL;

    for (size_t i = 0; i < cubin->kernel_count && compiled == NULL; i++) {
        const char *name = cubin->kernels[i].name;

        if (strlen(name) == kernel->name.length &&
            memcmp(name, kernel->name.text, kernel->name.length) == 0) {
            compiled = &cubin->kernels[i];
        }
    }
    return compiled == NULL ||
           (compiled->has_parameters && compiled->parameter_bytes != kernel->parameter_bytes);
}

const char *binary_doubt(const struct binary *binary, const struct binary_image *image,
                         const struct kernel *kernel)
{
    bool has_machine_code = false;

    if (image->image.is_relocatable) {
        return "relocatable device code, which is linked before it runs (nvcc -rdc=true or -dc)";
    }
    for (size_t i = 0; i < binary->image_count; i++) {
        const struct binary_image *other = &binary->images[i];

        if (other->fatbin != image->fatbin || other->image.kind == IMAGE_PTX) {
            continue;
        }
        if (other->image.kind == IMAGE_LTO) {
            return "code that is optimised when it is linked (nvcc -dlto)";
        }
        has_machine_code = true;
        if (other->image.kind == IMAGE_ELF && other->status == CAPU_OK &&
            other->image.architecture == image->image.architecture) {
            return has_other_parameters(&other->cubin, kernel)
                       ? "the machine code has other kernels or parameters than the PTX"
                       : NULL;
        }
    }
    /* Without machine code, the driver compiles the PTX. */
    return has_machine_code
               ? "no machine code of the PTX's architecture, so what runs is made from "
                 "other PTX"
               : NULL;
}

void binary_finish(struct binary *binary)
{
    for (size_t i = 0; i < binary->image_count; i++) {
        roles_finish(&binary->images[i].kernels);
        ptx_finish(&binary->images[i].module);
        cubin_finish(&binary->images[i].cubin);
        free(binary->images[i].text);
    }
    free(binary->images);
    *binary = (struct binary){0};
}

/* The program's device code, see code.h. */
#include "shim/core/code.h"

#include "shim/driver/driver.h"

#include "interpose/image/binary.h"

#include "base/array.h"
#include "base/table.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FATBIN_MAGIC 0xBA55ED50u
#define WRAPPER_MAGIC 0x466243B1u

/* What nvcc's start-up code registers: a fat binary and where it is. */
struct wrapper {
    uint32_t magic;
    uint32_t version;
    const void *fatbin;
};

struct code {
    struct binary binary;
    const struct binary_image *image; /* whose PTX is what runs; NULL: none */
    const char *reason;               /* if there is none */
    unsigned architecture;            /* of the device, as far as that was known */
    bool is_stale;                    /* its variables may be other than a reset left them */
};

static struct {
    struct table codes;   /* handle to index */
    struct table kernels; /* handle to the address of a code_kernel */
    struct code **list;
    size_t count, capacity;
    struct code_kernel *first;
    unsigned architecture; /* of the device, once it is known; else 0 */
    bool has_stored;       /* atomic: a variable may have been stored to since the last reset */
    uint64_t version;      /* atomic: how often one may have been */
} code;

/* How many bytes an image has; 0: it is of no kind that says so. */
static size_t image_bytes(const unsigned char *image)
{
    uint32_t magic;

    memcpy(&magic, image, sizeof(magic));
    if (magic == FATBIN_MAGIC) {
        uint16_t header;
        uint64_t bytes;

        memcpy(&header, image + 6, sizeof(header));
        memcpy(&bytes, image + 8, sizeof(bytes));
        return header + bytes;
    }
    if (memcmp(image, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr elf;
        size_t bytes;

        memcpy(&elf, image, sizeof(elf));
        bytes = elf.e_shoff + (size_t)elf.e_shnum * elf.e_shentsize;
        for (size_t i = 0; i < elf.e_shnum; i++) {
            Elf64_Shdr section;

            memcpy(&section, image + elf.e_shoff + i * elf.e_shentsize, sizeof(section));
            if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > bytes) {
                bytes = section.sh_offset + section.sh_size;
            }
        }
        return bytes;
    }
    return strlen((const char *)image);
}

/* Machine code that the driver would load on the device: of the same major architecture, and not
   newer. The newest. 0: none. */
static unsigned loaded_architecture(const struct binary *binary, unsigned architecture)
{
    unsigned newest = 0;

    for (size_t i = 0; i < binary->image_count; i++) {
        const struct image *image = &binary->images[i].image;

        if (image->kind == IMAGE_ELF && image->architecture / 10 == architecture / 10 &&
            image->architecture <= architecture && image->architecture > newest) {
            newest = image->architecture;
        }
    }
    return newest;
}

/* Finds the PTX from which what runs was made. */
static void choose_ptx(struct code *own)
{
    unsigned architecture = own->architecture;
    unsigned loaded = loaded_architecture(&own->binary, architecture);
    struct binary_image *best = NULL;
    const char *unread = NULL;
    bool has_text = false;

    for (size_t i = 0; i < own->binary.image_count; i++) {
        struct binary_image *image = &own->binary.images[i];

        has_text |= image->text != NULL;
        if (image->image.kind != IMAGE_PTX || image->image.architecture > architecture ||
            (loaded != 0 && image->image.architecture != loaded)) {
            continue;
        }
        if (image->text == NULL) {
            unread = image->problem.text; /* packed in a way that this build does not know, say */
        } else if (best == NULL || image->image.architecture > best->image.architecture) {
            best = image;
        }
    }
    own->reason = unread != NULL ? unread
                  : has_text     ? "no PTX of the architecture whose machine code runs"
                                 : "machine code only";
    if (best == NULL) {
        return;
    }
    if (binary_analyse(best, NULL) != CAPU_OK || !best->is_analysed) {
        own->reason = "its PTX cannot be read";
        return;
    }
    own->image = best;
}

static void put_handle(struct table *table, const void *handle, uint64_t value)
{
    uint64_t key = (uint64_t)(uintptr_t)handle;

    table_remove(table, key);
    if (table_reserve(table, table->count + 1)) {
        table_put(table, key, value);
    }
}

/* Takes what `own` holds. */
static void add_code(const void *handle, struct code *own)
{
    struct code *kept = malloc(sizeof(*kept));

    if (kept == NULL ||
        !array_reserve(&code.list, &code.capacity, code.count + 1, sizeof(struct code *))) {
        free(kept);
        binary_finish(&own->binary);
        return;
    }
    *kept = *own;
    code.list[code.count] = kept;
    put_handle(&code.codes, handle, code.count++);
}

static struct code make_code(unsigned architecture)
{
    return (struct code){.reason = "device code of an unknown format",
                         .architecture = code.architecture != 0 ? code.architecture : architecture};
}

void code_add_image(const void *handle, const void *image, unsigned architecture)
{
    struct code own = make_code(architecture);
    struct wrapper wrapper;
    struct bytes bytes;

    memcpy(&wrapper.magic, image, sizeof(wrapper.magic));
    if (wrapper.magic == WRAPPER_MAGIC) {
        memcpy(&wrapper, image, sizeof(wrapper));
        image = wrapper.fatbin;
    }
    bytes = (struct bytes){image, image_bytes(image)};
    if (binary_read_bytes(bytes, &own.binary, NULL) == CAPU_OK) {
        choose_ptx(&own);
    }
    add_code(handle, &own);
}

void code_add_file(const void *handle, const char *path, unsigned architecture)
{
    struct code own = make_code(architecture);

    if (binary_read(path, &own.binary, NULL) == CAPU_OK) {
        choose_ptx(&own);
    }
    add_code(handle, &own);
}

void code_add_handle(const void *handle, const void *of)
{
    uint64_t index;

    if (table_get(&code.codes, (uint64_t)(uintptr_t)of, &index)) {
        put_handle(&code.codes, handle, index);
    }
}

/* The newest PTX that can be compiled for the device by itself; NULL: none. */
static struct binary_image *newest_text(struct binary *binary, unsigned architecture)
{
    struct binary_image *newest = NULL;

    for (size_t i = 0; i < binary->image_count; i++) {
        struct binary_image *image = &binary->images[i];

        if (image->text != NULL && image->image.architecture <= architecture &&
            !image->image.is_relocatable &&
            (newest == NULL || image->image.architecture > newest->image.architecture)) {
            newest = image;
        }
    }
    return newest;
}

const char *code_text(const void *handle, unsigned architecture)
{
    struct code *own;
    struct binary_image *image;
    uint64_t index;

    if (!table_get(&code.codes, (uint64_t)(uintptr_t)handle, &index)) {
        return NULL;
    }
    own = code.list[index];
    image = newest_text(&own->binary, architecture);
    if (image == NULL || own->binary.fatbin_count > 1 ||
        (!image->is_analysed && binary_analyse(image, NULL) != CAPU_OK) || !image->is_analysed) {
        return NULL;
    }
    for (size_t i = 0; i < image->kernels.count; i++) {
        const struct kernel *kernel = &image->kernels.kernels[i];

        if (kernel->is_closed &&
            (own->image == NULL || binary_doubt(&own->binary, own->image, kernel) != NULL)) {
            return image->text;
        }
    }
    return NULL;
}

bool code_has(const void *handle)
{
    uint64_t index;

    return table_get(&code.codes, (uint64_t)(uintptr_t)handle, &index);
}

void code_remove(const void *handle)
{
    uint64_t index;

    if (!table_get(&code.codes, (uint64_t)(uintptr_t)handle, &index)) {
        return;
    }
    for (struct code_kernel *kernel = code.first; kernel != NULL; kernel = kernel->next) {
        kernel->is_gone |= kernel->origin == code.list[index];
    }
    table_remove(&code.codes, (uint64_t)(uintptr_t)handle);
}

struct code_kernel *code_find(const void *function)
{
    struct code_kernel *kernel;
    uint64_t value;

    if (!table_get(&code.kernels, (uint64_t)(uintptr_t)function, &value)) {
        return NULL;
    }
    kernel = (struct code_kernel *)(uintptr_t)value;
    return kernel->is_gone ? NULL : kernel;
}

struct code_kernel *code_add_unknown(const void *function, const char *name)
{
    struct code_kernel *kernel = calloc(1, sizeof(*kernel));

    if (kernel == NULL || (kernel->name = strdup(name)) == NULL) {
        free(kernel);
        return NULL;
    }
    kernel->reason = "code of a CUDA library, or loaded in a way that is not followed";
    kernel->next = code.first;
    code.first = kernel;
    put_handle(&code.kernels, function, (uint64_t)(uintptr_t)kernel);
    return kernel;
}

static const struct kernel *find_roles(const struct binary_image *image, const char *name)
{
    for (size_t i = 0; i < image->kernels.count; i++) {
        const struct kernel *kernel = &image->kernels.kernels[i];

        if (strlen(name) == kernel->name.length &&
            memcmp(name, kernel->name.text, kernel->name.length) == 0) {
            return kernel;
        }
    }
    return NULL;
}

/* Why a kernel is open; NULL: it is closed. */
static const char *reason_of(const struct code *own, const struct kernel *roles)
{
    const char *doubt;

    if (own->image == NULL) {
        return own->reason;
    }
    if (roles == NULL) {
        return "not in the PTX";
    }
    doubt = binary_doubt(&own->binary, own->image, roles);
    if (doubt != NULL) {
        return doubt;
    }
    return roles->is_closed ? NULL : roles->reason_count > 0 ? roles->reasons[0] : "not understood";
}

void code_note(const void *function, const void *handle, bool is_library, const char *name)
{
    struct code_kernel *kernel = code_find(function);
    const struct code *own;
    uint64_t index;

    if (!table_get(&code.codes, (uint64_t)(uintptr_t)handle, &index)) {
        table_remove(&code.kernels, (uint64_t)(uintptr_t)function);
        return;
    }
    own = code.list[index];
    /* The same kernel again: its counters go on. */
    if (kernel != NULL && kernel->origin == own && strcmp(kernel->name, name) == 0) {
        return;
    }
    kernel = code_add_unknown(function, name);
    if (kernel == NULL) {
        return;
    }
    kernel->origin = own;
    kernel->handle = handle;
    kernel->is_in_library = is_library;
    kernel->module = own->image != NULL ? &own->image->module : NULL;
    kernel->roles = own->image != NULL ? find_roles(own->image, name) : NULL;
    kernel->reason = reason_of(own, kernel->roles);
}

void code_settle(unsigned architecture)
{
    static const char reason[] = "loaded before the device was chosen, which is not the first one";

    code.architecture = architecture;
    for (size_t i = 0; i < code.count; i++) {
        struct code *own = code.list[i];

        if (own->architecture == architecture) {
            continue;
        }
        own->image = NULL;
        own->reason = reason;
        for (struct code_kernel *kernel = code.first; kernel != NULL; kernel = kernel->next) {
            if (kernel->origin == own) {
                kernel->roles = NULL;
                kernel->reason = reason;
            }
        }
    }
}

void code_note_same(const void *function, const void *of)
{
    const struct code_kernel *kernel = code_find(of);

    if (kernel != NULL) {
        put_handle(&code.kernels, function, (uint64_t)(uintptr_t)kernel);
    } else {
        table_remove(&code.kernels, (uint64_t)(uintptr_t)function);
    }
}

void code_note_stored(void)
{
    __atomic_store_n(&code.has_stored, true, __ATOMIC_RELEASE);
    (void)__atomic_add_fetch(&code.version, 1, __ATOMIC_ACQ_REL);
}

uint64_t code_version(void)
{
    return __atomic_load_n(&code.version, __ATOMIC_ACQUIRE);
}

void code_reset(void)
{
    bool has_stored = __atomic_exchange_n(&code.has_stored, false, __ATOMIC_ACQ_REL);

    for (size_t i = 0; i < code.count; i++) {
        code.list[i]->is_stale |= has_stored;
    }
}

bool code_is_stale(const struct code_kernel *kernel)
{
    const struct code *own = kernel->origin;

    return own != NULL && own->is_stale &&
           (kernel->reason != NULL || kernel->roles->reads_variables ||
            kernel->roles->writes_variables);
}

struct code_kernel *code_kernels(void)
{
    return code.first;
}

/* Parameters of launches. */

struct parameters parameters_of(void **list, void **extra)
{
    struct parameters parameters = {.list = list};

    for (size_t i = 0; list == NULL && extra != NULL && extra[i] != LAUNCH_END; i += 2) {
        if (extra[i] == LAUNCH_BUFFER) {
            parameters.bytes = extra[i + 1];
        } else if (extra[i] == LAUNCH_BUFFER_BYTES) {
            parameters.byte_count = *(const size_t *)extra[i + 1];
        }
    }
    return parameters;
}

bool parameters_block(const struct parameters *parameters, const struct kernel *roles,
                      unsigned char block[PARAMETERS_BYTES_MOST])
{
    for (size_t i = 0; i < roles->parameter_count; i++) {
        const struct kernel_parameter *place = &roles->parameters[i];
        size_t end = (size_t)place->offset + place->bytes;

        if (end > PARAMETERS_BYTES_MOST) {
            return false;
        }
        if (parameters->list != NULL) {
            parameters_copy(block + place->offset, parameters->list[i], place->bytes);
        } else if (parameters->bytes != NULL && end <= parameters->byte_count) {
            memcpy(block + place->offset, parameters->bytes + place->offset, place->bytes);
        } else {
            return false;
        }
    }
    return true;
}

bool parameters_next(const unsigned char *block, const struct kernel *roles,
                     const struct kernel_word *word, uint32_t *offset, uint64_t *pointer)
{
    const struct kernel_parameter *place = &roles->parameters[word->parameter];
    bool is_any = word->offset == PTX_NONE;
    uint32_t at = is_any ? *offset : word->offset;

    if ((!is_any && *offset > 0) || at + sizeof(*pointer) > place->bytes) {
        return false;
    }
    memcpy(pointer, block + place->offset + at, sizeof(*pointer));
    *offset += (uint32_t)sizeof(*pointer);
    return true;
}

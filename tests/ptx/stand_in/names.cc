/* Names of kernels from the symbol table of the program or library that they are in; see names.h.
   The loader knows only what is exported, and kernels are static. */
#include "tests/ptx/stand_in/names.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <link.h>
#include <map>
#include <string>
#include <vector>

/* The functions of one file, by their distance from where the file is loaded. */
typedef std::map<uintptr_t, std::string> Names;

/* g++ marks a static function with an L, which nvcc leaves out. */
static std::string name_in_ptx(const char *symbol)
{
    return strncmp(symbol, "_ZL", 3) == 0 ? std::string("_Z") + (symbol + 3) : symbol;
}

/* Reads `count` items at `offset`. */
template <typename Item>
static std::vector<Item> read_items(std::ifstream &file, uint64_t offset, uint64_t count)
{
    std::vector<Item> items(count);

    file.seekg((std::streamoff)offset);
    file.read(reinterpret_cast<char *>(items.data()), (std::streamsize)(count * sizeof(Item)));
    return items;
}

static void add_table(std::ifstream &file, const Elf64_Shdr &table, const Elf64_Shdr &strings,
                      Names *names)
{
    std::vector<char> text = read_items<char>(file, strings.sh_offset, strings.sh_size);

    for (const Elf64_Sym &symbol :
         read_items<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0) {
            (*names)[symbol.st_value] = name_in_ptx(&text[symbol.st_name]);
        }
    }
}

/* The file is one that the loader has loaded, so it is well-formed. */
static Names read_names(const char *path)
{
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header = read_items<Elf64_Ehdr>(file, 0, 1)[0];
    std::vector<Elf64_Shdr> sections = read_items<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
    Names names;

    for (const Elf64_Shdr &section : sections) {
        if (section.sh_type == SHT_SYMTAB) {
            add_table(file, section, sections[section.sh_link], &names);
        }
    }
    return names;
}

const char *names_of_kernel(const void *function)
{
    static std::map<std::string, Names> files;
    Dl_info info;
    struct link_map *map = nullptr;

    if (dladdr1(function, &info, reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP) == 0) {
        return nullptr;
    }
    /* The program itself has no name. */
    std::string path = map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    auto found = files.find(path);

    if (found == files.end()) {
        found = files.emplace(path, read_names(path.c_str())).first;
    }
    auto name = found->second.find(reinterpret_cast<uintptr_t>(function) - map->l_addr);

    return name != found->second.end() ? name->second.c_str() : nullptr;
}

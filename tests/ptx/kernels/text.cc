/* See text.h. Only the name of the source counts, since compiler caches change paths. */
#include "tests/ptx/kernels/text.h"

#include <fstream>
#include <sstream>

std::string text_of_kernels(const char *file)
{
    std::string source = file;
    std::string name = source.substr(source.rfind('/') + 1);
    std::ifstream made(KERNELS_FOLDER "/" + name.substr(0, name.rfind('.')) + ".ptx");
    std::stringstream text;

    text << made.rdbuf();
    return text.str();
}

/* A C++ program of another project: runs lambdas on more memory than its budget holds. */
#include <capuchin/capuchin.hpp>

#include <cstdio>
#include <cstring>

int main()
{
    constexpr std::size_t bytes = std::size_t(256) << 10;
    capu_config config = CAPU_CONFIG_INIT;
    void *tensors[4];
    bool works = true;

    config.device = "host";
    config.budget_bytes = 2 * bytes;
    capu::context context(config);
    capu::iteration step(context, "fill");
    for (void *&tensor : tensors) {
        works = works && capu_malloc(context, bytes, &tensor) == CAPU_OK &&
                capu::run(context, "fill", {capu::writes(tensor)},
                          [to = tensor](capu_stream) { std::memset(to, 7, bytes); }) == CAPU_OK;
    }
    for (void *tensor : tensors) {
        unsigned char last = 0;

        works = works &&
                capu_download(context, &last, static_cast<unsigned char *>(tensor) + bytes - 1, 1,
                              0) == CAPU_OK &&
                last == 7;
    }
    works = step.end() == CAPU_OK && works;
    std::printf("capuchin %s in C++: %s\n", capu_version(), works ? "works" : "failed");
    return works ? 0 : 1;
}

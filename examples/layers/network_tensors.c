/* Allocates the tensors of a network. */
#include "examples/layers/network_tensors.h"

#include "examples/common/try.h"

#include <stdio.h>

capu_status network_tensors_make(struct network *network, const char *layer, const char *what,
                                 size_t bytes, const capu_tensor_info *like, void **address)
{
    capu_tensor_info info = *like;
    char name[64];

    info.size = sizeof(info);
    info.name = name;
    snprintf(name, sizeof(name), "%s.%s", layer, what);
    TRY(capu_malloc(network->context, bytes, address));
    return capu_tensor_describe(network->context, *address, &info);
}

capu_status network_tensors_floats(struct network *network, const char *layer, const char *what,
                                   size_t count, capu_kind kind, float **address)
{
    void *memory = NULL;

    TRY(network_tensors_make(network, layer, what, count * sizeof(float),
                             &(capu_tensor_info){.kind = kind}, &memory));
    *address = memory;
    return CAPU_OK;
}

capu_status network_tensors_items(struct network *network, const char *layer, const char *what,
                                  size_t count, capu_kind kind, void **address)
{
    return network_tensors_make(network, layer, what, count * element_bytes(network->element),
                                &(capu_tensor_info){.kind = kind}, address);
}

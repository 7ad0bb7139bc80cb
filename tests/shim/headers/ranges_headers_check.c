/* Compiled where NVTX's header is installed: shim/core/ranges.h has its numbers and layouts.
 */
#include <nvtx3/nvToolsExt.h>

#include "shim/core/ranges.h"

#define SAME(own, theirs) _Static_assert((long)(own) == (long)(theirs), #own)
#define SAME_PLACE(own, theirs) \
    SAME(offsetof(struct range_attributes, own), offsetof(nvtxEventAttributes_t, theirs))

SAME(RANGE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(RANGE_CORE, NVTX_CB_MODULE_CORE);
SAME(RANGE_CORE_2, NVTX_CB_MODULE_CORE2);
SAME(RANGE_START_EX, NVTX_CBID_CORE_RangeStartEx);
SAME(RANGE_START, NVTX_CBID_CORE_RangeStartA);
SAME(RANGE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
SAME(RANGE_PUSH, NVTX_CBID_CORE_RangePushA);
SAME(RANGE_DOMAIN_START_EX, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(RANGE_DOMAIN_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(RANGE_DOMAIN_REGISTER, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(RANGE_TEXT, NVTX_MESSAGE_TYPE_ASCII);
SAME(RANGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(RANGE_NOT_TRACKED, NVTX_NO_PUSH_POP_TRACKING);
SAME(sizeof(struct range_attributes), sizeof(nvtxEventAttributes_t));
SAME_PLACE(size, size);
SAME_PLACE(message_type, messageType);
SAME_PLACE(message, message);
SAME(sizeof(struct range_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(struct range_callbacks, get),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));

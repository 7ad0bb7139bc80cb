/* The NVTX ranges that the runtime makes, recorded by a listener that is linked into the test. */
#define NVTX_NO_IMPL
#include "tests/support/rig.h"
#include "tests/support/suite.h"

#include <nvtx3/nvToolsExt.h>
#include <string.h>

enum { HEARD = 512, TEXT = 64 };

static struct heard {
    char text[TEXT];
    uint64_t number;
    bool is_open; /* a start/end range, which need not nest */
    bool has_ended;
} heard[HEARD];

static size_t heard_count;
static size_t begun[HEARD]; /* open push/pop ranges, innermost last */
static size_t begun_count;
static char domain_name[TEXT];

static size_t hear(const nvtxEventAttributes_t *attributes, bool is_open)
{
    struct heard *one = &heard[heard_count];

    ck_assert_uint_lt(heard_count, HEARD);
    ck_assert_int_eq(attributes->messageType, NVTX_MESSAGE_TYPE_ASCII);
    ck_assert_int_eq(attributes->payloadType, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
    strncpy(one->text, attributes->message.ascii, TEXT - 1);
    one->number = attributes->payload.ullValue;
    one->is_open = is_open;
    return heard_count++;
}

static nvtxDomainHandle_t NVTX_API create_domain(const char *name)
{
    strncpy(domain_name, name, TEXT - 1);
    return (nvtxDomainHandle_t)(void *)domain_name;
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    (void)domain;
    begun[begun_count++] = hear(attributes, false);
    return (int)begun_count - 1;
}

static int NVTX_API pop(nvtxDomainHandle_t domain)
{
    (void)domain;
    ck_assert_uint_gt(begun_count, 0);
    heard[begun[--begun_count]].has_ended = true;
    return (int)begun_count;
}

static nvtxRangeId_t NVTX_API start(nvtxDomainHandle_t domain,
                                    const nvtxEventAttributes_t *attributes)
{
    (void)domain;
    return hear(attributes, true);
}

static void NVTX_API end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    ck_assert_uint_lt(id, heard_count);
    heard[id].has_ended = true;
}

/* NVTX calls this as it would call a profiler, to install functions in its table. */
static int NVTX_API initialise(NvtxGetExportTableFunc_t get_table)
{
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;

    if (callbacks == NULL ||
        !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) ||
        size <= NVTX_CBID_CORE2_DomainCreateA) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end;
    return 1;
}

extern NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = initialise;

static capu_status nothing(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    return CAPU_OK;
}

static void *tensor(struct rig *rig, const char *name, capu_kind kind)
{
    void *address = NULL;

    RIG_OK(rig, capu_malloc(rig->context, 3 * RIG_PAGE, &address));
    RIG_OK(rig, CAPU_DESCRIBE(rig->context, address, .name = name, .kind = kind));
    return address;
}

static const struct heard *find(const char *text)
{
    for (size_t i = 0; i < heard_count; i++) {
        if (strcmp(heard[i].text, text) == 0) {
            return &heard[i];
        }
    }
    ck_abort_msg("no range '%s' among %zu", text, heard_count);
    return NULL;
}

START_TEST(a_profiler_sees_iterations_ops_and_swaps)
{
    struct rig rig;
    capu_op op = {.size = sizeof(op), .name = "layer", .run = nothing, .operand_count = 1};
    capu_operand operand;
    void *first;
    void *second;

    rig_init(&rig, &(struct rig_options){.budget_pages = 5});
    first = tensor(&rig, "w1", CAPU_PARAMETER);
    second = tensor(&rig, "w2", CAPU_PARAMETER);
    op.operands = &operand;
    RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
    operand = capu_writes(first);
    RIG_OK(&rig, capu_run(rig.context, &op));
    operand = capu_writes(second);
    RIG_OK(&rig, capu_run(rig.context, &op));
    operand = capu_reads(first);
    RIG_OK(&rig, capu_run(rig.context, &op));
    op.name = "update";
    operand = capu_updates(first);
    RIG_OK(&rig, capu_run(rig.context, &op));
    ck_assert(!find("iteration train")->has_ended);
    RIG_OK(&rig, capu_iteration_end(rig.context));
    rig_finish(&rig);

    ck_assert_str_eq(domain_name, "capuchin");
    ck_assert(find("iteration train")->is_open && find("iteration train")->has_ended);
    ck_assert_uint_eq(find("iteration train")->number, 1);
    ck_assert(!find("layer")->is_open);
    ck_assert_uint_eq(find("layer")->number, 3 * RIG_PAGE);
    ck_assert_uint_eq(find("update")->number, 6 * RIG_PAGE);
    ck_assert_uint_eq(find("swap-out w1")->number, 3 * RIG_PAGE);
    ck_assert_uint_eq(find("swap-out w2")->number, 3 * RIG_PAGE);
    ck_assert_uint_eq(find("swap-in w1")->number, 3 * RIG_PAGE);
    ck_assert_uint_eq(begun_count, 0);
    for (size_t i = 0; i < heard_count; i++) {
        ck_assert_msg(heard[i].has_ended, "'%s' has not ended", heard[i].text);
    }
}
END_TEST

static void touch(struct rig *rig, const char *name, capu_operand from, capu_operand to)
{
    capu_operand operands[] = {from, to};
    capu_op op = {
        .size = sizeof(op), .name = name, .run = nothing, .operands = operands, .operand_count = 2};

    RIG_OK(rig, capu_run(rig->context, &op));
}

START_TEST(a_profiler_sees_replays_and_their_bytes)
{
    enum { LAYERS = 6 };
    struct rig rig;
    void *activations[LAYERS];
    void *gradient;

    rig_init(&rig, &(struct rig_options){.budget_pages = 14,
                                         .mode = CAPU_MODE_GUIDED,
                                         .planner = "recompute",
                                         .wait_for_plan = true});
    for (size_t i = 0; i < LAYERS; i++) {
        activations[i] = tensor(&rig, "activation", CAPU_ACTIVATION);
    }
    gradient = tensor(&rig, "gradient", CAPU_GRADIENT);
    for (int iteration = 0; iteration < 3; iteration++) {
        RIG_OK(&rig, capu_iteration_begin(rig.context, "train"));
        RIG_OK(&rig, capu_zero(rig.context, gradient, 3 * RIG_PAGE));
        RIG_OK(&rig, capu_zero(rig.context, activations[0], 3 * RIG_PAGE));
        for (size_t i = 1; i < LAYERS; i++) {
            touch(&rig, "forward", capu_reads(activations[i - 1]), capu_writes(activations[i]));
        }
        for (size_t i = LAYERS; i-- > 0;) {
            touch(&rig, "backward", capu_reads(activations[i]), capu_updates(gradient));
        }
        RIG_OK(&rig, capu_iteration_end(rig.context));
    }
    rig_finish(&rig);
    ck_assert_uint_eq(find("forward")->number, 6 * RIG_PAGE);
    ck_assert_uint_eq(find("backward")->number, 9 * RIG_PAGE);
    ck_assert_uint_eq(find("replay forward")->number, 6 * RIG_PAGE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("marks");
    TCase *cases = tcase_create("marks");

    tcase_add_test(cases, a_profiler_sees_iterations_ops_and_swaps);
    tcase_add_test(cases, a_profiler_sees_replays_and_their_bytes);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}

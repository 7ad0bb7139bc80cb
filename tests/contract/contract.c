/* The framework of the contract suite, see contract.h. */
#include "contract.h"

const struct contract_subject *contract_subjects;

struct device *contract_make(int index)
{
    struct device *device = NULL;
    capu_status status = contract_subjects[index].make(&device);

    if (status == CAPU_NO_DEVICE) {
        return NULL;
    }
    ck_assert_int_eq(status, CAPU_OK);
    return device;
}

char *contract_mapped(struct device *device, device_page *pages, size_t count)
{
    void *address = NULL;

    for (size_t index = 0; index < count; index++) {
        CHECK_OK(device_page_create(device, &pages[index]));
    }
    CHECK_OK(device_range_reserve(device, count * device->capabilities.page_bytes, &address));
    CHECK_OK(device_map(device, address, pages, count));
    return address;
}

bool contract_reads_as(const struct device *device, const char *memory, uint64_t bytes, char byte)
{
    char expected = device->capabilities.is_simulated ? 0 : byte;

    for (uint64_t offset = 0; offset < bytes; offset++) {
        if (memory[offset] != expected) {
            return false;
        }
    }
    return true;
}

Suite *contract_suite(const char *name, const struct contract_subject *subjects, size_t count)
{
    Suite *suite = suite_create(name);

    contract_subjects = subjects;
    for (size_t index = 0; index < count; index++) {
        TCase *tcase = tcase_create(subjects[index].name);

        contract_add_memory(tcase, &subjects[index], (int)index);
        contract_add_streams(tcase, &subjects[index], (int)index);
        contract_add_capture(tcase, (int)index);
        suite_add_tcase(suite, tcase);
    }
    return suite;
}

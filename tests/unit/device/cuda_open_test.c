/* Opening the plug-in with the cuda device: which one is taken, and what is said of one that is
   missing or does not fit. The plug-ins hold the cuda device over the fake runtime, or stubs. */
#include "capuchin/version.h"
#include "device/cuda_plugin.h"
#include "device/device.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder with links to plug-ins under the names by which they are looked for. */
struct place {
    char folder[64];
    char names[2][64];
    int count;
};

static void place_init(struct place *place)
{
    memset(place, 0, sizeof(*place));
    snprintf(place->folder, sizeof(place->folder), "/tmp/cuda_open_test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place->folder));
}

/* The path of a link. Valid until the next call. */
static const char *path_of(const struct place *place, int index)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", place->folder, place->names[index]);
    return path;
}

static void place_add(struct place *place, int major, const char *target)
{
    snprintf(place->names[place->count], sizeof(place->names[0]), CUDA_PLUGIN_FILE, major);
    ck_assert_int_eq(symlink(target, path_of(place, place->count)), 0);
    place->count++;
}

static void place_finish(struct place *place)
{
    for (int i = 0; i < place->count; i++) {
        unlink(path_of(place, i));
    }
    rmdir(place->folder);
}

/* Checks that creation fails with this status and a text that contains both words. */
static void refuses(const struct place *place, capu_status status, const char *word,
                    const char *other)
{
    const struct device_options options = {.plugin_folder = place->folder, .ordinal = 3};
    struct device *device = NULL;
    char text[400] = "";

    ck_assert_int_eq(cuda_device_create(&options, &device, text, sizeof(text)), status);
    ck_assert_ptr_null(device);
    ck_assert_msg(strstr(text, word) != NULL && strstr(text, other) != NULL,
                  "'%s' does not say '%s' and '%s'", text, word, other);
    ck_assert_int_eq(cuda_device_create(&options, &device, NULL, 0), status);
}

START_TEST(a_missing_plugin_is_named_with_the_folder)
{
    struct place place;

    place_init(&place);
    refuses(&place, CAPU_NO_DEVICE, "cuda:3: there is no CUDA plug-in libcapuchin-cuda13.so or ",
            place.folder);
    place_finish(&place);
}
END_TEST

START_TEST(a_plugin_that_does_not_fit_is_rejected)
{
    static const struct {
        const char *file;
        const char *word;
        const char *other;
    } cases[] = {
        {PLUGIN_OLD, "libcapuchin-cuda13.so has interface 1000 ", "needs 1"},
        {PLUGIN_OTHER_LAYOUT, "of another build", "install both from one package"},
        {PLUGIN_OTHER_VERSION, "libcapuchin-cuda13.so is of version 9.8.7 ", "install both"},
        {PLUGIN_NONE, "libcapuchin-cuda13.so is not a plug-in of libcapuchin", ""},
        {"/etc/passwd", "libcapuchin-cuda13.so is not a plug-in of libcapuchin", ""},
        {"/dev/null", "libcapuchin-cuda13.so is not a plug-in of libcapuchin", ""},
    };
    struct place place;

    place_init(&place);
    place_add(&place, 13, cases[_i].file);
    place_add(&place, 12, PLUGIN_ON_FAKE); /* is not taken instead */
    refuses(&place, CAPU_UNSUPPORTED, cases[_i].word, cases[_i].other);
    ck_assert_ptr_null(getenv("PLUGIN_NONE_WAS_OPENED")); /* nothing in it has run */
    place_finish(&place);
}
END_TEST

/* A plug-in that was copied in part, up to every so many bytes: only the whole file is one. */
START_TEST(a_part_of_a_plugin_is_rejected)
{
    static char bytes[1 << 20];
    FILE *whole = fopen(PLUGIN_OTHER_VERSION, "rbe");
    struct place place;
    char path[128];
    size_t length;

    ck_assert_ptr_nonnull(whole);
    length = fread(bytes, 1, sizeof(bytes), whole);
    fclose(whole);
    ck_assert(length > 1000 && length < sizeof(bytes));
    place_init(&place);
    snprintf(path, sizeof(path), "%s/part", place.folder);
    place_add(&place, 13, path);
    for (size_t part = 0; part < length; part += 1 + length / 200) {
        FILE *file = fopen(path, "wbe");

        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(bytes, 1, part, file), part);
        fclose(file);
        refuses(&place, CAPU_UNSUPPORTED, "is not a plug-in of libcapuchin", "");
    }
    unlink(path);
    refuses(&place, CAPU_NO_DEVICE, "there is no CUDA plug-in", "");
    place_finish(&place);
}
END_TEST

/* Opening a FIFO to read would wait for a writer. */
START_TEST(a_fifo_is_rejected_at_once)
{
    struct place place;
    char path[128];

    place_init(&place);
    snprintf(path, sizeof(path), "%s/fifo", place.folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    place_add(&place, 13, path);
    refuses(&place, CAPU_UNSUPPORTED, "is not a plug-in of libcapuchin", "");
    unlink(path);
    place_finish(&place);
}
END_TEST

static bool was_in_run;

static capu_status look(capu_stream stream, const void *arguments)
{
    (void)stream;
    (void)arguments;
    was_in_run = device_is_in_run();
    return CAPU_OK;
}

/* Creates a device with the plug-ins there are, and uses some of it. */
static void works(const struct place *place)
{
    const struct device_work work = {.name = "look", .run = look};
    const struct device_options options = {.plugin_folder = place->folder,
                                           .memory_bytes = (uint64_t)16 << 20,
                                           .d2h_bytes_per_s = 1,
                                           .h2d_bytes_per_s = 1};
    struct device *device = NULL;
    capu_stream stream;
    device_page page;
    void *address;
    char text[400] = "";

    ck_assert_msg(cuda_device_create(&options, &device, text, sizeof(text)) == CAPU_OK, "%s", text);
    ck_assert_str_eq(device->capabilities.name, "cuda");
    ck_assert_int_eq(device_stream_create(device, DEVICE_COMPUTE, &stream), CAPU_OK);
    ck_assert_int_eq(device_page_create(device, &page), CAPU_OK);
    ck_assert_int_eq(device_range_reserve(device, device->capabilities.page_bytes, &address),
                     CAPU_OK);
    ck_assert_int_eq(device_map(device, address, &page, 1), CAPU_OK);
    ck_assert_int_eq(device_fill(device, stream, address, 1, 100), CAPU_OK);
    /* The plug-in calls the function, but calls from it are rejected on this side. */
    ck_assert_int_eq(device_run(device, stream, &work), CAPU_OK);
    ck_assert(was_in_run);
    ck_assert(!device_is_in_run());
    ck_assert_int_eq(device_stream_synchronize(device, stream), CAPU_OK);
    device_stream_destroy(device, stream);
    device_destroy(device);
}

START_TEST(the_device_in_a_plugin_works)
{
    struct place place;

    place_init(&place);
    place_add(&place, 13, PLUGIN_ON_FAKE);
    works(&place);
    place_finish(&place);
}
END_TEST

/* The driver may be too old for the newest CUDA. */
START_TEST(the_newest_plugin_with_a_device_is_taken)
{
    struct place place;

    place_init(&place);
    place_add(&place, 13, PLUGIN_WITHOUT_DEVICE);
    refuses(&place, CAPU_NO_DEVICE, "no driver for " CAPU_VERSION_STRING, "");
    place_add(&place, 12, PLUGIN_ON_FAKE);
    works(&place);
    place_finish(&place);
}
END_TEST

/* Without a folder, the plug-in is looked for where this program is, and its failure is reported.
 */
START_TEST(the_own_folder_is_searched_first)
{
    char path[256];
    char text[400] = "";
    struct device *device = NULL;
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 64);

    ck_assert_int_gt((int)length, 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 64, "/" CUDA_PLUGIN_FILE, 13);
    unlink(path); /* of an earlier run that failed */
    ck_assert_int_eq(symlink(PLUGIN_OTHER_VERSION, path), 0);
    ck_assert_int_eq(cuda_device_create(NULL, &device, text, sizeof(text)), CAPU_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(text, path));
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_open");
    TCase *tests = tcase_create("cuda_open");

    tcase_add_test(tests, a_missing_plugin_is_named_with_the_folder);
    tcase_add_loop_test(tests, a_plugin_that_does_not_fit_is_rejected, 0, 6);
    tcase_add_test(tests, a_part_of_a_plugin_is_rejected);
    tcase_add_test(tests, a_fifo_is_rejected_at_once);
    tcase_add_test(tests, the_device_in_a_plugin_works);
    tcase_add_test(tests, the_newest_plugin_with_a_device_is_taken);
    tcase_add_test(tests, the_own_folder_is_searched_first);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

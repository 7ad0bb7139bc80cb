/*
 * Timelines for Perfetto, read back by a decoder that shares nothing with the writer: every op,
 * replay and copy of the report is in the trace at its time and under the name that NVTX ranges
 * have, nothing overlaps within a track, flows lead from evictions to back-accesses, and what was
 * planned is what was measured on the simulated device.
 */
#include "tests/unit/policy/fixture.h"
#include "tests/unit/tools/fixture.h"

#include "base/array.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* One field of a message: a number, or bytes. */
struct field {
    uint64_t number;
    uint64_t value;
    const unsigned char *bytes; /* NULL: a number */
    size_t length;
};

struct cursor {
    const unsigned char *at;
    const unsigned char *end;
};

static uint64_t varint(struct cursor *cursor)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        ck_assert(cursor->at < cursor->end && shift < 64);
        value |= (uint64_t)(*cursor->at & 0x7f) << shift;
        if ((*cursor->at++ & 0x80) == 0) {
            return value;
        }
    }
}

static bool next_field(struct cursor *cursor, struct field *field)
{
    uint64_t key;

    if (cursor->at == cursor->end) {
        return false;
    }
    key = varint(cursor);
    *field = (struct field){.number = key >> 3};
    switch (key & 7) {
    case 0:
        field->value = varint(cursor);
        return true;
    case 1:
        ck_assert_int_ge(cursor->end - cursor->at, 8);
        for (unsigned i = 0; i < 8; i++) {
            field->value |= (uint64_t)cursor->at[i] << 8 * i;
        }
        cursor->at += 8;
        return true;
    default:
        ck_assert_uint_eq(key & 7, 2);
        field->length = varint(cursor);
        ck_assert_uint_le(field->length, (size_t)(cursor->end - cursor->at));
        field->bytes = cursor->at;
        cursor->at += field->length;
        return true;
    }
}

struct track {
    uint64_t number;
    uint64_t parent;
    char *name;
    bool is_process;
    bool is_counter;
};

struct event {
    uint64_t ns;
    uint64_t end_ns; /* of a slice */
    uint64_t type;
    uint64_t track;
    uint64_t value;
    char *name;
    char *category;
    uint64_t flows[64];
    size_t flow_count;
    bool ends_flows;
};

static struct track *tracks;
static size_t track_count;
static size_t track_capacity;
static struct event *events; /* in the order of the file; ends are in their beginnings */
static size_t event_count;
static size_t event_capacity;

static char *text_of(const struct field *field)
{
    char *text = malloc(field->length + 1);

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(field->bytes);
    memcpy(text, field->bytes, field->length);
    text[field->length] = '\0';
    return text;
}

static const struct track *find_track(uint64_t number)
{
    for (size_t i = 0; i < track_count; i++) {
        if (tracks[i].number == number) {
            return &tracks[i];
        }
    }
    ck_abort_msg("no track %llu", (unsigned long long)number);
    return NULL;
}

static void decode_track(const struct field *whole)
{
    struct cursor cursor = {whole->bytes, whole->bytes + whole->length};
    struct track track = {0};
    struct field field;

    while (next_field(&cursor, &field)) {
        switch (field.number) {
        case 1:
            track.number = field.value;
            break;
        case 2:
            track.name = text_of(&field);
            break;
        case 3:
            track.is_process = true;
            break;
        case 5:
            track.parent = field.value;
            break;
        case 8:
            track.is_counter = true;
            break;
        default:
            break;
        }
    }
    ck_assert(track.number != 0 && track.name != NULL);
    for (size_t i = 0; i < track_count; i++) {
        ck_assert_uint_ne(tracks[i].number, track.number);
    }
    ck_assert(track.is_process || find_track(track.parent)->is_process);
    ck_assert(array_reserve(&tracks, &track_capacity, track_count + 1, sizeof(*tracks)));
    tracks[track_count++] = track;
}

/* Ends the newest open slice of the track. */
static void end_slice(const struct event *end)
{
    for (size_t i = event_count; i-- > 0;) {
        if (events[i].track == end->track && events[i].type == 1) {
            ck_assert_uint_eq(events[i].end_ns, UINT64_MAX);
            ck_assert_uint_ge(end->ns, events[i].ns);
            events[i].end_ns = end->ns;
            return;
        }
    }
    ck_abort_msg("an end without a beginning");
}

static void decode_event(const struct field *whole, uint64_t ns)
{
    struct cursor cursor = {whole->bytes, whole->bytes + whole->length};
    struct event event = {.ns = ns, .end_ns = UINT64_MAX};
    struct field field;

    while (next_field(&cursor, &field)) {
        switch (field.number) {
        case 9:
            event.type = field.value;
            break;
        case 11:
            event.track = field.value;
            break;
        case 22:
            event.category = text_of(&field);
            break;
        case 23:
            event.name = text_of(&field);
            break;
        case 30:
            event.value = field.value;
            break;
        case 47:
        case 48:
            ck_assert_uint_lt(event.flow_count, 64);
            event.flows[event.flow_count++] = field.value;
            event.ends_flows = field.number == 48;
            break;
        default:
            break;
        }
    }
    ck_assert(find_track(event.track)->is_counter == (event.type == 4));
    if (event.type == 2) {
        end_slice(&event);
        return;
    }
    ck_assert(event.type == 4 || (event.name != NULL && event.category != NULL));
    ck_assert(array_reserve(&events, &event_capacity, event_count + 1, sizeof(*events)));
    events[event_count++] = event;
}

static void decode(const char *name)
{
    char path[160];
    FILE *file;
    unsigned char *data;
    long size;
    struct cursor cursor;
    struct field packet;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    rewind(file);
    data = malloc((size_t)size);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(fread(data, 1, (size_t)size, file), (size_t)size);
    fclose(file);
    track_count = 0;
    event_count = 0;
    cursor = (struct cursor){data, data + size};
    while (next_field(&cursor, &packet)) {
        struct cursor inner = {packet.bytes, packet.bytes + packet.length};
        struct field field;
        uint64_t ns = 0;

        ck_assert_uint_eq(packet.number, 1);
        while (next_field(&inner, &field)) {
            if (field.number == 8) {
                ns = field.value;
            } else if (field.number == 60) {
                decode_track(&field);
            } else if (field.number == 11) {
                decode_event(&field, ns);
            } else {
                ck_assert_uint_eq(field.number, 10);
            }
        }
    }
    free(data);
}

static bool is_of(const struct event *event, const char *process, const char *category)
{
    return event->category != NULL && strcmp(event->category, category) == 0 &&
           strcmp(find_track(find_track(event->track)->parent)->name, process) == 0;
}

/* The next slice of this kind after `*at`, in the order of the file. */
static const struct event *next_slice(size_t *at, const char *process, const char *category)
{
    while (*at < event_count) {
        const struct event *event = &events[(*at)++];

        if (is_of(event, process, category)) {
            return event;
        }
    }
    return NULL;
}

/* All slices are closed, and those of one track follow each other. */
static void check_tracks(void)
{
    for (size_t t = 0; t < track_count; t++) {
        uint64_t last = 0;

        for (size_t i = 0; i < event_count; i++) {
            if (events[i].track != tracks[t].number || events[i].type != 1) {
                continue;
            }
            ck_assert_msg(events[i].end_ns != UINT64_MAX, "%s is open", events[i].name);
            ck_assert_msg(events[i].ns >= last, "%s overlaps on %s", events[i].name,
                          tracks[t].name);
            last = events[i].end_ns;
        }
    }
}

static void expect_slice(size_t *at, const char *process, const char *category, const char *kind,
                         const char *name, uint64_t begin, uint64_t end)
{
    const struct event *event = next_slice(at, process, category);
    char text[256];

    snprintf(text, sizeof(text), "%s%s", kind, name);
    ck_assert_msg(event != NULL, "%s is missing", text);
    ck_assert_msg(strcmp(event->name, text) == 0 && event->ns == begin && event->end_ns == end,
                  "%s from %llu to %llu, and %s from %llu to %llu in the report", event->name,
                  (unsigned long long)event->ns, (unsigned long long)event->end_ns, text,
                  (unsigned long long)begin, (unsigned long long)end);
}

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Where the next slice of each category is to be found. */
struct place {
    size_t ops;
    size_t replays;
    size_t out;
    size_t in;
};

/* Compares one timeline line with the measured process; the iteration begins at `begin`. */
static void compare_line(const json_t *line, uint64_t begin, struct place *place)
{
    const json_t *tensors = json_object_get(line, "tensors");
    const json_t *ops = json_object_get(line, "ops");
    const json_t *list = json_object_get(line, "events");

    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);

        expect_slice(&place->ops, "measured", "op", "",
                     json_string_value(json_object_get(op, "name")),
                     begin + number_of(op, "begin_ns"), begin + number_of(op, "end_ns"));
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *event = json_array_get(list, i);
        const char *kind = json_string_value(json_object_get(event, "kind"));
        uint64_t from = begin + number_of(event, "begin_ns");
        uint64_t to = begin + number_of(event, "end_ns");
        const json_t *tensor = json_array_get(tensors, number_of(event, "tensor"));
        const json_t *op = json_array_get(ops, number_of(event, "op"));
        const char *name = json_string_value(json_object_get(tensor, "name"));

        if (strcmp(kind, "out") == 0) {
            expect_slice(&place->out, "measured", "swap-out", "swap-out ", name, from, to);
        } else if (strcmp(kind, "in") == 0) {
            expect_slice(&place->in, "measured", "swap-in", "swap-in ", name, from, to);
        } else if (strcmp(kind, "replay") == 0) {
            name = json_string_value(json_object_get(op, "name"));
            expect_slice(&place->replays, "measured", "replay", "replay ", name, from, to);
        }
    }
}

/* Each flow begins at an eviction or a return, and ends once, at an op, later. */
static size_t check_flows(void)
{
    size_t ended = 0;

    for (size_t i = 0; i < event_count; i++) {
        for (size_t k = 0; k < events[i].flow_count; k++) {
            size_t ends = 0;
            uint64_t first_ns = UINT64_MAX;

            for (size_t n = 0; n < event_count; n++) {
                for (size_t m = 0; m < events[n].flow_count; m++) {
                    if (events[n].flows[m] == events[i].flows[k]) {
                        ends += events[n].ends_flows;
                        first_ns = events[n].ns < first_ns ? events[n].ns : first_ns;
                    }
                }
            }
            ck_assert_msg(ends == 1, "a flow of %s has %zu ends", events[i].name, ends);
            if (events[i].ends_flows) {
                ck_assert_str_eq(events[i].category, "op");
                ck_assert_uint_lt(first_ns, events[i].ns);
                ended++;
            }
        }
    }
    return ended;
}

/* What was planned is what the last iteration did. */
static void compare_processes(void)
{
    static const char *const categories[] = {"op", "replay", "swap-out", "swap-in"};

    for (size_t c = 0; c < sizeof(categories) / sizeof(categories[0]); c++) {
        size_t planned = 0;
        size_t measured = 0;
        size_t skip = 0;
        size_t at = 0;

        while (next_slice(&at, "planned", categories[c]) != NULL) {
            planned++;
        }
        for (at = 0; next_slice(&at, "measured", categories[c]) != NULL;) {
            measured++;
        }
        ck_assert_uint_ge(measured, planned);
        ck_assert_uint_gt(planned, 0);
        for (at = 0; skip < measured - planned; skip++) {
            next_slice(&at, "measured", categories[c]);
        }
        for (size_t other = 0; planned > 0; planned--) {
            const struct event *event = next_slice(&other, "planned", categories[c]);

            expect_slice(&at, "measured", categories[c], "", event->name, event->ns, event->end_ns);
        }
    }
}

/* The words are those of the ranges that Nsight shows: device/marks.h lists them. */
static void check_words(void)
{
    FILE *file = fopen(CAPUCHIN_SOURCE "/device/marks.h", "r");
    char line[160];
    char kind[32];
    unsigned count = 0;

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        size_t any = 0;

        if (sscanf(line, " X(%*[A-Z_], \"%31[a-z-]\")", kind) == 1) {
            ck_assert_msg(next_slice(&any, "measured", kind) != NULL, "no %s", kind);
            count++;
        }
    }
    fclose(file);
    ck_assert_uint_eq(count, 5);
}

START_TEST(a_replay_is_decoded_again)
{
    char path[160];
    FILE *file;
    char *line = NULL;
    size_t room = 0;
    uint64_t begin = 0;
    uint64_t begins[8];
    struct place place = {0};
    size_t iterations = 0;
    size_t returns = 0;
    size_t at = 0;
    uint64_t budget = 0;

    RUN_COMMANDS({"model resnet50 --batch 64 --machine p100 -o m", 0, {""}},
                 {"replay m --budget 50% --effort quick --iterations 5 --timeline r.pftrace "
                  "--report r --save-plan p",
                  0,
                  {"takes exactly that time"}},
                 {"explain r", 0, {"where the time went"}},
                 /* The same by the report. */
                 {"timeline r --trace m --plan p -o again && cmp again r.pftrace", 0, {""}});
    decode("r.pftrace");
    check_tracks();

    snprintf(path, sizeof(path), "%s/r", folder);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    begin = next_slice(&at, "measured", "iteration")->ns;
    at = 0;
    while (getline(&line, &room, file) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *evictions = json_object_get(object, "evictions");

        if (strcmp(json_string_value(json_object_get(object, "type")), "timeline") == 0) {
            compare_line(object, begins[number_of(object, "iteration") - 1], &place);
            json_decref(object);
            continue;
        }
        ck_assert_uint_lt(iterations, 8);
        begins[iterations++] = begin;
        expect_slice(&at, "measured", "iteration", "iteration ",
                     json_string_value(json_object_get(object, "label")), begin,
                     begin + number_of(object, "time_ns"));
        begin += number_of(object, "time_ns");
        budget = number_of(object, "budget_bytes");
        for (size_t i = 0; i < json_array_size(evictions); i++) {
            returns +=
                json_is_integer(json_object_get(json_array_get(evictions, i), "back_access"));
        }
        json_decref(object);
    }
    free(line);
    fclose(file);
    ck_assert_uint_eq(iterations, 5);
    /* Nothing is there that the report does not have. */
    ck_assert_ptr_null(next_slice(&place.ops, "measured", "op"));
    ck_assert_ptr_null(next_slice(&place.replays, "measured", "replay"));
    ck_assert_ptr_null(next_slice(&place.out, "measured", "swap-out"));
    ck_assert_ptr_null(next_slice(&place.in, "measured", "swap-in"));
    compare_processes();
    ck_assert_uint_ge(check_flows(), returns);
    ck_assert_uint_gt(returns, 0);

    check_words();
    for (size_t i = 0; i < event_count; i++) {
        const struct track *track = find_track(events[i].track);

        if (track->is_counter && strcmp(track->name, "device memory") == 0) {
            ck_assert_uint_le(events[i].value, budget);
            returns = 0; /* there is one */
        }
    }
    ck_assert_uint_eq(returns, 0);
}
END_TEST

/* The simulation of a plan: the iteration takes the time that simulate prints. */
START_TEST(a_plan_is_decoded_again)
{
    size_t at = 0;
    size_t ops = 0;
    const struct event *iteration;
    json_t *object;

    write_file("t", CHAIN_TRACE);
    RUN_COMMANDS({"plan t --budget 70% -o p", 0, {""}},
                 {"simulate t p --timeline s.pftrace", 0, {""}},
                 {"timeline t --plan p -o s2.pftrace && cmp s.pftrace s2.pftrace", 0, {""}},
                 {"simulate t p --json", 0, {""}});
    object = json_loads(output, 0, NULL);
    decode("s.pftrace");
    check_tracks();
    ck_assert_uint_gt(check_flows(), 0);
    iteration = next_slice(&at, "planned", "iteration");
    ck_assert_ptr_nonnull(iteration);
    ck_assert_str_eq(iteration->name, "iteration t");
    ck_assert_uint_eq(iteration->end_ns - iteration->ns, number_of(object, "iteration_ns"));
    for (at = 0; next_slice(&at, "planned", "op") != NULL;) {
        ops++;
    }
    ck_assert_uint_eq(ops, 4);
    json_decref(object);
}
END_TEST

/* Names are data, whatever they contain. */
START_TEST(hostile_names_stay_text)
{
    static const char name[] = "</script>\\\"'\\n\\u001b[31m\\u00e9%s";
    char text[1024];
    size_t at = 0;

    snprintf(text, sizeof(text),
             TRACE_LINE MACHINE_LINE
             "{\"type\":\"tensor\",\"id\":0,\"name\":\"w\",\"bytes\":8,\"kind\":\"parameter\"}\n"
             "{\"type\":\"op\",\"name\":\"%s\",\"ns\":5,\"reads\":[0],\"writes\":[],"
             "\"updates\":[],\"replayable\":true}\n" END_LINE(1, 1),
             name);
    write_file("h", text);
    RUN_COMMANDS({"simulate h --timeline h.pftrace", 0, {""}});
    decode("h.pftrace");
    ck_assert_str_eq(next_slice(&at, "planned", "op")->name, "</script>\"'\n\x1b[31m\xc3\xa9%s");
}
END_TEST

START_TEST(other_files_are_rejected)
{
    write_file("t", CHAIN_TRACE);
    write_file("empty", "");
    write_file("text", "hello\n");
    write_file("r", "{\"type\":\"report\",\"version\":1,\"mode\":\"passive\",\"label\":\"a\","
                    "\"iteration\":1,\"time_ns\":5,\"compute_ns\":5}\n");
    write_file("cut", "{\"type\":\"report\",\"version\":1,\"mode\":\"passive\",\"label\":\"a\","
                      "\"iteration\":1,\"time_ns\":5,\"compute_ns\":5}\n"
                      "{\"type\":\"timeline\",\"version\":1,\"iteration\":1,\"label\":\"a\"}\n");
    write_file("alone", "{\"type\":\"timeline\",\"version\":1,\"iteration\":1}\n");
    RUN_COMMANDS({"plan t --budget 70% -o p", 0, {""}},
                 {"timeline empty -o x", 2, {"empty: its first line is neither"}},
                 {"timeline text -o x", 2, {"text: its first line is neither"}},
                 {"timeline p -o x", 2, {"p: its first line is neither"}},
                 {"timeline nowhere -o x", 2, {"nowhere: No such file"}},
                 {"timeline t -o x", 2, {"--plan PLAN"}},
                 {"timeline t --plan p --iteration 1 -o x", 2, {"for reports"}},
                 {"timeline r --plan p -o x", 2, {"belong together"}},
                 {"timeline r -o x", 2, {"r: has no timeline", "CAPUCHIN_TIMELINE=1"}},
                 {"timeline r --iteration 3 -o x", 2, {"r: there is no iteration 3"}},
                 {"timeline cut -o x", 2, {"cut:2"}},
                 {"timeline alone -o x", 2, {"alone:1: a timeline of iteration 1"}},
                 {"timeline r -o r", 2, {"--output r is the same file as INPUT r"}},
                 {"timeline t --plan p -o /dev/full", 2, {"/dev/full"}});
    ck_assert_int_ne(run_shell("test -e x"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tools/timeline");
    TCase *tests = tcase_create("timeline");

    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, a_replay_is_decoded_again);
    tcase_add_test(tests, a_plan_is_decoded_again);
    tcase_add_test(tests, hostile_names_stay_text);
    tcase_add_test(tests, other_files_are_rejected);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}

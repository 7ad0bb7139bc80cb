/*
 * Perfetto's protobuf format, written by hand: a message is a list of fields, each a key (number
 * and wire type) and a value, which is a varint, eight bytes, or a length and so many bytes. A
 * trace is a message whose fields are all packets, so packets are simply appended.
 *
 * The numbers are those of Perfetto's public message definitions.
 */
#include "tools/view/perfetto.h"

#include <string.h>

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

enum { TRACE_PACKET = 1 };

enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_DESCRIPTOR = 60 };

enum {
    DESCRIPTOR_UUID = 1,
    DESCRIPTOR_NAME = 2,
    DESCRIPTOR_PROCESS = 3,
    DESCRIPTOR_PARENT = 5,
    DESCRIPTOR_COUNTER = 8,
    DESCRIPTOR_CHILD_ORDERING = 11,
    DESCRIPTOR_RANK = 12
};

enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT = 3 };
enum { UNIT_BYTES = 3 };
enum { ORDERING_EXPLICIT = 3 };

enum {
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_FLOW = 47,
    EVENT_LAST_FLOW = 48
};

enum event_type { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

enum { ANNOTATION_UINT = 3, ANNOTATION_STRING = 6, ANNOTATION_NAME = 10 };

static void append_bytes(struct perfetto *trace, struct string_buffer *to, const void *bytes,
                         size_t count)
{
    if (trace->status == CAPU_OK) {
        trace->status = string_buffer_append(to, bytes, count);
    }
}

static void put_varint(struct perfetto *trace, struct string_buffer *to, uint64_t value)
{
    unsigned char bytes[10];
    size_t count = 0;

    do {
        bytes[count] = (unsigned char)(value & 0x7f);
        value >>= 7;
        bytes[count++] |= value > 0 ? 0x80 : 0;
    } while (value > 0);
    append_bytes(trace, to, bytes, count);
}

static void put_key(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                    enum wire wire)
{
    put_varint(trace, to, (uint64_t)field << 3 | wire);
}

static void put_number(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                       uint64_t value)
{
    put_key(trace, to, field, WIRE_VARINT);
    put_varint(trace, to, value);
}

static void put_fixed(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                      uint64_t value)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(value >> 8 * i);
    }
    put_key(trace, to, field, WIRE_FIXED64);
    append_bytes(trace, to, bytes, sizeof(bytes));
}

static void put_bytes(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                      const char *bytes, size_t count)
{
    put_key(trace, to, field, WIRE_BYTES);
    put_varint(trace, to, count);
    append_bytes(trace, to, bytes, count);
}

static void put_text(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                     const char *text)
{
    put_bytes(trace, to, field, text, strlen(text));
}

/* Ends a message that was made in `from`: it becomes a field of another, and `from` is empty. */
static void put_message(struct perfetto *trace, struct string_buffer *to, uint32_t field,
                        struct string_buffer *from)
{
    put_bytes(trace, to, field, from->length > 0 ? from->data : "", from->length);
    from->length = 0;
}

/* Packets of one sequence refer to nothing in each other, so no state has to be kept. */
static void end_packet(struct perfetto *trace)
{
    put_number(trace, &trace->message, PACKET_SEQUENCE, 1);
    put_message(trace, &trace->text, TRACE_PACKET, &trace->message);
}

static void begin_description(struct perfetto *trace, uint64_t track, const char *name)
{
    put_number(trace, &trace->part, DESCRIPTOR_UUID, track);
    put_text(trace, &trace->part, DESCRIPTOR_NAME, name);
    put_number(trace, &trace->part, DESCRIPTOR_CHILD_ORDERING, ORDERING_EXPLICIT);
}

static void end_description(struct perfetto *trace)
{
    put_message(trace, &trace->message, PACKET_DESCRIPTOR, &trace->part);
    end_packet(trace);
}

void perfetto_process(struct perfetto *trace, uint64_t track, int32_t pid, const char *name)
{
    begin_description(trace, track, name);
    put_number(trace, &trace->detail, PROCESS_PID, (uint64_t)pid);
    put_text(trace, &trace->detail, PROCESS_NAME, name);
    put_message(trace, &trace->part, DESCRIPTOR_PROCESS, &trace->detail);
    end_description(trace);
}

static void begin_track(struct perfetto *trace, uint64_t track, uint64_t parent, const char *name,
                        int32_t rank)
{
    begin_description(trace, track, name);
    put_number(trace, &trace->part, DESCRIPTOR_PARENT, parent);
    put_number(trace, &trace->part, DESCRIPTOR_RANK, (uint64_t)rank);
}

void perfetto_track(struct perfetto *trace, uint64_t track, uint64_t parent, const char *name,
                    int32_t rank)
{
    begin_track(trace, track, parent, name, rank);
    end_description(trace);
}

void perfetto_counter(struct perfetto *trace, uint64_t track, uint64_t parent, const char *name,
                      int32_t rank)
{
    begin_track(trace, track, parent, name, rank);
    put_number(trace, &trace->detail, COUNTER_UNIT, UNIT_BYTES);
    put_message(trace, &trace->part, DESCRIPTOR_COUNTER, &trace->detail);
    end_description(trace);
}

static void begin_event(struct perfetto *trace, enum event_type type, uint64_t track)
{
    put_number(trace, &trace->part, EVENT_TYPE, type);
    put_number(trace, &trace->part, EVENT_TRACK, track);
}

static void end_event(struct perfetto *trace, uint64_t ns)
{
    put_number(trace, &trace->message, PACKET_TIMESTAMP, ns);
    put_message(trace, &trace->message, PACKET_EVENT, &trace->part);
    end_packet(trace);
}

static void annotate(struct perfetto *trace, const struct perfetto_note *note)
{
    put_text(trace, &trace->detail, ANNOTATION_NAME, note->name);
    if (note->text != NULL) {
        put_text(trace, &trace->detail, ANNOTATION_STRING, note->text);
    } else {
        put_number(trace, &trace->detail, ANNOTATION_UINT, note->number);
    }
    put_message(trace, &trace->part, EVENT_ANNOTATION, &trace->detail);
}

void perfetto_slice(struct perfetto *trace, const struct perfetto_slice *slice)
{
    begin_event(trace, slice->is_instant ? TYPE_INSTANT : TYPE_BEGIN, slice->track);
    put_text(trace, &trace->part, EVENT_CATEGORY, slice->category);
    put_text(trace, &trace->part, EVENT_NAME, slice->name);
    for (size_t i = 0; i < slice->flow_count; i++) {
        put_fixed(trace, &trace->part, slice->ends_flows ? EVENT_LAST_FLOW : EVENT_FLOW,
                  slice->flows[i]);
    }
    for (size_t i = 0; i < PERFETTO_NOTES && slice->notes[i].name != NULL; i++) {
        annotate(trace, &slice->notes[i]);
    }
    end_event(trace, slice->begin_ns);
    if (!slice->is_instant) {
        begin_event(trace, TYPE_END, slice->track);
        end_event(trace, slice->end_ns);
    }
}

void perfetto_count(struct perfetto *trace, uint64_t track, uint64_t ns, uint64_t value)
{
    begin_event(trace, TYPE_COUNTER, track);
    put_number(trace, &trace->part, EVENT_COUNTER_VALUE, value);
    end_event(trace, ns);
}

capu_status perfetto_finish(struct perfetto *trace, struct string_buffer *text)
{
    capu_status status = trace->status;

    if (status != CAPU_OK) {
        string_buffer_finish(&trace->text);
    }
    *text = trace->text;
    string_buffer_finish(&trace->message);
    string_buffer_finish(&trace->part);
    string_buffer_finish(&trace->detail);
    *trace = (struct perfetto){0};
    return status;
}

/* Rows of a box, see rows.h. */
#include "shim/copies/rows.h"

uint64_t rows_bytes(const struct rows *rows)
{
    return (uint64_t)(rows->depth - 1) * rows->slice + (uint64_t)(rows->height - 1) * rows->pitch +
           rows->width;
}

static uint64_t address_of(const struct rows *rows, size_t row)
{
    return rows->address + row / rows->height * rows->slice + row % rows->height * rows->pitch;
}

bool rows_next(const struct rows *rows, uint64_t gap, struct rows_cursor *cursor)
{
    size_t count = rows->height * rows->depth;
    uint64_t end;

    if (cursor->row == count) {
        return false;
    }
    cursor->address = address_of(rows, cursor->row);
    cursor->is_dense = true;
    end = cursor->address + rows->width;
    cursor->row++;
    while (cursor->row < count) {
        uint64_t next = address_of(rows, cursor->row);

        if (next < end || next - end >= gap) {
            break;
        }
        cursor->is_dense &= next == end;
        end = next + rows->width;
        cursor->row++;
    }
    cursor->bytes = end - cursor->address;
    return true;
}

static size_t at_least_one(uint64_t bytes, uint64_t each, size_t most)
{
    uint64_t count = each > 0 ? bytes / each : most;

    return count < 1 ? 1 : count < most ? (size_t)count : most;
}

size_t rows_slices_in(const struct rows *rows, uint64_t bytes)
{
    return at_least_one(bytes, rows->slice, rows->depth);
}

size_t rows_rows_in(const struct rows *rows, uint64_t bytes)
{
    return at_least_one(bytes, rows->pitch, rows->height);
}

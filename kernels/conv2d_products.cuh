/*
 * conv2d on cuda as three matrix products ("implicit GEMM"). A product here is a description: how
 * many rows, columns and summands it has, where the items of both factors are, and where a sum
 * goes. One multiplication kernel (conv2d.cu) computes all three from it.
 *
 *     forward          output[channel][position] =
 *                          weight[channel][tap] input[tap][position]
 *     backward_input   input_gradient[channel][pixel] =
 *                          weight[channel][out, tap] gradient[out, tap][pixel]
 *     backward_weight  weight_gradient[channel][tap] =
 *                          gradient[channel][position] input[position][tap]
 *
 * The first factor is a matrix in memory. The second one is gathered from the images while it is
 * multiplied: unfolded in memory it would be kernel x kernel times as large as the images, all of
 * it workspace that competes with the network for the budget.
 *
 * With a stride, backward_input handles the pixels of each remainder of the stride separately:
 * those of one remainder are reached by the same taps and lie side by side as with stride 1, so no
 * thread multiplies taps that reach no output. backward_weight sums over all positions of all
 * images, for a result that is small: to occupy a device, the sum is split by images into parts,
 * which are stored in the workspace and then added in order, without atomics. In both cases the
 * parts are the depth of the grid.
 */
#ifndef CAPU_KERNELS_CONV2D_PRODUCTS_CUH
#define CAPU_KERNELS_CONV2D_PRODUCTS_CUH

#include "kernels/conv2d.h"

/*
 * One index of the gathered factor. Two of them, of a position and of a tap, find an item: their
 * coordinates and offsets add up.
 */
struct conv2d_place {
    ptrdiff_t offset;
    int y;
    int x;
    bool is_there; /* not past the end */
};

template <typename Element>
static __device__ inline float conv2d_gather(const Element *images, uint32_t height, uint32_t width,
                                             const struct conv2d_place &one,
                                             const struct conv2d_place &other)
{
    int y = one.y + other.y;
    int x = one.x + other.x;

    if (!one.is_there || !other.is_there || y < 0 || x < 0 || y >= (int)height || x >= (int)width) {
        return 0.0f;
    }
    return images[one.offset + other.offset];
}

/* Row y and column x, of images whose planes are width wide. */
static __device__ inline struct conv2d_place
conv2d_place_of(uint32_t image, int y, int x, size_t image_items, uint32_t width, bool is_there)
{
    struct conv2d_place place;

    place.y = y;
    place.x = x;
    place.offset =
        (ptrdiff_t)(image * image_items) + (ptrdiff_t)place.y * (ptrdiff_t)width + place.x;
    place.is_there = is_there;
    return place;
}

/*
 * KERNEL is the side of the kernel if it is a compile-time constant, otherwise 0. Items of either
 * element type are widened when they are loaded and rounded when they are stored.
 */
template <unsigned KERNEL, typename Element> struct conv2d_sides {
    typedef uint32_t part;
    struct conv2d conv; /* its stride is not 0 */
    uint32_t out_height;
    uint32_t out_width;
    uint32_t rows;    /* of the product */
    uint32_t columns; /* of the product */

    __device__ const Element *input() const
    {
        return (const Element *)conv.input;
    }

    __device__ const Element *weight() const
    {
        return (const Element *)conv.weight;
    }

    __device__ const Element *output_gradient() const
    {
        return (const Element *)conv.output_gradient;
    }

    __device__ uint32_t kernel() const
    {
        return KERNEL != 0 ? KERNEL : conv.kernel;
    }

    __device__ uint32_t window() const
    {
        return kernel() * kernel();
    }

    __device__ uint32_t part_of(uint32_t index) const
    {
        return index;
    }

    __device__ uint32_t columns_in(uint32_t) const
    {
        return columns;
    }

    /* The input item under the first item of the kernel, at an output position. */
    __device__ struct conv2d_place corner(uint32_t image, uint32_t position, bool is_there) const
    {
        return conv2d_place_of(image, (int)(position / out_width * conv.stride) - (int)conv.padding,
                               (int)(position % out_width * conv.stride) - (int)conv.padding,
                               (size_t)conv.input_channels * conv.height * conv.width, conv.width,
                               is_there);
    }

    /* The input item under tap `i`, counted over channels, relative to the one under the first tap.
     */
    __device__ struct conv2d_place tap(uint32_t i, bool is_there) const
    {
        uint32_t rest = i % window();

        return conv2d_place_of(i / window(), (int)(rest / kernel()), (int)(rest % kernel()),
                               (size_t)conv.height * conv.width, conv.width, is_there);
    }
};

template <unsigned KERNEL, typename Element>
struct conv2d_forward_product : conv2d_sides<KERNEL, Element> {
    static const bool IS_BY_DEPTH = false;

    __device__ uint32_t depth(uint32_t) const
    {
        return this->conv.input_channels * this->window();
    }

    __device__ float a(uint32_t row, uint32_t k, uint32_t) const
    {
        return this->weight()[(size_t)row * this->conv.input_channels * this->window() + k];
    }

    __device__ struct conv2d_place along(uint32_t k, uint32_t, bool is_there) const
    {
        return this->tap(k, is_there);
    }

    __device__ struct conv2d_place across(uint32_t column, uint32_t, bool is_there) const
    {
        uint32_t positions = this->out_height * this->out_width;

        return this->corner(column / positions, column % positions, is_there);
    }

    __device__ float b(const struct conv2d_place &along, const struct conv2d_place &across) const
    {
        return conv2d_gather(this->input(), this->conv.height, this->conv.width, along, across);
    }

    __device__ void store(uint32_t row, uint32_t column, uint32_t, float value) const
    {
        size_t positions = (size_t)this->out_height * this->out_width;
        size_t image = column / positions;
        const Element *bias = (const Element *)this->conv.bias;
        Element *output = (Element *)this->conv.output;

        output[(image * this->conv.output_channels + row) * positions + column % positions] =
            value + (bias != NULL ? (float)bias[row] : 0.0f);
    }
};

/* In one direction: the pixels of one remainder of the stride, and the taps that reach them. */
struct conv2d_phase {
    uint32_t taps; /* every stride-th one; may be 0 */
    uint32_t first_pixel;
    uint32_t pixels; /* may be 0 */
    int output;      /* the position whose first tap is on the first pixel */
};

static __device__ inline struct conv2d_phase
conv2d_phase_of(uint32_t first_tap, uint32_t side, uint32_t stride, const struct conv2d &conv)
{
    struct conv2d_phase phase;

    phase.taps = (conv.kernel + stride - 1 - first_tap) / stride;
    phase.first_pixel = (first_tap + stride - conv.padding % stride) % stride;
    phase.pixels = (side + stride - 1 - phase.first_pixel) / stride;
    phase.output = (int)((phase.first_pixel + conv.padding - first_tap) / stride);
    return phase;
}

/* A known KERNEL implies stride 1: a single phase with all pixels and taps. */
template <unsigned KERNEL, typename Element>
struct conv2d_backward_input_product : conv2d_sides<KERNEL, Element> {
    static const bool IS_BY_DEPTH = false;

    struct part {
        uint32_t first_tap;
        struct conv2d_phase y;
        struct conv2d_phase x;
    };

    __device__ uint32_t stride() const
    {
        return KERNEL != 0 ? 1 : this->conv.stride;
    }

    __device__ struct part part_of(uint32_t index) const
    {
        uint32_t y = KERNEL != 0 ? 0 : index / stride();
        uint32_t x = KERNEL != 0 ? 0 : index % stride();
        struct part part;

        part.first_tap = y * this->kernel() + x;
        part.y = conv2d_phase_of(y, this->conv.height, stride(), this->conv);
        part.x = conv2d_phase_of(x, this->conv.width, stride(), this->conv);
        return part;
    }

    __device__ uint32_t columns_in(const struct part &part) const
    {
        return this->conv.batch * part.y.pixels * part.x.pixels;
    }

    __device__ uint32_t taps_across(const struct part &part) const
    {
        return KERNEL != 0 ? KERNEL : part.x.taps;
    }

    __device__ uint32_t taps_of(const struct part &part) const
    {
        return KERNEL != 0 ? KERNEL * KERNEL : part.y.taps * part.x.taps;
    }

    __device__ uint32_t depth(const struct part &part) const
    {
        return this->conv.output_channels * taps_of(part);
    }

    __device__ float a(uint32_t row, uint32_t k, const struct part &part) const
    {
        uint32_t out = k / taps_of(part);
        uint32_t rest = k % taps_of(part);
        uint32_t tap = rest;
        size_t out_row;

        if (KERNEL == 0) {
            tap = part.first_tap +
                  (rest / part.x.taps * this->kernel() + rest % part.x.taps) * stride();
        }
        out_row = (size_t)out * this->conv.input_channels + row;
        return this->weight()[out_row * this->window() + tap];
    }

    __device__ struct conv2d_place along(uint32_t k, const struct part &part, bool is_there) const
    {
        uint32_t rest;

        if (!is_there) {
            return {}; /* there may be no taps or pixels to divide by */
        }
        rest = k % taps_of(part);
        return conv2d_place_of(
            k / taps_of(part), -(int)(rest / taps_across(part)), -(int)(rest % taps_across(part)),
            (size_t)this->out_height * this->out_width, this->out_width, is_there);
    }

    /* Image, row and column within the pixels of the part. */
    __device__ struct conv2d_place across(uint32_t column, const struct part &part,
                                          bool is_there) const
    {
        uint32_t pixels = part.y.pixels * part.x.pixels;
        uint32_t pixel;

        if (!is_there) {
            return {};
        }
        pixel = column % pixels;
        return conv2d_place_of(column / pixels, part.y.output + (int)(pixel / part.x.pixels),
                               part.x.output + (int)(pixel % part.x.pixels),
                               (size_t)this->conv.output_channels * this->out_height *
                                   this->out_width,
                               this->out_width, is_there);
    }

    __device__ float b(const struct conv2d_place &along, const struct conv2d_place &across) const
    {
        return conv2d_gather(this->output_gradient(), this->out_height, this->out_width, along,
                             across);
    }

    __device__ void store(uint32_t row, uint32_t column, const struct part &part, float value) const
    {
        uint32_t pixels = part.y.pixels * part.x.pixels;
        uint32_t pixel = column % pixels;
        uint32_t y = part.y.first_pixel + pixel / part.x.pixels * stride();
        uint32_t x = part.x.first_pixel + pixel % part.x.pixels * stride();
        size_t plane = (size_t)(column / pixels) * this->conv.input_channels + row;
        Element *input_gradient = (Element *)this->conv.input_gradient;

        input_gradient[(plane * this->conv.height + y) * this->conv.width + x] = value;
    }
};

/* Part p has the images p, p + parts, ... */
template <unsigned KERNEL, typename Element>
struct conv2d_backward_weight_product : conv2d_sides<KERNEL, Element> {
    static const bool IS_BY_DEPTH = true;
    uint32_t parts;

    __device__ uint32_t image(uint32_t k, uint32_t part) const
    {
        return part + k / (this->out_height * this->out_width) * parts;
    }

    __device__ uint32_t depth(uint32_t part) const
    {
        return (this->conv.batch - part + parts - 1) / parts * this->out_height * this->out_width;
    }

    __device__ float a(uint32_t row, uint32_t k, uint32_t part) const
    {
        uint32_t positions = this->out_height * this->out_width;
        size_t plane = (size_t)image(k, part) * this->conv.output_channels + row;

        return this->output_gradient()[plane * positions + k % positions];
    }

    __device__ struct conv2d_place along(uint32_t k, uint32_t part, bool is_there) const
    {
        return this->corner(image(k, part), k % (this->out_height * this->out_width), is_there);
    }

    __device__ struct conv2d_place across(uint32_t column, uint32_t, bool is_there) const
    {
        return this->tap(column, is_there);
    }

    __device__ float b(const struct conv2d_place &along, const struct conv2d_place &across) const
    {
        return conv2d_gather(this->input(), this->conv.height, this->conv.width, along, across);
    }

    __device__ void store(uint32_t row, uint32_t column, uint32_t part, float value) const
    {
        this->conv.workspace[((size_t)part * this->rows + row) * this->columns + column] = value;
    }
};

#endif

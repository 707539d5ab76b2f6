/* Tensor maps: the rules of a descriptor, in the order of their codes, and its words. */
#include "tilewright_rules.h"

#define REFUSED(code, field) TW_REFUSAL(TW_ERROR_##code, FIELD_##field)

/* Numbers of fields in a descriptor. */
enum {
    FIELD_VERSION, FIELD_RANK, FIELD_MODE, FIELD_ELEMENT, FIELD_INTERLEAVE, FIELD_SWIZZLE, FIELD_FILL,
    FIELD_L2_PROMOTION, FIELD_UNALIGNED, FIELD_GATHER0, FIELD_FILL_CONSTANT, FIELD_ADDRESS, FIELD_SIZE, FIELD_BOX,
    FIELD_TRAVERSAL, FIELD_CHANNELS, FIELD_PIXELS, FIELD_LOWER, FIELD_UPPER, FIELD_STRIDE
};

#define RANKS 5

static uint32_t element_bytes(uint32_t element)
{
    return 1u << tw_element_log2(element);
}

static tw_refusal address_rules(const struct tw_descriptor *map)
{
    uint32_t granule = map->unaligned ? element_bytes(map->element) : map->interleave == TW_INTERLEAVE_B32 ? 32 : 16;

    if (map->fill > TW_FILL_CONSTANT || (map->fill == TW_FILL_NAN && map->element < TW_ELEMENT_F16))
        return REFUSED(FILL, FILL);
    if ((uint32_t)map->address & (granule - 1))
        return REFUSED(ADDRESS, ADDRESS);
    for (unsigned d = 0; d < map->rank; d++)
        if (map->size[d] - 1 > UINT32_MAX)
            return REFUSED(SIZE, SIZE);
    for (unsigned d = 0; d + 1 < map->rank; d++)
        if (map->stride[d] >> TW_DESCRIPTOR_STRIDE_WIDTH || (uint32_t)map->stride[d] & (granule - 1))
            return REFUSED(STRIDE, STRIDE);
    return 0;
}

static tw_refusal box_rules(const struct tw_descriptor *map)
{
    int tile = map->mode == TW_MODE_TILE;
    uint32_t row_bytes = (tile ? map->box[0] : map->channels) * element_bytes(map->element);

    if (!tile && map->channels > 256)
        row_bytes = UINT32_MAX & ~15u; /* longer than any span; CHANNELS is left to im2col_rules */
    for (unsigned d = 0; tile && d < map->rank; d++)
        if (map->box[d] - 1 > 255)
            return REFUSED(BOX, BOX);
    if (tile && row_bytes % 16 && !map->interleave && !map->unaligned)
        return REFUSED(BOX, BOX);
    for (unsigned d = 0; d < map->rank; d++)
        if (map->traversal[d] - 1 > 7)
            return REFUSED(TRAVERSAL, TRAVERSAL);
    if (map->interleave == TW_INTERLEAVE_B32 ? map->swizzle != TW_SWIZZLE_B32
                                             : map->swizzle && !map->interleave && row_bytes > 16u << map->swizzle)
        return REFUSED(SWIZZLE, SWIZZLE);
    return 0;
}

/* Numbers of dimensions beyond the rank that are not neutral. */
static tw_refusal unused_rules(const struct tw_descriptor *map)
{
    uint32_t field = 0;

    for (unsigned d = map->rank; d < RANKS; d++) {
        if (d && map->stride[d - 1] && !field)
            field = FIELD_STRIDE;
        if (map->traversal[d] != 1 && (!field || field > FIELD_TRAVERSAL))
            field = FIELD_TRAVERSAL;
        if (map->box[d] != 1 && (!field || field > FIELD_BOX))
            field = FIELD_BOX;
        if (map->size[d] != 1)
            field = FIELD_SIZE;
    }
    return field ? TW_REFUSAL(TW_ERROR_UNUSED, field) : 0;
}

static tw_refusal im2col_rules(const struct tw_descriptor *map)
{
    static const uint8_t corner_bits[] = {16, 8, 5}; /* by spatial dimensions, less one */
    unsigned spatial = map->rank - 2, first = !map->interleave;
    int32_t limit = (int32_t)1 << (corner_bits[spatial - 1] - 1);
    uint32_t row_bytes = map->channels * element_bytes(map->element);

    for (unsigned d = 0; d < spatial; d++)
        if (map->lower[d] < -limit || map->lower[d] >= limit)
            return REFUSED(CORNER, LOWER);
    for (unsigned d = 0; d < spatial; d++)
        if (map->upper[d] < -limit || map->upper[d] >= limit ||
            (int64_t)map->lower[d] - map->upper[d] >= (int64_t)map->size[first + d])
            return REFUSED(CORNER, UPPER);
    if (map->channels - 1 > 255 || (map->interleave ? row_bytes != 8u << map->interleave
                                                    : row_bytes % 16 && !map->unaligned))
        return REFUSED(CHANNELS, CHANNELS);
    return map->pixels - 1 > 1023 ? REFUSED(PIXELS, PIXELS) : 0;
}

/* Rules that do not depend on the hardware. */
TW_OUT_OF_LINE static tw_refusal map_rules(const struct tw_descriptor *map)
{
    uint32_t lowest = map->mode == TW_MODE_IM2COL || map->interleave ? 3 : 1;
    tw_refusal refusal;

    if (map->rank < lowest || map->rank > RANKS)
        return REFUSED(RANK, RANK);
    if (map->element > TW_ELEMENT_F8E5M2)
        return REFUSED(ELEMENT, ELEMENT);
    if (map->interleave > TW_INTERLEAVE_B32)
        return REFUSED(INTERLEAVE, INTERLEAVE);
    refusal = address_rules(map);
    if (!refusal)
        refusal = box_rules(map);
    if (!refusal)
        refusal = unused_rules(map);
    return refusal || map->mode == TW_MODE_TILE ? refusal : im2col_rules(map);
}

tw_status tw_tensor_map(uint64_t descriptor[TW_DESCRIPTOR_WORDS], const struct tw_descriptor *map)
{
    struct tw_descriptor cut = *map;
    int tile = map->mode == TW_MODE_TILE;
    tw_refusal refusal;

    if (map->mode > TW_MODE_IM2COL)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_VALUE, FIELD_MODE);
    for (unsigned d = 0; d < RANKS; d++) {
        /* Beyond the rank the stored number is zero. */
        if (d >= map->rank) {
            cut.size[d] = cut.box[d] = 1;
            if (d)
                cut.stride[d - 1] = 0;
        }
        if (d >= map->rank || !map->traversal[d])
            cut.traversal[d] = 1;
        if (!tile)
            cut.box[d] = 1;
        if (d < 3 && (tile || d + 2 >= map->rank))
            cut.lower[d] = cut.upper[d] = 0;
    }
    if (tile)
        cut.channels = cut.pixels = 1;
    refusal = map->swizzle > TW_SWIZZLE_B128 ? REFUSED(SWIZZLE, SWIZZLE) : map_rules(&cut);
    return refusal ? tw_refused(TW_FROM_TMAU, refusal) : tw_pack(descriptor, &tw_descriptor_format, &cut);
}

/* Fields that need a feature which the hardware lacks. */
static tw_refusal feature_rules(const struct tw_descriptor *map, uint32_t features)
{
    int tile = map->mode == TW_MODE_TILE, steps = 0;

    for (unsigned d = !map->interleave; d < RANKS; d++)
        steps |= map->traversal[d] != 1;
    if (!tile && TW_LACKS(features, IM2COL))
        return REFUSED(UNSUPPORTED, MODE);
    if (map->element == TW_ELEMENT_TF32 && TW_LACKS(features, TF32))
        return REFUSED(UNSUPPORTED, ELEMENT);
    if (map->interleave && TW_LACKS(features, INTERLEAVE))
        return REFUSED(UNSUPPORTED, INTERLEAVE);
    if (map->swizzle && TW_LACKS(features, SWIZZLE))
        return REFUSED(UNSUPPORTED, SWIZZLE);
    if (map->unaligned && TW_LACKS(features, UNALIGNED))
        return REFUSED(UNSUPPORTED, UNALIGNED);
    if (tile && map->gather0 && TW_LACKS(features, GATHER))
        return REFUSED(UNSUPPORTED, GATHER0);
    return tile && steps && TW_LACKS(features, GATHER) ? REFUSED(UNSUPPORTED, TRAVERSAL) : 0;
}

tw_status tw_check_descriptor(const uint64_t descriptor[TW_DESCRIPTOR_WORDS], uint32_t features)
{
    struct tw_descriptor map;
    tw_refusal refusal;

    tw_unpack(&map, &tw_descriptor_format, descriptor);
    if ((descriptor[0] & 0xFF) != TW_DESCRIPTOR_LAYOUT_VERSION)
        refusal = REFUSED(VERSION, VERSION);
    else if (tw_has_reserved(descriptor, &tw_descriptor_format, &map))
        refusal = TW_REFUSAL(TW_ERROR_RESERVED, 0);
    else
        refusal = feature_rules(&map, features);
    if (!refusal)
        refusal = map_rules(&map);
    return tw_refused(TW_FROM_TMAU, refusal);
}

/* Tensor maps: the rules of a descriptor, in the order of their codes, and its words. */
#include "tilewright.h"

#define REFUSED(code, field) TW_STATUS(TW_FROM_TMAU, TW_ERROR_##code, FIELD_##field)

/* Numbers of fields in a descriptor. */
enum {
    FIELD_VERSION, FIELD_RANK, FIELD_MODE, FIELD_ELEMENT, FIELD_INTERLEAVE, FIELD_SWIZZLE, FIELD_FILL,
    FIELD_L2_PROMOTION, FIELD_UNALIGNED, FIELD_GATHER0, FIELD_FILL_CONSTANT, FIELD_ADDRESS, FIELD_SIZE, FIELD_BOX,
    FIELD_TRAVERSAL, FIELD_CHANNELS, FIELD_PIXELS, FIELD_LOWER, FIELD_UPPER, FIELD_STRIDE
};

#define RANKS 5

static uint32_t element_bytes(uint32_t element)
{
    /* Log2 of the bytes of each element, two bits each. */
    return 1u << (UINT32_C(0x02E5FA50) >> (2 * element) & 3);
}

static tw_status address_rules(const struct tw_descriptor *map)
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

static tw_status box_rules(const struct tw_descriptor *map)
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

/* Rules of a map cut to its rank, but those of im2col. */
static tw_status map_rules(const struct tw_descriptor *map)
{
    uint32_t lowest = map->mode == TW_MODE_IM2COL || map->interleave ? 3 : 1;
    tw_status status;

    if (map->rank < lowest || map->rank > RANKS)
        return REFUSED(RANK, RANK);
    if (map->element > TW_ELEMENT_F8E5M2)
        return REFUSED(ELEMENT, ELEMENT);
    if (map->interleave > TW_INTERLEAVE_B32)
        return REFUSED(INTERLEAVE, INTERLEAVE);
    status = address_rules(map);
    return status ? status : box_rules(map);
}

static tw_status im2col_rules(const struct tw_descriptor *map)
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

tw_status tw_tensor_map(uint64_t descriptor[TW_DESCRIPTOR_WORDS], const struct tw_descriptor *map)
{
    struct tw_descriptor cut = *map;
    int tile = map->mode == TW_MODE_TILE;
    tw_status status;

    if (map->mode > TW_MODE_IM2COL)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_VALUE, FIELD_MODE);
    if (map->swizzle > TW_SWIZZLE_B128)
        return REFUSED(SWIZZLE, SWIZZLE);
    for (unsigned d = 0; d < RANKS; d++) {
        /* Beyond the rank the stored number is zero. */
        if (d >= map->rank)
            cut.size[d] = cut.box[d] = 1;
        if (d >= map->rank || !map->traversal[d])
            cut.traversal[d] = 1;
        if (!tile)
            cut.box[d] = 1;
        if (d && d >= map->rank)
            cut.stride[d - 1] = 0;
    }
    for (unsigned d = 0; d < 3; d++)
        if (tile || d + 2 >= map->rank)
            cut.lower[d] = cut.upper[d] = 0;
    if (tile)
        cut.channels = cut.pixels = 1;
    status = map_rules(&cut);
    if (!status && cut.mode == TW_MODE_IM2COL)
        status = im2col_rules(&cut);
    return status ? status : tw_pack(descriptor, &tw_descriptor_format, &cut);
}

static uint64_t reserved_bits(const uint64_t *descriptor, const struct tw_descriptor *map)
{
    uint64_t again[TW_DESCRIPTOR_WORDS], reserved = 0;

    tw_pack(again, &tw_descriptor_format, map);
    tw_put(again, TW_DESCRIPTOR_VERSION_LSB, TW_DESCRIPTOR_VERSION_WIDTH, descriptor[0]);
    for (unsigned word = 0; word < TW_DESCRIPTOR_WORDS; word++)
        reserved |= again[word] ^ descriptor[word];
    return reserved;
}

/* Fields that need a feature which the hardware lacks. */
static tw_status feature_rules(const struct tw_descriptor *map, uint32_t features)
{
#define LACKS(feature) (!(features >> TW_REG_FEATURES_##feature##_LSB & 1))
    int tile = map->mode == TW_MODE_TILE, steps = 0;

    for (unsigned d = !map->interleave; d < RANKS; d++)
        steps |= map->traversal[d] != 1;
    if (!tile && LACKS(IM2COL))
        return REFUSED(UNSUPPORTED, MODE);
    if (map->element == TW_ELEMENT_TF32 && LACKS(TF32))
        return REFUSED(UNSUPPORTED, ELEMENT);
    if (map->interleave && LACKS(INTERLEAVE))
        return REFUSED(UNSUPPORTED, INTERLEAVE);
    if (map->swizzle && LACKS(SWIZZLE))
        return REFUSED(UNSUPPORTED, SWIZZLE);
    if (map->unaligned && LACKS(UNALIGNED))
        return REFUSED(UNSUPPORTED, UNALIGNED);
    if (tile && map->gather0 && LACKS(GATHER))
        return REFUSED(UNSUPPORTED, GATHER0);
    return tile && steps && LACKS(GATHER) ? REFUSED(UNSUPPORTED, TRAVERSAL) : 0;
#undef LACKS
}

/* Numbers that are stored for dimensions beyond the rank. */
static tw_status unused_rules(const struct tw_descriptor *map)
{
    uint32_t field = 0;

    for (unsigned d = RANKS; d-- > map->rank;) {
        if (d && map->stride[d - 1] && !field)
            field = FIELD_STRIDE;
        if (map->traversal[d] != 1 && (!field || field > FIELD_TRAVERSAL))
            field = FIELD_TRAVERSAL;
        if (map->box[d] != 1 && (!field || field > FIELD_BOX))
            field = FIELD_BOX;
        if (map->size[d] != 1)
            field = FIELD_SIZE;
    }
    return field ? TW_STATUS(TW_FROM_TMAU, TW_ERROR_UNUSED, field) : 0;
}

tw_status tw_check_descriptor(const uint64_t descriptor[TW_DESCRIPTOR_WORDS], uint32_t features)
{
    struct tw_descriptor map;
    tw_status status;

    tw_unpack(&map, &tw_descriptor_format, descriptor);
    if ((descriptor[0] & 0xFF) != TW_DESCRIPTOR_LAYOUT_VERSION)
        return REFUSED(VERSION, VERSION);
    if (reserved_bits(descriptor, &map))
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_RESERVED, 0);
    status = feature_rules(&map, features);
    if (!status)
        status = map_rules(&map);
    if (!status)
        status = unused_rules(&map);
    return status || map.mode == TW_MODE_TILE ? status : im2col_rules(&map);
}

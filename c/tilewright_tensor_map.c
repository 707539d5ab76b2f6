/* Tensor maps: the rules of a descriptor, in the order of their codes, and its words. */
#include "tilewright_rules.h"

/* Numbers of fields in a descriptor. */
enum {
    FIELD_VERSION, FIELD_RANK, FIELD_MODE, FIELD_ELEMENT, FIELD_INTERLEAVE, FIELD_SWIZZLE, FIELD_FILL,
    FIELD_L2_PROMOTION, FIELD_UNALIGNED, FIELD_GATHER0, FIELD_FILL_CONSTANT, FIELD_ADDRESS, FIELD_SIZE, FIELD_BOX,
    FIELD_TRAVERSAL, FIELD_CHANNELS, FIELD_PIXELS, FIELD_LOWER, FIELD_UPPER, FIELD_STRIDE
};

#define RANKS 5
#define RULE(condition, code, field) condition, TW_RULE_REFUSE, TW_ERROR_##code, FIELD_##field
#define F(field) FIELD_##field
/* Whether a field is not 1 to 2^bits. */
#define EXCEEDS(field, bits) SHR(SUB(F(field), C(1)), C(bits))
#define IN_RANK BELOW(INDEX, F(RANK))

/* Fields that need a feature which the hardware lacks. */
static const uint8_t feature_rules[] = {
    TW_FROM_TMAU,
    RULE(BOTH(LACKS(IM2COL), F(MODE)), UNSUPPORTED, MODE),
    RULE(BOTH(LACKS(TF32), EQUAL(F(ELEMENT), C(TW_ELEMENT_TF32))), UNSUPPORTED, ELEMENT),
    RULE(BOTH(LACKS(INTERLEAVE), F(INTERLEAVE)), UNSUPPORTED, INTERLEAVE),
    RULE(BOTH(LACKS(SWIZZLE), F(SWIZZLE)), UNSUPPORTED, SWIZZLE),
    RULE(BOTH(LACKS(UNALIGNED), F(UNALIGNED)), UNSUPPORTED, UNALIGNED),
    STOP_IF(F(MODE)),
    STOP_IF(NOT(LACKS(GATHER))),
    RULE(F(GATHER0), UNSUPPORTED, GATHER0),
    EACH(RANKS),
        /* Dimension 0 has no steps without interleave. */
        RULE(BOTH(NOT(BELOW(INDEX, NOT(F(INTERLEAVE)))), DIFFER(F(TRAVERSAL), C(1))), UNSUPPORTED, TRAVERSAL),
    AGAIN,
    END
};

/* Local variables of map_rules. */
enum { UNALIGNED_ROWS, ELEMENT_SHIFT, GRANULE_MASK, ROW_BYTES, SPATIAL, CORNER_BITS };

#define CORNER_EXCEEDS(field) SHR(ADD(F(field), SHL(C(1), SUB(GET(CORNER_BITS), C(1)))), GET(CORNER_BITS))
#define IN_SPACE BELOW(INDEX, GET(SPATIAL))

/* Rules that do not depend on the hardware. */
static const uint8_t map_rules[] = {
    TW_FROM_TMAU,
    RULE(OR(BELOW(F(RANK), SELECT(OR(F(MODE), F(INTERLEAVE)), C(3), C(1))), BELOW(C(RANKS), F(RANK))), RANK, RANK),
    RULE(BELOW(C(TW_ELEMENT_F8E5M2), F(ELEMENT)), ELEMENT, ELEMENT),
    RULE(BELOW(C(TW_INTERLEAVE_B32), F(INTERLEAVE)), INTERLEAVE, INTERLEAVE),

    SET(ELEMENT_SHIFT, ELEMENT_LOG2(F(ELEMENT))),
    SET(GRANULE_MASK, SUB(SELECT(F(UNALIGNED), SHL(C(1), GET(ELEMENT_SHIFT)),
                                 SELECT(BELOW(C(TW_INTERLEAVE_B16), F(INTERLEAVE)), C(32), C(16))), C(1))),
    RULE(OR(BELOW(C(TW_FILL_CONSTANT), F(FILL)),
            BOTH(EQUAL(F(FILL), C(TW_FILL_NAN)), BELOW(F(ELEMENT), C(TW_ELEMENT_F16)))), FILL, FILL),
    RULE(AND(F(ADDRESS), GET(GRANULE_MASK)), ADDRESS, ADDRESS),
    EACH(RANKS), RULE(BOTH(IN_RANK, EXCEEDS(SIZE, 32)), SIZE, SIZE), AGAIN,
    EACH(RANKS - 1),
        RULE(BOTH(BELOW(ADD(INDEX, C(1)), F(RANK)),
                  OR(SHR(F(STRIDE), C(TW_DESCRIPTOR_STRIDE_WIDTH)), AND(F(STRIDE), GET(GRANULE_MASK)))), STRIDE, STRIDE),
    AGAIN,

    SET(ROW_BYTES, SHL(SELECT(F(MODE), F(CHANNELS), F(BOX)), GET(ELEMENT_SHIFT))),
    SET(UNALIGNED_ROWS, BOTH(NOT(F(UNALIGNED)), AND(GET(ROW_BYTES), C(15)))),
    EACH(RANKS), RULE(BOTH(IN_RANK, BOTH(NOT(F(MODE)), EXCEEDS(BOX, 8))), BOX, BOX), AGAIN,
    RULE(BOTH(NOT(F(INTERLEAVE)), BOTH(NOT(F(MODE)), GET(UNALIGNED_ROWS))), BOX, BOX),
    EACH(RANKS), RULE(BOTH(IN_RANK, EXCEEDS(TRAVERSAL, 3)), TRAVERSAL, TRAVERSAL), AGAIN,
    RULE(SELECT(F(INTERLEAVE),
                BOTH(EQUAL(F(INTERLEAVE), C(TW_INTERLEAVE_B32)), DIFFER(F(SWIZZLE), C(TW_SWIZZLE_B32))),
                BOTH(BELOW(SHL(C(16), F(SWIZZLE)), GET(ROW_BYTES)), F(SWIZZLE))), SWIZZLE, SWIZZLE),

    /* Dimensions beyond the rank are neutral; stride 0 is that of dimension 1. */
    EACH(RANKS), RULE(BOTH(NOT(IN_RANK), DIFFER(F(SIZE), C(1))), UNUSED, SIZE), AGAIN,
    EACH(RANKS), RULE(BOTH(NOT(IN_RANK), DIFFER(F(BOX), C(1))), UNUSED, BOX), AGAIN,
    EACH(RANKS), RULE(BOTH(NOT(IN_RANK), DIFFER(F(TRAVERSAL), C(1))), UNUSED, TRAVERSAL), AGAIN,
    EACH(RANKS - 1), RULE(BOTH(NOT(BELOW(ADD(INDEX, C(1)), F(RANK))), F(STRIDE)), UNUSED, STRIDE), AGAIN,

    STOP_IF(NOT(F(MODE))),
    SET(SPATIAL, SUB(F(RANK), C(2))),
    SET(CORNER_BITS, SELECT(BELOW(C(2), GET(SPATIAL)), C(5), SHR(C(32), GET(SPATIAL)))), /* 16, 8, 5 */
    EACH(3), RULE(BOTH(IN_SPACE, CORNER_EXCEEDS(LOWER)), CORNER, LOWER), AGAIN,
    EACH(3),
        RULE(BOTH(IN_SPACE, OR(CORNER_EXCEEDS(UPPER),
                               NOT(LESS(SUB(F(LOWER), F(UPPER)), AT(NOT(F(INTERLEAVE)), F(SIZE)))))), CORNER, UPPER),
    AGAIN,
    RULE(OR(EXCEEDS(CHANNELS, 8),
            SELECT(F(INTERLEAVE), DIFFER(GET(ROW_BYTES), SHL(C(8), F(INTERLEAVE))), GET(UNALIGNED_ROWS))),
         CHANNELS, CHANNELS),
    RULE(EXCEEDS(PIXELS, 10), PIXELS, PIXELS),
    END
};

tw_status tw_tensor_map(uint64_t descriptor[TW_DESCRIPTOR_WORDS], const struct tw_descriptor *map)
{
    struct tw_descriptor cut = *map;
    int tile = map->mode == TW_MODE_TILE;
    tw_status status;

    if (map->mode > TW_MODE_IM2COL)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_VALUE, FIELD_MODE);
    if (map->swizzle > TW_SWIZZLE_B128)
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_SWIZZLE, FIELD_SWIZZLE);
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
    status = tw_check_rules(map_rules, &tw_descriptor_format, &cut, NULL, NULL);
    return status ? status : tw_pack(descriptor, &tw_descriptor_format, &cut);
}

tw_status tw_check_descriptor(const uint64_t descriptor[TW_DESCRIPTOR_WORDS], uint32_t features)
{
    struct tw_descriptor map;
    tw_status status = tw_unpack_checked(&map, &tw_descriptor_format, descriptor);

    if (status)
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_VERSION - 1, 0) + status;
    status = tw_check_rules(feature_rules, &tw_descriptor_format, &map, NULL, &features);
    return status ? status : tw_check_rules(map_rules, &tw_descriptor_format, &map, NULL, NULL);
}

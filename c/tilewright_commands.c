/* Rules of commands: what hardware without windows refuses, in the order of codes. */
#include "tilewright_rules.h"

#define RULE(condition, code, format, field) condition, TW_RULE_REFUSE, TW_ERROR_##code, TW_COMMAND_FIELD + format##_##field

/* Numbers of fields in their formats. */
enum { COMMAND_OPCODE, COMMAND_SIGNAL, COMMAND_FILL, COMMAND_REDUCTION, COMMAND_TAG, COMMAND_SMEM, COMMAND_BARRIER,
       COMMAND_DESCRIPTOR, COMMAND_COORDS, COMMAND_OFFSETS };
enum { BLOCK_OPCODE, BLOCK_SIGNAL, BLOCK_REDUCTION, BLOCK_ELEMENT, BLOCK_TAG, BLOCK_SIZE, BLOCK_BARRIER,
       BLOCK_SOURCE_SPACE, BLOCK_DESTINATION_SPACE, BLOCK_SOURCE, BLOCK_DESTINATION };
enum { REPLACE_OPCODE, REPLACE_TAG, REPLACE_FIELD, REPLACE_INDEX, REPLACE_DESCRIPTOR, REPLACE_VALUE };
enum { LANES_OPCODE, LANES_SIGNAL, LANES_ELEMENT, LANES_TAG, LANES_BARRIER, LANES_SOURCE, LANES_DESTINATION,
       LANES_SHAPE, LANES_LANES_LOG2, LANES_EU_LOG2, LANES_SOURCE_LAYOUT, LANES_DESTINATION_LAYOUT, LANES_SOURCE_LANE,
       LANES_DESTINATION_LANE };
/* The fields of a descriptor that rules of commands mention. */
enum { MAP_RANK = 1, MAP_MODE, MAP_ELEMENT, MAP_INTERLEAVE, MAP_SWIZZLE, MAP_GATHER0 = 9, MAP_SIZE = 12, MAP_BOX,
       MAP_TRAVERSAL, MAP_CHANNELS, MAP_PIXELS, MAP_LOWER, MAP_UPPER };
#define MAP(field) TW_RULE_MAP + MAP_##field
#define MAP_RULE(condition, code, field) condition, TW_RULE_REFUSE, TW_ERROR_##code, MAP_##field

#define SMEM HARDWARE(smem_bytes)
/* The elements whose sums need hardware of their own. */
#define IS_FLOAT_SUM(element) BELOW(SUB(element, C(TW_ELEMENT_F16)), C(TW_ELEMENT_F32 - TW_ELEMENT_F16 + 1))
/* Whether a reduction does not exist for an element; the constants have a bit for each from U32 on. */
#define NO_REDUCTION(reduction, element) \
    OR(BELOW(C(TW_REDUCTION_XOR), reduction), \
       NOT(AND(SHR(SHL(SELECT(BELOW(C(TW_REDUCTION_DEC), reduction), C(0xF), \
                              SELECT(BELOW(C(TW_REDUCTION_MAX), reduction), C(1), \
                                     SELECT(BELOW(C(TW_REDUCTION_ADD), reduction), C(0x3F), \
                                            SELECT(reduction, C(0x77), C(0))))), \
                       C(TW_ELEMENT_U32)), element), C(1))))
/* The rules of the barrier of a command that signals. */
#define BARRIER_RULES(signals, format) \
    RULE(BOTH(signals, AND(format##_BARRIER, C(7))), BARRIER_ALIGNMENT, format, BARRIER), \
    RULE(BOTH(signals, BELOW(SMEM, ADD(format##_BARRIER, C(8)))), BARRIER_RANGE, format, BARRIER)

/* Local variables of tensor_rules. */
enum { WRITES, SPATIAL, OFFSET_BITS, ADDRESS, ROWS, ROW, SPAN, SIGNALS };
#define IN_SPACE BELOW(INDEX, GET(SPATIAL))
#define STEPS DIV(SUB(ADD(MAP(BOX), MAP(TRAVERSAL)), C(1)), MAP(TRAVERSAL))
/* Whether the index is that of a dimension that counts rows. */
#define COUNTS_ROWS \
    BOTH(BELOW(SUB(INDEX, C(1)), SUB(MAP(RANK), C(1))), NOT(BOTH(EQUAL(INDEX, SUB(MAP(RANK), C(2))), MAP(INTERLEAVE))))

#define IS(opcode) EQUAL(COMMAND_OPCODE, C(TW_OPCODE_##opcode))

/* Rules of a command with a descriptor that come before those of the descriptor. */
static const uint8_t fetch_rules[] = {
    TW_FROM_TMAU,
    RULE(AND(COMMAND_DESCRIPTOR, C(63)), DESCRIPTOR_ALIGNMENT, COMMAND, DESCRIPTOR),
    RULE(OR(BOTH(IS(STORE), LACKS(STORES)), BOTH(IS(REDUCE), LACKS(REDUCTIONS_GLOBAL))),
         UNSUPPORTED, COMMAND, OPCODE),
    END
};

/* Rules of a command with its descriptor, which is legal. */
static const uint8_t tensor_rules[] = {
    TW_FROM_TMAU,
    SET(WRITES, OR(IS(STORE), IS(REDUCE))),
    SET(SPATIAL, SELECT(MAP(MODE), SUB(MAP(RANK), C(2)), C(0))),
    MAP_RULE(BOTH(BOTH(IS(REDUCE), LACKS(REDUCTIONS_FLOAT)), IS_FLOAT_SUM(MAP(ELEMENT))), UNSUPPORTED, ELEMENT),
    EACH(3), MAP_RULE(BOTH(BOTH(GET(WRITES), IN_SPACE), LESS(MAP(LOWER), C(0))), CORNER, LOWER), AGAIN,
    EACH(3), MAP_RULE(BOTH(BOTH(GET(WRITES), IN_SPACE), LESS(C(0), MAP(UPPER))), CORNER, UPPER), AGAIN,
    EACH(TW_COMMAND_COORDS_COUNT),
        RULE(SELECT(BELOW(INDEX, MAP(RANK)), BOTH(GET(WRITES), LESS(COMMAND_COORDS, C(0))), COMMAND_COORDS),
             COORDS, COMMAND, COORDS),
    AGAIN,
    EACH(3),
        RULE(BOTH(IN_SPACE, OR(LESS(AT(NOT(MAP(INTERLEAVE)), COMMAND_COORDS), MAP(LOWER)),
                               NOT(LESS(AT(NOT(MAP(INTERLEAVE)), SUB(COMMAND_COORDS, MAP(SIZE))), MAP(UPPER))))),
             START, COMMAND, COORDS),
    AGAIN,

    SET(ADDRESS, SELECT(OR(IS(PREFETCH), BOTH(GET(WRITES), COMMAND_FILL)), C(0), COMMAND_SMEM)),
    RULE(AND(GET(ADDRESS), C(127)), SMEM_ALIGNMENT, COMMAND, SMEM),
    /* From the first row to the end of the last row's pitch. */
    SET(ROWS, C(1)),
    EACH(5), SET(ROWS, MUL(GET(ROWS), SELECT(COUNTS_ROWS, STEPS, C(1)))), AGAIN,
    SET(ROWS, SELECT(MAP(MODE), MAP(PIXELS), GET(ROWS))),
    SET(ROW, SHL(SELECT(MAP(MODE), MAP(CHANNELS), SELECT(OR(MAP(GATHER0), MAP(INTERLEAVE)), STEPS, MAP(BOX))),
                 SELECT(BOTH(NOT(MAP(MODE)), MAP(INTERLEAVE)), ADD(C(3), MAP(INTERLEAVE)),
                        ELEMENT_LOG2(MAP(ELEMENT))))),
    SET(SPAN, SELECT(BOTH(NOT(MAP(INTERLEAVE)), MAP(SWIZZLE)), SHL(C(16), MAP(SWIZZLE)), C(0))),
    SET(ROW, SELECT(BELOW(GET(ROW), GET(SPAN)), GET(SPAN), GET(ROW))),
    RULE(BOTH(NOT(IS(PREFETCH)), BELOW(SMEM, ADD(GET(ADDRESS), MUL(GET(ROWS), GET(ROW))))),
         SMEM_RANGE, COMMAND, SMEM),

    SET(SIGNALS, BOTH(IS(LOAD), COMMAND_SIGNAL)),
    BARRIER_RULES(GET(SIGNALS), COMMAND),
    SET(OFFSET_BITS, SELECT(BELOW(C(2), GET(SPATIAL)), C(5), SHR(C(32), GET(SPATIAL)))), /* 16, 8, 5 */
    EACH(TW_COMMAND_OFFSETS_COUNT),
        RULE(SHR(COMMAND_OFFSETS, SELECT(BOTH(NOT(GET(WRITES)), IN_SPACE), GET(OFFSET_BITS), C(0))),
             OFFSETS, COMMAND, OFFSETS),
    AGAIN,
    RULE(BOTH(IS(REDUCE), NO_REDUCTION(COMMAND_REDUCTION, MAP(ELEMENT))), REDUCTION, COMMAND, REDUCTION),
    END
};

/* Local variables of block_rules. */
enum { COPIES, TO_SHARED, WITHIN, BARRIER, DISTANCE, MASK };

static const uint8_t block_rules[] = {
    TW_FROM_TMAU,
    SET(COPIES, EQUAL(BLOCK_OPCODE, C(TW_OPCODE_COPY_BLOCK))),
    SET(TO_SHARED, BLOCK_DESTINATION_SPACE),
    SET(WITHIN, EQUAL(BLOCK_SOURCE_SPACE, BLOCK_DESTINATION_SPACE)),
    RULE(BOTH(BOTH(GET(COPIES), SELECT(GET(TO_SHARED), LACKS(REDUCTIONS_SHARED), LACKS(REDUCTIONS_GLOBAL))),
              BLOCK_REDUCTION), UNSUPPORTED, BLOCK, REDUCTION),
    RULE(BOTH(BOTH(BOTH(GET(COPIES), IS_FLOAT_SUM(BLOCK_ELEMENT)), LACKS(REDUCTIONS_FLOAT)), BLOCK_REDUCTION),
         UNSUPPORTED, BLOCK, ELEMENT),
    RULE(BOTH(GET(COPIES), OR(BOTH(NOT(GET(TO_SHARED)), LACKS(STORES)), BOTH(GET(WITHIN), LACKS(LOCAL_COPIES)))),
         UNSUPPORTED, BLOCK, DESTINATION_SPACE),
    SET(BARRIER, BOTH(BOTH(GET(COPIES), GET(TO_SHARED)), BLOCK_SIGNAL)),
    BARRIER_RULES(GET(BARRIER), BLOCK),
    RULE(BOTH(BOTH(GET(COPIES), NO_REDUCTION(BLOCK_REDUCTION, BLOCK_ELEMENT)), BLOCK_REDUCTION),
         REDUCTION, BLOCK, REDUCTION),

    RULE(AND(BLOCK_SIZE, C(15)), BLOCK_ALIGNMENT, BLOCK, SIZE),
    RULE(AND(BLOCK_SOURCE, C(15)), BLOCK_ALIGNMENT, BLOCK, SOURCE),
    STOP_IF(NOT(GET(COPIES))),
    RULE(AND(BLOCK_DESTINATION, C(15)), BLOCK_ALIGNMENT, BLOCK, DESTINATION),
    RULE(BELOW(SMEM, BLOCK_SIZE), BLOCK_RANGE, BLOCK, SIZE),
    RULE(BOTH(BLOCK_SOURCE_SPACE, BELOW(SUB(SMEM, BLOCK_SIZE), BLOCK_SOURCE)), BLOCK_RANGE, BLOCK, SOURCE),
    RULE(BOTH(GET(TO_SHARED), BELOW(SUB(SMEM, BLOCK_SIZE), BLOCK_DESTINATION)), BLOCK_RANGE, BLOCK, DESTINATION),
    /* Addresses wrap, so the distance counts in both directions. */
    SET(MASK, SHR(SUB(C(0), C(1)), SUB(C(64), HARDWARE(addr_width)))),
    SET(DISTANCE, SUB(BLOCK_DESTINATION, BLOCK_SOURCE)),
    RULE(BOTH(GET(WITHIN), OR(BELOW(AND(GET(DISTANCE), GET(MASK)), BLOCK_SIZE),
                              BELOW(AND(SUB(C(0), GET(DISTANCE)), GET(MASK)), BLOCK_SIZE))),
         OVERLAP, BLOCK, DESTINATION),
    END
};

/* Local variables of lanes_rules. */
enum { FROM_LANES, TO_LANES, ARRIVES, ELEMENT_BYTES, UNIT_BYTES, GRANULE, LANES, ROOM, READ, WRITTEN, CHANNEL };

/* Bytes without the padding to a unit, and with it. */
#define PADDED(bytes) AND(SUB(ADD(bytes, GET(UNIT_BYTES)), C(1)), SUB(C(0), GET(UNIT_BYTES)))
#define ALIGNMENT(layout) SUB(SELECT(AND(layout, C(TW_LANE_LAYOUT_ALIGNED)), GET(GRANULE), GET(ELEMENT_BYTES)), C(1))
#define SHAPE(dimension) ELEMENT(dimension, LANES_SHAPE)
/* Sets CHANNEL to the bytes of all channels of a lane, for one image, and `bytes` to those for all of them. */
#define LANE_BYTES(bytes, layout, lane) \
    SET(CHANNEL, MUL(SHAPE(0), GET(ELEMENT_BYTES))), \
    SET(CHANNEL, SELECT(EQUAL(layout, C(TW_LANE_LAYOUT_ROW_ALIGNED)), PADDED(GET(CHANNEL)), GET(CHANNEL))), \
    SET(CHANNEL, MUL(GET(CHANNEL), SHAPE(1))), \
    SET(CHANNEL, SELECT(EQUAL(layout, C(TW_LANE_LAYOUT_ALIGNED)), PADDED(GET(CHANNEL)), GET(CHANNEL))), \
    SET(CHANNEL, MUL(GET(CHANNEL), SHR(SUB(ADD(ADD(lane, SHAPE(2)), GET(LANES)), C(1)), LANES_LANES_LOG2))), \
    SET(bytes, MUL(GET(CHANNEL), SHAPE(3)))
/* Whether they do not lie in a lane. */
#define LEAVES(address, bytes) \
    OR(SHR(GET(CHANNEL), C(40)), OR(BELOW(GET(ROOM), bytes), BELOW(SUB(GET(ROOM), bytes), address)))

static const uint8_t lanes_rules[] = {
    TW_FROM_TMAU,
    RULE(LACKS(LANES), UNSUPPORTED, LANES, OPCODE),
    SET(FROM_LANES, DIFFER(NOT(LANES_SOURCE_LAYOUT), C(1))),
    SET(TO_LANES, DIFFER(NOT(LANES_DESTINATION_LAYOUT), C(1))),
    RULE(OR(BOTH(NOT(GET(TO_LANES)), LACKS(STORES)), BOTH(BOTH(GET(TO_LANES), GET(FROM_LANES)), LACKS(LOCAL_COPIES))),
         UNSUPPORTED, LANES, DESTINATION_LAYOUT),
    RULE(BELOW(C(TW_ELEMENT_F8E5M2), LANES_ELEMENT), ELEMENT, LANES, ELEMENT),
    SET(ARRIVES, BOTH(GET(TO_LANES), LANES_SIGNAL)),
    BARRIER_RULES(GET(ARRIVES), LANES),

    SET(ELEMENT_BYTES, SHL(C(1), ELEMENT_LOG2(LANES_ELEMENT))),
    SET(UNIT_BYTES, SHL(C(1), LANES_EU_LOG2)),
    SET(GRANULE, SELECT(BELOW(GET(ELEMENT_BYTES), GET(UNIT_BYTES)), GET(UNIT_BYTES), GET(ELEMENT_BYTES))),
    SET(LANES, SHL(C(1), LANES_LANES_LOG2)),
    SET(ROOM, SHR(SMEM, LANES_LANES_LOG2)),
    RULE(AND(LANES_SOURCE, ALIGNMENT(LANES_SOURCE_LAYOUT)), BLOCK_ALIGNMENT, LANES, SOURCE),
    RULE(AND(LANES_DESTINATION, ALIGNMENT(LANES_DESTINATION_LAYOUT)), BLOCK_ALIGNMENT, LANES, DESTINATION),
    LANE_BYTES(READ, LANES_SOURCE_LAYOUT, LANES_SOURCE_LANE),
    RULE(BOTH(GET(FROM_LANES), LEAVES(LANES_SOURCE, GET(READ))), BLOCK_RANGE, LANES, SOURCE),
    LANE_BYTES(WRITTEN, LANES_DESTINATION_LAYOUT, LANES_DESTINATION_LANE),
    RULE(BOTH(GET(TO_LANES), LEAVES(LANES_DESTINATION, GET(WRITTEN))), BLOCK_RANGE, LANES, DESTINATION),
    RULE(BOTH(BOTH(BOTH(GET(FROM_LANES), GET(TO_LANES)), BELOW(LANES_SOURCE, ADD(LANES_DESTINATION, GET(WRITTEN)))),
              BELOW(LANES_DESTINATION, ADD(LANES_SOURCE, GET(READ)))), OVERLAP, LANES, DESTINATION),
    RULE(BELOW(C(6), LANES_LANES_LOG2), LANES, LANES, LANES_LOG2),
    RULE(OR(BELOW(C(7), LANES_EU_LOG2), BELOW(GET(UNIT_BYTES), GET(ELEMENT_BYTES))), LANES, LANES, EU_LOG2),
    RULE(NOT(OR(GET(FROM_LANES), GET(TO_LANES))), LANES, LANES, DESTINATION_LAYOUT),
    RULE(NOT(BELOW(LANES_SOURCE_LANE, SELECT(GET(FROM_LANES), GET(LANES), C(1)))), LANES, LANES, SOURCE_LANE),
    RULE(NOT(BELOW(LANES_DESTINATION_LANE, SELECT(GET(TO_LANES), GET(LANES), C(1)))), LANES, LANES, DESTINATION_LANE),
    END
};

static const uint8_t replace_rules[] = {
    TW_FROM_TMAU,
    RULE(AND(REPLACE_DESCRIPTOR, C(63)), DESCRIPTOR_ALIGNMENT, REPLACE, DESCRIPTOR),
    RULE(LACKS(REDUCTIONS_GLOBAL), UNSUPPORTED, REPLACE, OPCODE),
    END
};

/* The rules of the field that a REPLACE changes. */
static tw_status check_replaced(const struct tw_replace *command)
{
    const tw_field *field = &tw_descriptor_format.fields[command->field];
    uint32_t wrong = REPLACE_FIELD;
    unsigned width;

    if (command->field < tw_descriptor_format.count) {
        width = TW_FIELD_WIDTH(field);
        if (command->index < TW_FIELD_COUNT(field)) {
            if (width == 64 || !(command->value >> width))
                return 0;
            wrong = REPLACE_VALUE;
        } else {
            wrong = REPLACE_INDEX;
        }
    }
    return TW_STATUS(TW_FROM_TMAU, TW_ERROR_FIELD, TW_COMMAND_FIELD + wrong);
}

/* Operations by what they have in common, a bit each. */
#define BIT(opcode) (1u << TW_OPCODE_##opcode)
#define WITHOUT_RULES (BIT(COMMIT) | BIT(WAIT) | BIT(WAIT_ALL) | BIT(INVALIDATE_ALL))
#define OF_BLOCKS (BIT(COPY_BLOCK) | BIT(PREFETCH_BLOCK))
#define OF_TENSORS (BIT(LOAD) | BIT(STORE) | BIT(REDUCE) | BIT(PREFETCH) | BIT(INVALIDATE))
#define KNOWN (WITHOUT_RULES | OF_BLOCKS | OF_TENSORS | BIT(LANES) | BIT(REPLACE))

tw_status tw_check_command(const uint64_t command[TW_COMMAND_WORDS], const uint64_t *descriptor,
                           const tw_hardware *hardware)
{
    union {
        struct tw_command tensor;
        struct tw_block block;
        struct tw_lanes lanes;
        struct tw_replace replace;
    } members;
    struct tw_descriptor map;
    const tw_format *format = &tw_command_format;
    const uint8_t *rules = fetch_rules;
    uint32_t opcode = 1u << ((uint32_t)command[0] & 0xF);
    tw_status status;

    if (opcode & WITHOUT_RULES)
        return 0;
    if (!(opcode & KNOWN))
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_OPCODE, TW_COMMAND_FIELD);
    if (opcode & OF_BLOCKS)
        format = &tw_block_format, rules = block_rules;
    if (opcode & BIT(LANES))
        format = &tw_lanes_format, rules = lanes_rules;
    if (opcode & BIT(REPLACE))
        format = &tw_replace_format, rules = replace_rules;
    tw_unpack(&members, format, command);
    status = tw_check_rules(rules, format, &members, NULL, &hardware->features);
    if (status)
        return status;
    if (opcode & BIT(REPLACE))
        return check_replaced(&members.replace);
    if (opcode & OF_TENSORS && opcode != BIT(INVALIDATE) && descriptor) {
        status = tw_check_descriptor(descriptor, hardware->features);
        if (status)
            return status;
        tw_unpack(&map, &tw_descriptor_format, descriptor);
        status = tw_check_rules(tensor_rules, format, &members, &map, &hardware->features);
    }
    return status;
}

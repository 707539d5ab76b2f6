/* Rules of commands: what hardware without windows refuses, in the order of codes. */
#include "tilewright.h"

#define REFUSED(code, format, field) TW_STATUS(TW_FROM_TMAU, TW_ERROR_##code, TW_COMMAND_FIELD + format##_##field)
#define LACKS(hardware, feature) (!((hardware)->features >> TW_REG_FEATURES_##feature##_LSB & 1))

/* Numbers of fields in their formats. */
enum { OPCODE };
enum { COMMAND_OPCODE, COMMAND_SIGNAL, COMMAND_FILL, COMMAND_REDUCTION, COMMAND_TAG, COMMAND_SMEM, COMMAND_BARRIER,
       COMMAND_DESCRIPTOR, COMMAND_COORDS, COMMAND_OFFSETS };
enum { BLOCK_OPCODE, BLOCK_SIGNAL, BLOCK_REDUCTION, BLOCK_ELEMENT, BLOCK_TAG, BLOCK_SIZE, BLOCK_BARRIER,
       BLOCK_SOURCE_SPACE, BLOCK_DESTINATION_SPACE, BLOCK_SOURCE, BLOCK_DESTINATION };
enum { REPLACE_OPCODE, REPLACE_TAG, REPLACE_FIELD, REPLACE_INDEX, REPLACE_DESCRIPTOR, REPLACE_VALUE };
enum { LANES_OPCODE, LANES_SIGNAL, LANES_ELEMENT, LANES_TAG, LANES_BARRIER, LANES_SOURCE, LANES_DESTINATION,
       LANES_SHAPE, LANES_LANES_LOG2, LANES_EU_LOG2, LANES_SOURCE_LAYOUT, LANES_DESTINATION_LAYOUT, LANES_SOURCE_LANE,
       LANES_DESTINATION_LANE };
/* The fields of a descriptor that commands are refused for. */
enum { MAP_ELEMENT = 3, MAP_LOWER = 17, MAP_UPPER = 18 };

static uint32_t element_log2(uint32_t element)
{
    return UINT32_C(0x02E5FA50) >> (2 * element) & 3;
}

static int is_float_sum(uint32_t element)
{
    return element >= TW_ELEMENT_F16 && element <= TW_ELEMENT_F32;
}

/* Whether a reduction other than NONE exists for an element. */
static int reduces(uint32_t reduction, uint32_t element)
{
    /* A bit for each element, by reduction. */
    static const uint16_t legal[] = {
        0, 1 << TW_ELEMENT_F16 | 1 << TW_ELEMENT_BF16 | 1 << TW_ELEMENT_F32 | 1 << TW_ELEMENT_U32 |
               1 << TW_ELEMENT_S32 | 1 << TW_ELEMENT_U64,
        0x3F0, 0x3F0, 1 << TW_ELEMENT_U32, 1 << TW_ELEMENT_U32, 0xF0, 0xF0, 0xF0,
    };

    return reduction <= TW_REDUCTION_XOR && legal[reduction] >> element & 1;
}

static tw_status barrier_rules(uint32_t barrier, uint32_t field, uint32_t smem_bytes)
{
    if (barrier % 8)
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_BARRIER_ALIGNMENT, TW_COMMAND_FIELD + field);
    if (barrier > smem_bytes - 8)
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_BARRIER_RANGE, TW_COMMAND_FIELD + field);
    return 0;
}

/* Bytes of shared memory from the first row to the end of the last row's pitch. */
static uint64_t footprint(const struct tw_descriptor *map)
{
    uint32_t unit = map->interleave ? 8u << map->interleave : 1u << element_log2(map->element);
    uint32_t row, span = map->swizzle ? 16u << map->swizzle : 0;
    uint64_t rows = 1;

    if (map->mode == TW_MODE_IM2COL) {
        row = map->channels << element_log2(map->element);
        rows = map->pixels;
    } else {
        row = map->box[0];
        if (map->gather0 || map->interleave)
            row = (row + map->traversal[0] - 1) / map->traversal[0];
        row *= unit;
        for (unsigned d = 1; d < map->rank; d++)
            if (!map->interleave || d != map->rank - 2)
                rows *= (map->box[d] + map->traversal[d] - 1) / map->traversal[d];
    }
    return rows * (!map->interleave && row < span ? span : row);
}

static tw_status tensor_rules(const struct tw_command *command, const struct tw_descriptor *map,
                              const tw_hardware *hardware)
{
    static const uint8_t offset_bits[] = {16, 8, 5};
    int writes = command->opcode == TW_OPCODE_STORE || command->opcode == TW_OPCODE_REDUCE;
    int im2col = map->mode == TW_MODE_IM2COL, shared = command->opcode != TW_OPCODE_PREFETCH;
    int uses_shared = shared && !(writes && command->fill);

    if (command->opcode == TW_OPCODE_REDUCE && LACKS(hardware, REDUCTIONS_FLOAT) && is_float_sum(map->element))
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_UNSUPPORTED, MAP_ELEMENT);
    for (unsigned d = 0; writes && im2col && d + 2 < map->rank; d++)
        if (map->lower[d] < 0)
            return TW_STATUS(TW_FROM_TMAU, TW_ERROR_CORNER, MAP_LOWER);
    for (unsigned d = 0; writes && im2col && d + 2 < map->rank; d++)
        if (map->upper[d] > 0)
            return TW_STATUS(TW_FROM_TMAU, TW_ERROR_CORNER, MAP_UPPER);
    for (unsigned d = 0; d < TW_COMMAND_COORDS_COUNT; d++)
        if (d >= map->rank ? command->coords[d] != 0 : writes && command->coords[d] < 0)
            return REFUSED(COORDS, COMMAND, COORDS);
    for (unsigned d = 0; im2col && d + 2 < map->rank; d++) {
        unsigned place = d + !map->interleave;
        int64_t coord = command->coords[place];

        if (coord < map->lower[d] || coord >= (int64_t)map->size[place] + map->upper[d])
            return REFUSED(START, COMMAND, COORDS);
    }
    if (uses_shared && command->smem % 128)
        return REFUSED(SMEM_ALIGNMENT, COMMAND, SMEM);
    if (shared && (uses_shared ? command->smem : 0) + footprint(map) > hardware->smem_bytes)
        return REFUSED(SMEM_RANGE, COMMAND, SMEM);
    if (command->opcode == TW_OPCODE_LOAD && command->signal) {
        tw_status status = barrier_rules(command->barrier, COMMAND_BARRIER, hardware->smem_bytes);

        if (status)
            return status;
    }
    for (unsigned d = 0; d < TW_COMMAND_OFFSETS_COUNT; d++)
        if (command->offsets[d] >> (im2col && !writes && d + 2 < map->rank ? offset_bits[map->rank - 3] : 0))
            return REFUSED(OFFSETS, COMMAND, OFFSETS);
    if (command->opcode == TW_OPCODE_REDUCE && !reduces(command->reduction, map->element))
        return REFUSED(REDUCTION, COMMAND, REDUCTION);
    return 0;
}

static tw_status block_rules(const struct tw_block *block, const tw_hardware *hardware)
{
    int prefetch = block->opcode == TW_OPCODE_PREFETCH_BLOCK;
    int to_global = block->destination_space == TW_SPACE_GLOBAL, within = block->source_space == block->destination_space;
    uint32_t smem = hardware->smem_bytes, reduction = block->reduction;
    uint64_t mask = ~(uint64_t)0 >> (64 - hardware->addr_width), distance;

    if (!prefetch) {
        if (reduction && (to_global ? LACKS(hardware, REDUCTIONS_GLOBAL) : LACKS(hardware, REDUCTIONS_SHARED)))
            return REFUSED(UNSUPPORTED, BLOCK, REDUCTION);
        if (reduction && is_float_sum(block->element) && LACKS(hardware, REDUCTIONS_FLOAT))
            return REFUSED(UNSUPPORTED, BLOCK, ELEMENT);
        if ((to_global && LACKS(hardware, STORES)) || (within && LACKS(hardware, LOCAL_COPIES)))
            return REFUSED(UNSUPPORTED, BLOCK, DESTINATION_SPACE);
        if (block->signal && !to_global) {
            tw_status status = barrier_rules(block->barrier, BLOCK_BARRIER, smem);

            if (status)
                return status;
        }
        if (reduction && !reduces(reduction, block->element))
            return REFUSED(REDUCTION, BLOCK, REDUCTION);
    }
    if (block->size % 16)
        return REFUSED(BLOCK_ALIGNMENT, BLOCK, SIZE);
    if (block->source % 16)
        return REFUSED(BLOCK_ALIGNMENT, BLOCK, SOURCE);
    if (prefetch)
        return 0;
    if (block->destination % 16)
        return REFUSED(BLOCK_ALIGNMENT, BLOCK, DESTINATION);
    if (block->size > smem)
        return REFUSED(BLOCK_RANGE, BLOCK, SIZE);
    if (block->source_space == TW_SPACE_SHARED && block->source > smem - block->size)
        return REFUSED(BLOCK_RANGE, BLOCK, SOURCE);
    if (!to_global && block->destination > smem - block->size)
        return REFUSED(BLOCK_RANGE, BLOCK, DESTINATION);
    /* Addresses wrap, so the distance counts in both directions. */
    distance = (block->destination - block->source) & mask;
    if (within && (distance < block->size || (distance && ((0 - distance) & mask) < block->size)))
        return REFUSED(OVERLAP, BLOCK, DESTINATION);
    return 0;
}

/* a * b, or 2^48 if that is less: more than any shared memory, and small enough for the next product. */
static uint64_t product(uint64_t a, uint32_t b)
{
    const uint64_t most = (uint64_t)1 << 48;

    if (a > most || (a >> 32 && b >> 16))
        return most;
    a *= b;
    return a > most ? most : a;
}

/* Bytes that a lane, or global memory, needs for the tensor of one side. */
static uint64_t lane_bytes(const struct tw_lanes *command, uint32_t layout, uint32_t lane)
{
    uint64_t eu = ((uint64_t)1 << command->eu_log2) - 1, row = (uint64_t)command->shape[0] << element_log2(command->element);
    uint64_t channel;
    uint32_t count = command->shape[2];

    if (layout == TW_LANE_LAYOUT_ROW_ALIGNED)
        row = (row + eu) & ~eu;
    channel = product(row, command->shape[1]);
    if (layout == TW_LANE_LAYOUT_ALIGNED)
        channel = (channel + eu) & ~eu;
    if (layout != TW_LANE_LAYOUT_GLOBAL)
        count = (uint32_t)((lane + count + ((uint64_t)1 << command->lanes_log2) - 1) >> command->lanes_log2);
    return product(product(channel, count), command->shape[3]);
}

static tw_status lanes_rules(const struct tw_lanes *command, const tw_hardware *hardware)
{
    int from_lanes = command->source_layout != TW_LANE_LAYOUT_GLOBAL;
    int to_lanes = command->destination_layout != TW_LANE_LAYOUT_GLOBAL;
    uint32_t element, eu = 1u << command->eu_log2, lanes = 1u << command->lanes_log2, granule;
    uint32_t room = hardware->smem_bytes >> command->lanes_log2;
    uint64_t read, written;

    if ((!to_lanes && LACKS(hardware, STORES)) || (to_lanes && from_lanes && LACKS(hardware, LOCAL_COPIES)))
        return REFUSED(UNSUPPORTED, LANES, DESTINATION_LAYOUT);
    if (command->element > TW_ELEMENT_F8E5M2)
        return REFUSED(ELEMENT, LANES, ELEMENT);
    if (command->signal && to_lanes) {
        tw_status status = barrier_rules(command->barrier, LANES_BARRIER, hardware->smem_bytes);

        if (status)
            return status;
    }
    element = 1u << element_log2(command->element);
    granule = eu > element ? eu : element;
    if (command->source & ((command->source_layout & TW_LANE_LAYOUT_ALIGNED ? granule : element) - 1))
        return REFUSED(BLOCK_ALIGNMENT, LANES, SOURCE);
    if (command->destination & ((command->destination_layout & TW_LANE_LAYOUT_ALIGNED ? granule : element) - 1))
        return REFUSED(BLOCK_ALIGNMENT, LANES, DESTINATION);
    read = lane_bytes(command, command->source_layout, command->source_lane);
    written = lane_bytes(command, command->destination_layout, command->destination_lane);
    if (from_lanes && (read > room || command->source > room - read))
        return REFUSED(BLOCK_RANGE, LANES, SOURCE);
    if (to_lanes && (written > room || command->destination > room - written))
        return REFUSED(BLOCK_RANGE, LANES, DESTINATION);
    if (from_lanes && to_lanes && command->source < command->destination + written &&
        command->destination < command->source + read)
        return REFUSED(OVERLAP, LANES, DESTINATION);
    if (command->lanes_log2 > 6)
        return REFUSED(LANES, LANES, LANES_LOG2);
    if (command->eu_log2 > 7 || eu < element)
        return REFUSED(LANES, LANES, EU_LOG2);
    if (!from_lanes && !to_lanes)
        return REFUSED(LANES, LANES, DESTINATION_LAYOUT);
    if (command->source_lane >= (from_lanes ? lanes : 1))
        return REFUSED(LANES, LANES, SOURCE_LANE);
    return command->destination_lane >= (to_lanes ? lanes : 1) ? REFUSED(LANES, LANES, DESTINATION_LANE) : 0;
}

static tw_status replace_rules(const struct tw_replace *command)
{
    const tw_field *field = &tw_descriptor_format.fields[command->field];

    if (command->field >= tw_descriptor_format.count)
        return REFUSED(FIELD, REPLACE, FIELD);
    if (command->index >= field->count)
        return REFUSED(FIELD, REPLACE, INDEX);
    return field->width < 64 && command->value >> field->width ? REFUSED(FIELD, REPLACE, VALUE) : 0;
}

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
    uint32_t opcode = (uint32_t)command[0] & 0xF;
    int lacks = 0;
    tw_status status;

    switch (opcode) {
    case TW_OPCODE_COPY_BLOCK:
    case TW_OPCODE_PREFETCH_BLOCK:
        tw_unpack(&members, &tw_block_format, command);
        return block_rules(&members.block, hardware);
    case TW_OPCODE_LANES:
        if (LACKS(hardware, LANES))
            return REFUSED(UNSUPPORTED, LANES, OPCODE);
        tw_unpack(&members, &tw_lanes_format, command);
        return lanes_rules(&members.lanes, hardware);
    case TW_OPCODE_COMMIT:
    case TW_OPCODE_WAIT:
    case TW_OPCODE_WAIT_ALL:
    case TW_OPCODE_INVALIDATE_ALL:
        return 0;
    case TW_OPCODE_STORE:
        lacks = LACKS(hardware, STORES);
        break;
    case TW_OPCODE_REDUCE:
    case TW_OPCODE_REPLACE:
        lacks = LACKS(hardware, REDUCTIONS_GLOBAL);
        break;
    case TW_OPCODE_LOAD:
    case TW_OPCODE_PREFETCH:
    case TW_OPCODE_INVALIDATE:
        break;
    default:
        return TW_STATUS(TW_FROM_TMAU, TW_ERROR_OPCODE, TW_COMMAND_FIELD);
    }
    if (opcode == TW_OPCODE_REPLACE)
        tw_unpack(&members, &tw_replace_format, command);
    else
        tw_unpack(&members, &tw_command_format, command);
    if ((opcode == TW_OPCODE_REPLACE ? members.replace.descriptor : members.tensor.descriptor) % 64)
        return opcode == TW_OPCODE_REPLACE ? REFUSED(DESCRIPTOR_ALIGNMENT, REPLACE, DESCRIPTOR)
                                           : REFUSED(DESCRIPTOR_ALIGNMENT, COMMAND, DESCRIPTOR);
    if (lacks)
        return REFUSED(UNSUPPORTED, COMMAND, OPCODE);
    if (opcode == TW_OPCODE_REPLACE)
        return replace_rules(&members.replace);
    if (opcode == TW_OPCODE_INVALIDATE || !descriptor)
        return 0;
    status = tw_check_descriptor(descriptor, hardware->features);
    if (status)
        return status;
    tw_unpack(&map, &tw_descriptor_format, descriptor);
    return tensor_rules(&members.tensor, &map, hardware);
}

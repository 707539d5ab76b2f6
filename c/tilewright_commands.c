/* Rules of commands: what hardware without windows refuses, in the order of codes. */
#include "tilewright_rules.h"

#define REFUSED(code, format, field) TW_REFUSAL(TW_ERROR_##code, format##_##field)
/* The refusal is for a field of the descriptor, and not of the command. */
#define OF_MAP 0x800
#define LACKS(feature) TW_LACKS(hardware->features, feature)

/* Numbers of fields in their formats. */
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

/* Whether bytes at an address do not lie in a memory. */
TW_OUT_OF_LINE static int leaves(uint64_t address, uint32_t bytes, uint32_t memory)
{
    return bytes > memory || address > memory - bytes;
}

TW_OUT_OF_LINE static tw_refusal barrier_rules(uint32_t barrier, uint32_t field, uint32_t smem_bytes)
{
    if (barrier % 8)
        return TW_REFUSAL(TW_ERROR_BARRIER_ALIGNMENT, field);
    return leaves(barrier, 8, smem_bytes) ? TW_REFUSAL(TW_ERROR_BARRIER_RANGE, field) : 0;
}

/* a * b, but at most 2^30, which is more than any shared memory. */
TW_OUT_OF_LINE static uint32_t product(uint32_t a, uint32_t b)
{
    const uint32_t most = UINT32_C(1) << 30;

    return a > most / b ? most : a * b;
}

/* Bytes of shared memory from the first row to the end of the last row's pitch. */
static uint32_t footprint(const struct tw_descriptor *map)
{
    uint32_t shift = map->interleave ? 3 + map->interleave : tw_element_log2(map->element);
    uint32_t row = map->channels, span = map->swizzle ? 16u << map->swizzle : 0, rows = map->pixels;

    if (map->mode == TW_MODE_IM2COL) {
        shift = tw_element_log2(map->element);
    } else {
        row = map->box[0], rows = 1;
        if (map->gather0 || map->interleave)
            row = (row + map->traversal[0] - 1) / map->traversal[0];
        for (unsigned d = 1; d < map->rank; d++)
            if (!map->interleave || d != map->rank - 2)
                rows = product(rows, (map->box[d] + map->traversal[d] - 1) / map->traversal[d]);
    }
    row <<= shift;
    return product(rows, !map->interleave && row < span ? span : row);
}

static tw_refusal tensor_rules(const struct tw_command *command, const struct tw_descriptor *map,
                               const tw_hardware *hardware)
{
    static const uint8_t offset_bits[] = {16, 8, 5};
    int writes = command->opcode == TW_OPCODE_STORE || command->opcode == TW_OPCODE_REDUCE;
    int im2col = map->mode == TW_MODE_IM2COL, shared = command->opcode != TW_OPCODE_PREFETCH;
    unsigned spatial = im2col ? map->rank - 2 : 0;
    uint32_t smem = shared && !(writes && command->fill) ? command->smem : 0;
    tw_refusal refusal = 0;

    if (command->opcode == TW_OPCODE_REDUCE && LACKS(REDUCTIONS_FLOAT) && is_float_sum(map->element))
        return REFUSED(UNSUPPORTED, MAP, ELEMENT) | OF_MAP;
    for (unsigned d = spatial; writes && d--;)
        if (map->upper[d] > 0)
            refusal = REFUSED(CORNER, MAP, UPPER) | OF_MAP;
    for (unsigned d = spatial; writes && d--;)
        if (map->lower[d] < 0)
            refusal = REFUSED(CORNER, MAP, LOWER) | OF_MAP;
    if (refusal)
        return refusal;
    for (unsigned d = 0; d < TW_COMMAND_COORDS_COUNT; d++)
        if (d >= map->rank ? command->coords[d] != 0 : writes && command->coords[d] < 0)
            return REFUSED(COORDS, COMMAND, COORDS);
    for (unsigned d = 0; d < spatial; d++) {
        unsigned place = d + !map->interleave;
        int64_t coord = command->coords[place];

        if (coord < map->lower[d] || coord >= (int64_t)map->size[place] + map->upper[d])
            return REFUSED(START, COMMAND, COORDS);
    }
    if (smem % 128)
        return REFUSED(SMEM_ALIGNMENT, COMMAND, SMEM);
    if (shared && leaves(smem, footprint(map), hardware->smem_bytes))
        return REFUSED(SMEM_RANGE, COMMAND, SMEM);
    if (command->opcode == TW_OPCODE_LOAD && command->signal)
        refusal = barrier_rules(command->barrier, COMMAND_BARRIER, hardware->smem_bytes);
    if (refusal)
        return refusal;
    for (unsigned d = 0; d < TW_COMMAND_OFFSETS_COUNT; d++)
        if (command->offsets[d] >> (!writes && d < spatial ? offset_bits[spatial - 1] : 0))
            return REFUSED(OFFSETS, COMMAND, OFFSETS);
    return command->opcode == TW_OPCODE_REDUCE && !reduces(command->reduction, map->element)
               ? REFUSED(REDUCTION, COMMAND, REDUCTION)
               : 0;
}

static tw_refusal block_rules(const struct tw_block *block, const tw_hardware *hardware)
{
    int prefetch = block->opcode == TW_OPCODE_PREFETCH_BLOCK;
    int to_global = block->destination_space == TW_SPACE_GLOBAL, within = block->source_space == block->destination_space;
    uint32_t smem = hardware->smem_bytes, reduction = block->reduction;
    uint64_t mask = ~(uint64_t)0 >> (64 - hardware->addr_width), distance;
    tw_refusal refusal = 0;

    if (!prefetch) {
        if (reduction && (to_global ? LACKS(REDUCTIONS_GLOBAL) : LACKS(REDUCTIONS_SHARED)))
            return REFUSED(UNSUPPORTED, BLOCK, REDUCTION);
        if (reduction && is_float_sum(block->element) && LACKS(REDUCTIONS_FLOAT))
            return REFUSED(UNSUPPORTED, BLOCK, ELEMENT);
        if ((to_global && LACKS(STORES)) || (within && LACKS(LOCAL_COPIES)))
            return REFUSED(UNSUPPORTED, BLOCK, DESTINATION_SPACE);
        if (block->signal && !to_global)
            refusal = barrier_rules(block->barrier, BLOCK_BARRIER, smem);
        if (!refusal && reduction && !reduces(reduction, block->element))
            refusal = REFUSED(REDUCTION, BLOCK, REDUCTION);
        if (refusal)
            return refusal;
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
    if (block->source_space == TW_SPACE_SHARED && leaves(block->source, block->size, smem))
        return REFUSED(BLOCK_RANGE, BLOCK, SOURCE);
    if (!to_global && leaves(block->destination, block->size, smem))
        return REFUSED(BLOCK_RANGE, BLOCK, DESTINATION);
    /* Addresses wrap, so the distance counts in both directions. */
    distance = (block->destination - block->source) & mask;
    if (within && (distance < block->size || (distance && ((0 - distance) & mask) < block->size)))
        return REFUSED(OVERLAP, BLOCK, DESTINATION);
    return 0;
}

/* Bytes that a lane needs for the tensor of one side. */
TW_OUT_OF_LINE static uint32_t lane_bytes(const struct tw_lanes *command, uint32_t layout, uint32_t lane)
{
    uint32_t eu = (1u << command->eu_log2) - 1, lanes = command->lanes_log2;
    uint32_t row = command->shape[0] << tw_element_log2(command->element), channel;

    if (layout == TW_LANE_LAYOUT_ROW_ALIGNED)
        row = (row + eu) & ~eu;
    channel = product(row, command->shape[1]);
    if (layout == TW_LANE_LAYOUT_ALIGNED)
        channel = (channel + eu) & ~eu;
    channel = product(channel, (lane + command->shape[2] + (1u << lanes) - 1) >> lanes);
    return product(channel, command->shape[3]);
}

static tw_refusal lanes_rules(const struct tw_lanes *command, const tw_hardware *hardware)
{
    int from_lanes = command->source_layout != TW_LANE_LAYOUT_GLOBAL;
    int to_lanes = command->destination_layout != TW_LANE_LAYOUT_GLOBAL;
    uint32_t element, eu = 1u << command->eu_log2, lanes = 1u << command->lanes_log2, granule;
    uint32_t room = hardware->smem_bytes >> command->lanes_log2, read = 0, written = 0;
    tw_refusal refusal = 0;

    if ((!to_lanes && LACKS(STORES)) || (to_lanes && from_lanes && LACKS(LOCAL_COPIES)))
        return REFUSED(UNSUPPORTED, LANES, DESTINATION_LAYOUT);
    if (command->element > TW_ELEMENT_F8E5M2)
        return REFUSED(ELEMENT, LANES, ELEMENT);
    if (command->signal && to_lanes)
        refusal = barrier_rules(command->barrier, LANES_BARRIER, hardware->smem_bytes);
    if (refusal)
        return refusal;
    element = 1u << tw_element_log2(command->element);
    granule = eu > element ? eu : element;
    if ((uint32_t)command->source & ((command->source_layout & TW_LANE_LAYOUT_ALIGNED ? granule : element) - 1))
        return REFUSED(BLOCK_ALIGNMENT, LANES, SOURCE);
    if ((uint32_t)command->destination & ((command->destination_layout & TW_LANE_LAYOUT_ALIGNED ? granule : element) - 1))
        return REFUSED(BLOCK_ALIGNMENT, LANES, DESTINATION);
    if (from_lanes && leaves(command->source, read = lane_bytes(command, command->source_layout, command->source_lane), room))
        return REFUSED(BLOCK_RANGE, LANES, SOURCE);
    if (to_lanes && leaves(command->destination,
                           written = lane_bytes(command, command->destination_layout, command->destination_lane), room))
        return REFUSED(BLOCK_RANGE, LANES, DESTINATION);
    /* Both lie in a lane then, so their ends are below 2^32. */
    if (from_lanes && to_lanes && (uint32_t)command->source < (uint32_t)command->destination + written &&
        (uint32_t)command->destination < (uint32_t)command->source + read)
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

static tw_refusal replace_rules(const struct tw_replace *command)
{
    const tw_field *field = &tw_descriptor_format.fields[command->field];
    unsigned width;

    if (command->field >= tw_descriptor_format.count)
        return REFUSED(FIELD, REPLACE, FIELD);
    width = TW_FIELD_WIDTH(field);
    if (command->index >= TW_FIELD_COUNT(field))
        return REFUSED(FIELD, REPLACE, INDEX);
    return width < 64 && command->value >> width ? REFUSED(FIELD, REPLACE, VALUE) : 0;
}

/* Operations by what they have in common, a bit each. */
#define IS(opcode) (1u << TW_OPCODE_##opcode)
#define WITHOUT_RULES (IS(COMMIT) | IS(WAIT) | IS(WAIT_ALL) | IS(INVALIDATE_ALL))
#define OF_BLOCKS (IS(COPY_BLOCK) | IS(PREFETCH_BLOCK))
#define OF_TENSORS (IS(LOAD) | IS(STORE) | IS(REDUCE) | IS(PREFETCH))
#define KNOWN (WITHOUT_RULES | OF_BLOCKS | OF_TENSORS | IS(LANES) | IS(REPLACE) | IS(INVALIDATE))

static tw_refusal command_rules(const uint64_t *command, const uint64_t *descriptor, const tw_hardware *hardware,
                                tw_status *of_descriptor)
{
    union {
        struct tw_command tensor;
        struct tw_block block;
        struct tw_lanes lanes;
        struct tw_replace replace;
    } members;
    struct tw_descriptor map;
    uint32_t opcode = 1u << ((uint32_t)command[0] & 0xF);
    int replace = opcode == IS(REPLACE);

    if (!(opcode & KNOWN))
        return REFUSED(OPCODE, COMMAND, OPCODE);
    if (opcode & WITHOUT_RULES)
        return 0;
    if (opcode == IS(LANES) && LACKS(LANES))
        return REFUSED(UNSUPPORTED, LANES, OPCODE);
    tw_unpack(&members, opcode & OF_BLOCKS ? &tw_block_format : opcode == IS(LANES) ? &tw_lanes_format
                        : replace ? &tw_replace_format : &tw_command_format, command);
    if (opcode & OF_BLOCKS)
        return block_rules(&members.block, hardware);
    if (opcode == IS(LANES))
        return lanes_rules(&members.lanes, hardware);
    if ((replace ? members.replace.descriptor : members.tensor.descriptor) % 64)
        return TW_REFUSAL(TW_ERROR_DESCRIPTOR_ALIGNMENT, replace ? REPLACE_DESCRIPTOR : COMMAND_DESCRIPTOR);
    if ((opcode == IS(STORE) && LACKS(STORES)) || (opcode & (IS(REDUCE) | IS(REPLACE)) && LACKS(REDUCTIONS_GLOBAL)))
        return REFUSED(UNSUPPORTED, COMMAND, OPCODE);
    if (replace)
        return replace_rules(&members.replace);
    if (opcode == IS(INVALIDATE) || !descriptor)
        return 0;
    *of_descriptor = tw_check_descriptor(descriptor, hardware->features);
    if (*of_descriptor)
        return 0;
    tw_unpack(&map, &tw_descriptor_format, descriptor);
    return tensor_rules(&members.tensor, &map, hardware);
}

tw_status tw_check_command(const uint64_t command[TW_COMMAND_WORDS], const uint64_t *descriptor,
                           const tw_hardware *hardware)
{
    tw_status of_descriptor = 0;
    tw_refusal refusal = command_rules(command, descriptor, hardware, &of_descriptor);

    if (of_descriptor || !refusal)
        return of_descriptor;
    return tw_refused(TW_FROM_TMAU, refusal & OF_MAP ? refusal ^ OF_MAP : refusal + TW_REFUSAL(0, TW_COMMAND_FIELD));
}

/* Model containers: docs/in_your_soc.md has their layout. */
#include "tilewright.h"

#ifdef __GNUC__
#define OUT_OF_LINE __attribute__((noinline)) /* the compiler would copy it to each of its callers */
#else
#define OUT_OF_LINE
#endif

#define MAGIC UINT32_C(0x444D5754) /* the letters TWMD */
#define VERSION 1
#define RANK 6
#define REGISTERS 8 /* of the convolution engine and of the processing engine, each with a mask */
#define ALIGNMENT 4096

/* The beginning of a container, as it is stored. */
typedef struct {
    uint32_t magic, version, bytes, checksum;
    uint32_t memory, program, words; /* bytes of memory; offset of the program in it, and its words */
    uint32_t inputs, outputs, segments, relocations; /* their numbers */
    uint32_t features, smem_bytes;
    struct {
        uint32_t mask, value;
    } registers[REGISTERS];
    uint32_t reserved[3];
} header_t;

typedef struct {
    uint32_t offset, element, rank, size[RANK], stride[RANK], scale, zero, reserved[3];
} record_t;

typedef struct {
    uint32_t offset, bytes;
} segment_t;

static tw_status refused(uint32_t code)
{
    return TW_STATUS(TW_FROM_LIBRARY, code, 0);
}

static const header_t *header_of(const void *container)
{
    return container;
}

/* Inputs, then outputs; segments, relocations and the contents of the segments follow. */
static const record_t *records_of(const void *container)
{
    return (const record_t *)(header_of(container) + 1);
}

static const segment_t *segments_of(const void *container)
{
    const header_t *header = container;

    return (const segment_t *)(records_of(container) + header->inputs + header->outputs);
}

/* Four words at a time: counting them would take half of the time to load a model. */
static uint32_t checksum(const uint32_t *word, uint32_t count)
{
    uint32_t first = 0, second = 0;

#define ADD(i) first += word[i], second += first
    for (word += 4, count -= 4; count >= 4; count -= 4, word += 4) {
        ADD(0);
        ADD(1);
        ADD(2);
        ADD(3);
    }
    for (; count; count--, word++)
        ADD(0);
    return first ^ (second << 16 | second >> 16);
}

/* Copies words, two at a time; returns the end of those that were read. */
static const uint32_t *copy_words(uint32_t *to, const uint32_t *from, uint32_t count)
{
    for (; count > 1; count -= 2, to += 2, from += 2)
        to[0] = from[0], to[1] = from[1];
    if (count)
        *to = *from++;
    return from;
}

/* Code of the refusal of a container that is no whole one, or 0. */
static uint32_t check_form(const header_t *header, size_t size)
{
    if ((uintptr_t)header % 4 || size < 4 || header->magic != MAGIC)
        return TW_LIBRARY_FORMAT;
    if (size < sizeof *header)
        return TW_LIBRARY_SHORT;
    if (header->version != VERSION)
        return TW_LIBRARY_VERSION;
    if (header->bytes > size)
        return TW_LIBRARY_SHORT;
    if (header->bytes % 4 || header->bytes < sizeof *header ||
        checksum((const uint32_t *)header, header->bytes / 4) != header->checksum)
        return TW_LIBRARY_CHECKSUM;
    return 0;
}

static int fits(const header_t *header, const tw_hardware *hardware)
{
    uint32_t differ = (header->features & ~hardware->features) | (header->smem_bytes ^ hardware->smem_bytes);

    for (unsigned i = 0; i < REGISTERS; i++)
        differ |= (hardware->built[i] & header->registers[i].mask) ^ header->registers[i].value;
    return !differ;
}

/*
 * Whether all that a container places lies in its memory, and its own contents in the container: numbers that a wrong
 * tool wrote must not lead outside.
 */
static int lies_inside(const header_t *header)
{
    uint32_t memory = header->memory, left = header->bytes - (uint32_t)sizeof *header, last = 0;
    const record_t *record = (const record_t *)(header + 1);
    const segment_t *segment;
    const uint32_t *relocation;

    if (memory % 4 || header->program > memory || header->words > (memory - header->program) / 64)
        return 0;
    if ((header->inputs | header->outputs | header->segments | header->relocations) >> 24)
        return 0;
    for (uint32_t i = header->inputs + header->outputs; i; i--, record++) {
        uint64_t end = (uint64_t)record->offset + 4;

        if (left < sizeof *record || record->rank > RANK)
            return 0;
        left -= (uint32_t)sizeof *record;
        for (unsigned d = 0; d < RANK; d++)
            end += (uint64_t)(record->size[d] - 1) * record->stride[d];
        if (end > memory)
            return 0;
    }
    segment = (const segment_t *)record;
    relocation = (const uint32_t *)(segment + header->segments);
    if (header->segments * sizeof *segment + header->relocations * 4 > left)
        return 0;
    left -= header->segments * (uint32_t)sizeof *segment + header->relocations * 4;
    for (uint32_t i = header->segments; i; i--, segment++) {
        if ((segment->offset | segment->bytes) % 4 || segment->offset < last || segment->offset > memory ||
            segment->bytes > memory - segment->offset || segment->bytes > left)
            return 0;
        last = segment->offset + segment->bytes;
        left -= segment->bytes;
    }
    for (uint32_t i = header->relocations; i; i--, relocation++)
        if (*relocation % 8 || memory < 8 || *relocation > memory - 8)
            return 0;
    return 1;
}

uint32_t tw_model_memory(const void *container, size_t size)
{
    return size >= sizeof(header_t) && header_of(container)->magic == MAGIC ? header_of(container)->memory : 0;
}

tw_status tw_model_load(tw_model *model, tw_core *core, const void *container, size_t size, void *memory, size_t bytes,
                        uint64_t address)
{
    const header_t *header = container;
    const segment_t *segment;
    const uint32_t *relocation, *from;
    uint32_t *to = memory, *end;
    uint32_t code = check_form(header, size);

    if (!code && !fits(header, &core->hardware))
        code = TW_LIBRARY_HARDWARE;
    if (!code && !lies_inside(header))
        code = TW_LIBRARY_CHECKSUM;
    if (!code && (header->memory > bytes || (uintptr_t)memory % ALIGNMENT || address % ALIGNMENT))
        code = TW_LIBRARY_MEMORY;
    if (code)
        return refused(code);
    segment = segments_of(container);
    relocation = (const uint32_t *)(segment + header->segments);
    from = relocation + header->relocations;
    end = to + header->memory / 4;
    for (uint32_t i = header->segments; i; i--, segment++) {
        for (const uint32_t *first = (uint32_t *)memory + segment->offset / 4; to != first;)
            *to++ = 0;
        from = copy_words(to, from, segment->bytes / 4);
        to += segment->bytes / 4;
    }
    while (to != end)
        *to++ = 0;
    to = memory;
    for (uint32_t i = 0; i < header->relocations; i++) {
        uint32_t *place = to + relocation[i] / 4;
        uint64_t moved = ((uint64_t)place[1] << 32 | place[0]) + address;

        place[0] = (uint32_t)moved;
        place[1] = (uint32_t)(moved >> 32);
    }
    *model = (tw_model){core, container, memory, address};
    return 0;
}

/* The record of a tensor; NULL if there is none. */
OUT_OF_LINE static const record_t *find(const tw_model *model, uint32_t output, uint32_t number)
{
    const header_t *header = header_of(model->container);

    if (number >= (output ? header->outputs : header->inputs))
        return NULL;
    return records_of(model->container) + (output ? header->inputs : 0) + number;
}

static uint32_t element_bytes(const record_t *record)
{
    return record->element == TW_ELEMENT_S32 ? 4 : 1;
}

OUT_OF_LINE static uint32_t bytes_of(const record_t *record)
{
    uint32_t bytes = element_bytes(record);

    for (unsigned d = 0; d < record->rank; d++)
        bytes *= record->size[d];
    return bytes;
}

tw_status tw_model_describe(const tw_model *model, uint32_t output, uint32_t number, tw_model_tensor *tensor)
{
    const record_t *record = find(model, output, number);

    if (!record)
        return refused(TW_LIBRARY_TENSOR);
    tensor->bytes = bytes_of(record);
    tensor->rank = record->rank;
    for (unsigned d = 0; d < RANK; d++)
        tensor->size[d] = record->size[d];
    tensor->element = record->element;
    tensor->scale = record->scale;
    tensor->zero = (int32_t)record->zero;
    return 0;
}

/* Copies a tensor between its place, with strides, and row-major `data`. */
static tw_status copy(const tw_model *model, uint32_t output, uint32_t number, uint8_t *data, size_t bytes)
{
    const record_t *record = find(model, output, number);
    uint32_t index[RANK] = {0}, element;
    uint8_t *place;

    if (!record)
        return refused(TW_LIBRARY_TENSOR);
    if (bytes != bytes_of(record))
        return refused(TW_LIBRARY_BYTES);
    element = element_bytes(record);
    place = model->memory + record->offset;
    for (const uint8_t *end = data + bytes; data != end;) {
        unsigned d = record->rank;

        for (uint32_t i = 0; i < element; i++, data++) {
            if (output)
                *data = place[i];
            else
                place[i] = *data;
        }
        /* The next element; where a dimension is over, it begins again and the one outside it counts. */
        while (d--) {
            place += record->stride[d];
            if (++index[d] < record->size[d])
                break;
            place -= (size_t)record->stride[d] * record->size[d];
            index[d] = 0;
        }
    }
    return 0;
}

tw_status tw_model_input(tw_model *model, uint32_t number, const void *data, size_t bytes)
{
    /* Only read: the direction is the same for all bytes. */
    return copy(model, 0, number, (uint8_t *)(uintptr_t)data, bytes);
}

tw_status tw_model_output(const tw_model *model, uint32_t number, void *data, size_t bytes)
{
    return copy(model, 1, number, data, bytes);
}

tw_status tw_model_run(tw_model *model, void (*sleep)(void *context), void *context, tw_fault *fault)
{
    const header_t *header = header_of(model->container);
    tw_status status = tw_start(model->core, model->address + header->program, header->words);

    if (!status)
        return tw_wait(model->core, sleep, context, fault);
    if (fault)
        fault->status = status;
    return status;
}

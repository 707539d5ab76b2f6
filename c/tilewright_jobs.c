/* Rules of jobs of the convolution engine, in the order of codes and fields. */
#include "tilewright_rules.h"

#define REFUSED(code, field) TW_REFUSAL(TW_CONV_ERROR_##code, FIELD_##field)

/* Numbers of fields in a job. */
enum {
    FIELD_VERSION, FIELD_OPERATION, FIELD_TYPE, FIELD_OUTPUT, FIELD_BIAS, FIELD_ADD, FIELD_SIGNAL, FIELD_RASTER,
    FIELD_GRANULARITY, FIELD_MERGE, FIELD_TAG, FIELD_BARRIER, FIELD_X_ZERO, FIELD_K_ZERO, FIELD_X, FIELD_K, FIELD_TABLE,
    FIELD_Y, FIELD_ADDEND, FIELD_MINIMUM, FIELD_MAXIMUM, FIELD_ADD_MINIMUM, FIELD_ADD_MAXIMUM, FIELD_RATIO,
    FIELD_OFFSET, FIELD_Y_ZERO, FIELD_CHANNELS, FIELD_WIDTH, FIELD_HEIGHT, FIELD_BATCH, FIELD_OUT_CHANNELS,
    FIELD_OUT_WIDTH, FIELD_OUT_HEIGHT, FIELD_KERNEL, FIELD_STRIDE, FIELD_DILATION, FIELD_PADDING, FIELD_X_PITCH,
    FIELD_K_PITCH, FIELD_Y_PITCH, FIELD_ADDEND_PITCH, FIELD_EARLY, FIELD_FUNCTION, FIELD_ZERO_FIRST,
    FIELD_FUNCTION_TABLE
};

typedef struct tw_convolution job_t;

static int is_quantised(const job_t *job)
{
    return job->output == TW_CONV_OUTPUT_U8 || job->output == TW_CONV_OUTPUT_S8;
}

static uint32_t element_log2(const job_t *job)
{
    return job->type >= TW_PE_MM_TYPE_S16S16;
}

/* Rules on the fields that decide the meaning of the others. */
static tw_refusal kind_rules(const job_t *job, const tw_hardware *hardware)
{
    int is_float = job->type >= TW_PE_MM_TYPE_F16, maximum = job->operation == TW_CONV_OPERATION_MAX_POOL;
    uint32_t family = is_float ? job->type - TW_PE_MM_TYPE_F16 + 2 : element_log2(job);
    int half = job->output == TW_CONV_OUTPUT_F16 || job->output == TW_CONV_OUTPUT_BF16;

    if (job->operation > TW_CONV_OPERATION_MAX_POOL)
        return REFUSED(OPERATION, OPERATION);
    if (job->type > TW_PE_MM_TYPE_BF16)
        return REFUSED(TYPE, TYPE);
    if (!(hardware->conv_types >> family & 1))
        return REFUSED(UNSUPPORTED, TYPE);
    if (job->function && !hardware->conv_function)
        return REFUSED(UNSUPPORTED, FUNCTION);
    if (job->zero_first && !hardware->conv_zero_first)
        return REFUSED(UNSUPPORTED, ZERO_FIRST);
    if (job->output > TW_CONV_OUTPUT_ELEMENT || (is_float ? is_quantised(job) : half) ||
        maximum != (job->output == TW_CONV_OUTPUT_ELEMENT))
        return REFUSED(OUTPUT, OUTPUT);
    if (job->function && !is_quantised(job) && !(maximum && !element_log2(job)))
        return REFUSED(OUTPUT, FUNCTION);
    return 0;
}

/* Whether the bits of a binary32 are those of an infinity or a NaN. */
static int is_infinite(uint32_t bits)
{
    return (bits & 0x7F800000) == 0x7F800000;
}

/* Rules on all numbers but addresses and pitches. */
static tw_refusal value_rules(const job_t *job, const tw_hardware *hardware)
{
    int sums = job->operation == TW_CONV_OPERATION_CONVOLUTION, maximum = job->operation == TW_CONV_OPERATION_MAX_POOL;
    uint32_t element = 1u << element_log2(job), block = 1u << job->granularity, least = hardware->conv_row_bytes / 16;

    if (job->type < TW_PE_MM_TYPE_F16 && !maximum) {
        if (job->x_zero >> 8 * element)
            return REFUSED(ZERO, X_ZERO);
        if (job->operation != TW_CONV_OPERATION_SUM_POOL && job->k_zero >> 8 * element)
            return REFUSED(ZERO, K_ZERO);
    }
    if (is_quantised(job)) {
        /* With an inverted sign bit, s8 has the order of unsigned numbers. */
        uint32_t sign = job->output == TW_CONV_OUTPUT_S8 ? 0x80 : 0;

        if ((job->minimum ^ sign) > (job->maximum ^ sign))
            return REFUSED(CLAMP, MINIMUM);
        if (job->add && (job->add_minimum ^ sign) > (job->add_maximum ^ sign))
            return REFUSED(CLAMP, ADD_MINIMUM);
        if (job->add && (is_infinite(job->ratio[0]) || is_infinite(job->ratio[1])))
            return REFUSED(FACTOR, RATIO);
        if (job->add && is_infinite(job->offset))
            return REFUSED(FACTOR, OFFSET);
    }
    if (job->merge != 1 && (!sums || job->dilation[0] != 1 || job->x_pitch[0] != job->channels * element))
        return REFUSED(MERGE, MERGE);
    if (block < (least > element ? least : element) || block > hardware->conv_row_bytes)
        return REFUSED(GRANULARITY, GRANULARITY);
    return !sums && job->out_channels != job->channels ? REFUSED(CHANNELS, OUT_CHANNELS) : 0;
}

/* A tensor in shared memory: its bytes begin at `address` and end before `end`. */
typedef struct {
    uint32_t field, pitch_field, address, unit;
    uint64_t end;
} part_t;

/* A tensor of rows of `row` bytes: pixels, lines and images with their pitches. */
TW_OUT_OF_LINE static part_t pixels(uint32_t field, uint32_t pitch_field, uint32_t address, uint32_t unit, uint64_t row,
                     const uint32_t counts[3], const uint32_t pitches[3])
{
    part_t part = {field, 0, address, unit, address + row};

    for (unsigned d = 0; d < 3; d++) {
        part.end += (uint64_t)(counts[d] - 1) * pitches[d];
        if (pitches[d] & (unit - 1))
            part.pitch_field = pitch_field;
    }
    return part;
}

/* The parts of a job in the order of checks, up to 7; returns how many. */
static unsigned parts_of(const job_t *job, part_t *parts)
{
    uint32_t element = 1u << element_log2(job), taps = job->kernel[0] * job->kernel[1];
    uint32_t in[3] = {job->width, job->height, job->batch}, out[3] = {job->out_width, job->out_height, job->batch};
    uint32_t result = job->output == TW_CONV_OUTPUT_ELEMENT ? element
                      : is_quantised(job)                   ? 1
                      : job->output == TW_CONV_OUTPUT_RAW   ? 4
                                                            : 2;
    int sums = job->operation == TW_CONV_OPERATION_CONVOLUTION;
    unsigned count = 0;

    if (job->signal)
        parts[count++] = (part_t){FIELD_BARRIER, 0, job->barrier, 8, (uint64_t)job->barrier + (job->early && sums ? 16 : 8)};
    parts[count++] = pixels(FIELD_X, FIELD_X_PITCH, job->x, element, (uint64_t)job->channels * element, in, job->x_pitch);
    if (job->operation <= TW_CONV_OPERATION_DEPTHWISE) {
        uint32_t counts[3] = {sums ? job->out_channels : taps, 1, 1}, pitches[3] = {job->k_pitch, 0, 0};

        parts[count++] = pixels(FIELD_K, FIELD_K_PITCH, job->k, element,
                                (uint64_t)job->channels * (sums ? taps : 1) * element, counts, pitches);
    }
    if (is_quantised(job) || (job->bias && job->operation != TW_CONV_OPERATION_MAX_POOL))
        parts[count++] = (part_t){FIELD_TABLE, 0, job->table, 8, (uint64_t)job->table + 8 * job->out_channels};
    parts[count++] = pixels(FIELD_Y, FIELD_Y_PITCH, job->y, result, (uint64_t)job->out_channels * result, out, job->y_pitch);
    if (is_quantised(job) && job->add)
        parts[count++] = pixels(FIELD_ADDEND, FIELD_ADDEND_PITCH, job->addend, result,
                                (uint64_t)job->out_channels * result, out, job->addend_pitch);
    if (job->function)
        parts[count++] = (part_t){FIELD_FUNCTION_TABLE, 0, job->function_table, 16, (uint64_t)job->function_table + 256};
    return count;
}

/* Whether the pixels of Y overlap: each pitch must be at least what the smaller dimensions take. */
static int results_overlap(const job_t *job, const part_t *y)
{
    uint32_t counts[3] = {job->out_width, job->out_height, job->batch};
    uint64_t room = (uint64_t)job->out_channels * y->unit;

    for (unsigned d = 0; d < 3; d++) {
        if (counts[d] > 1 && job->y_pitch[d] < room)
            return 1;
        room += (uint64_t)(counts[d] - 1) * job->y_pitch[d];
    }
    return 0;
}

static int same_pitches(const job_t *job)
{
    return job->addend_pitch[0] == job->y_pitch[0] && job->addend_pitch[1] == job->y_pitch[1] &&
           job->addend_pitch[2] == job->y_pitch[2];
}

/* Rules on addresses and pitches. */
static tw_refusal place_rules(const job_t *job, uint32_t smem_bytes)
{
    static const uint8_t pitched[] = {FIELD_X, FIELD_K, FIELD_Y, FIELD_ADDEND};
    static const uint8_t read[] = {FIELD_X, FIELD_K, FIELD_TABLE, FIELD_ADDEND, FIELD_FUNCTION_TABLE};
    part_t parts[7];
    const part_t *y = parts;
    unsigned count = parts_of(job, parts);

    while (y->field != FIELD_Y)
        y++;
    for (unsigned i = 0; i < count; i++)
        if (parts[i].address & (parts[i].unit - 1))
            return TW_REFUSAL(TW_CONV_ERROR_ALIGNMENT, parts[i].field);
    for (unsigned order = 0; order < sizeof pitched; order++)
        for (unsigned i = 0; i < count; i++)
            if (parts[i].field == pitched[order] && parts[i].pitch_field)
                return TW_REFUSAL(TW_CONV_ERROR_ALIGNMENT, parts[i].pitch_field);
    if (results_overlap(job, y))
        return REFUSED(PITCH, Y_PITCH);
    for (unsigned i = 0; i < count; i++)
        if (parts[i].end > smem_bytes)
            return TW_REFUSAL(TW_CONV_ERROR_RANGE, parts[i].field);
    for (unsigned order = 0; order < sizeof read; order++)
        for (unsigned i = 0; i < count; i++) {
            const part_t *part = &parts[i];
            int in_place = part->field == FIELD_ADDEND && part->address == y->address && same_pitches(job);

            if (part->field == read[order] && part->address < y->end && y->address < part->end && !in_place)
                return TW_REFUSAL(TW_CONV_ERROR_OVERLAP, part->field);
        }
    return 0;
}

tw_status tw_check_job(const uint64_t word[TW_CONVOLUTION_WORDS], const tw_hardware *hardware)
{
    job_t job;
    tw_refusal refusal = 0;

    tw_unpack(&job, &tw_convolution_format, word);
    if ((word[0] & 0xFF) != TW_CONVOLUTION_LAYOUT_VERSION)
        refusal = REFUSED(VERSION, VERSION);
    else if (tw_has_reserved(word, &tw_convolution_format, &job))
        refusal = TW_REFUSAL(TW_CONV_ERROR_RESERVED, 0);
    if (!refusal)
        refusal = kind_rules(&job, hardware);
    if (!refusal)
        refusal = value_rules(&job, hardware);
    if (!refusal)
        refusal = place_rules(&job, hardware->smem_bytes);
    return tw_refused(TW_FROM_CONV, refusal);
}

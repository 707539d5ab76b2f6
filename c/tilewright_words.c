/* Structures to words and back; programs of the command processor. */
#include "tilewright_rules.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the processor must be little-endian"
#endif

/*
 * Halves of words. Formats are such that a field of up to 32 bits lies in one, and a wider one begins with one: few
 * operations then need 64 bits, which are many instructions on a processor of 32 bits.
 */
#ifdef __GNUC__
typedef uint32_t __attribute__((may_alias)) half_t;
#else
typedef uint32_t half_t;
#endif

/* Bits from one element of a field to the next. */
static unsigned pitch_of(unsigned width)
{
    unsigned pitch = 4;

    while (pitch < width)
        pitch *= 2;
    return pitch;
}

tw_status tw_pack(uint64_t *words, const tw_format *format, const void *members)
{
    for (unsigned word = 0; word < format->words; word++)
        words[word] = 0;
    for (unsigned number = 0; number < format->count; number++) {
        const tw_field *field = &format->fields[number];
        const uint32_t *member = (const uint32_t *)members + field->offset;
        unsigned lsb = TW_FIELD_LSB(field), width = TW_FIELD_WIDTH(field), pitch = pitch_of(width);
        unsigned biased = (field->shape & TW_FIELD_BIASED) != 0;

        for (unsigned element = 0; element < TW_FIELD_COUNT(field); element++, lsb += pitch) {
            half_t *half = (half_t *)words + lsb / 32;
            uint32_t low = format->constant, excess = 0;

            if (field->shape & TW_FIELD_WIDE) {
                uint64_t value = ((const uint64_t *)(const void *)member)[element] - biased;
                uint32_t high = (uint32_t)(value >> 32);

                low = (uint32_t)value;
                if (width > 32)
                    half[1] |= high;
                if (width < 64)
                    excess = high >> (width - 32);
            } else if (!(field->shape & TW_FIELD_CONSTANT)) {
                unsigned spare = 32u - width;

                excess = low = member[element] - biased;
                if (field->shape & TW_FIELD_SIGNED)
                    excess += UINT32_C(1) << (width - 1);
                excess ^= excess << spare >> spare;
                low = low << spare >> spare;
            }
            if (excess)
                return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_VALUE, number);
            *half |= low << lsb % 32;
        }
    }
    return 0;
}

void tw_unpack(void *members, const tw_format *format, const uint64_t *words)
{
    for (unsigned number = 0; number < format->count; number++) {
        const tw_field *field = &format->fields[number];
        uint32_t *member = (uint32_t *)members + field->offset;
        unsigned lsb = TW_FIELD_LSB(field), width = TW_FIELD_WIDTH(field), pitch = pitch_of(width);
        unsigned biased = (field->shape & TW_FIELD_BIASED) != 0;

        for (unsigned element = 0; element < TW_FIELD_COUNT(field); element++, lsb += pitch) {
            const half_t *half = (const half_t *)words + lsb / 32;

            if (field->shape & TW_FIELD_WIDE) {
                uint32_t high = width == 32 ? 0 : half[1] << (64 - width) >> (64 - width);

                ((uint64_t *)(void *)member)[element] = ((uint64_t)high << 32 | *half) + biased;
            } else if (!(field->shape & TW_FIELD_CONSTANT)) {
                unsigned spare = 32u - width;
                uint32_t value = *half >> lsb % 32 << spare;

                member[element] =
                    (field->shape & TW_FIELD_SIGNED ? (uint32_t)((int32_t)value >> spare) : value >> spare) + biased;
            }
        }
    }
}

uint32_t tw_unpack_checked(void *members, const tw_format *format, const uint64_t *words)
{
    uint64_t again[TW_DESCRIPTOR_WORDS];

    tw_unpack(members, format, words);
    if ((words[0] & 0xFF) != format->constant)
        return 1;
    tw_pack(again, format, members);
    for (unsigned word = 0; word < format->words; word++)
        if (again[word] != words[word])
            return 2;
    return 0;
}

/* The next word of a program; NULL if it has no room for `count` more. */
static uint64_t *next_word(tw_program *program, uint32_t count)
{
    return program->room - program->count < count ? NULL : program->words[program->count];
}

tw_status tw_program_add(tw_program *program, const tw_format *format, const void *members)
{
    uint64_t *word = next_word(program, 1);
    tw_status status = word ? tw_pack(word, format, members) : TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_ROOM, 0);

    program->count += !status;
    return status;
}

/* Copies `count` words of 64 bits. */
static void copy_words(uint64_t *to, const uint64_t *from, unsigned count)
{
    while (count--)
        *to++ = *from++;
}

tw_status tw_program_command(tw_program *program, const uint64_t command[TW_COMMAND_WORDS])
{
    uint64_t *word = next_word(program, 1);

    if (!word)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_ROOM, 0);
    if ((uint32_t)command[0] >> 31 || command[7] >> 60)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_TAG, 0);
    copy_words(word, command, TW_COMMAND_WORDS);
    tw_put(word, TW_PROGRAM_TMAU_KIND_LSB, TW_PROGRAM_TMAU_KIND_WIDTH, TW_PROGRAM_KIND_TMAU);
    program->count++;
    return 0;
}

tw_status tw_program_job(tw_program *program, const uint64_t job[TW_CONVOLUTION_WORDS])
{
    uint64_t *word = next_word(program, 3);

    if (!word)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_ROOM, 0);
    for (unsigned i = 0; i < 8; i++)
        word[i] = 0;
    tw_put(word, TW_PROGRAM_CONV_TAG_LSB, TW_PROGRAM_CONV_TAG_WIDTH,
           tw_get(job, TW_CONVOLUTION_TAG_LSB, TW_CONVOLUTION_TAG_WIDTH));
    tw_put(word, TW_PROGRAM_CONV_KIND_LSB, TW_PROGRAM_CONV_KIND_WIDTH, TW_PROGRAM_KIND_CONV);
    copy_words(word + 8, job, TW_CONVOLUTION_WORDS);
    program->count += 3;
    return 0;
}

tw_status tw_program_barrier_op(tw_program *program, uint32_t operation, uint32_t barrier, uint32_t value)
{
    struct tw_program_barrier members = {0};

    members.operation = operation;
    members.barrier = barrier;
    members.value = value;
    return tw_program_add(program, &tw_program_barrier_format, &members);
}

tw_status tw_program_put(tw_program *program, uint32_t kind, uint32_t index, const uint64_t *words)
{
    uint32_t count = kind == TW_PE_PUT_SEGMENT ? 2 * TW_SEGMENT_WORDS : 2 * TW_PAGE_ENTRY_WORDS;
    struct tw_program_register members = {0};
    tw_status status = 0;

    if (index >> TW_PE_REG_PUT_INDEX_WIDTH)
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_VALUE, 1);
    if (!next_word(program, count + 1))
        return TW_STATUS(TW_FROM_LIBRARY, TW_LIBRARY_ROOM, 0);
    members.engine = TW_ENGINE_PE;
    for (uint32_t half = 0; half < count && !status; half++) {
        members.offset = TW_PE_REG_DATA0 + 4 * half;
        members.value = ((const half_t *)words)[half];
        status = tw_program_add(program, &tw_program_register_format, &members);
    }
    members.offset = TW_PE_REG_PUT;
    members.value = kind << TW_PE_REG_PUT_KIND_LSB | index << TW_PE_REG_PUT_INDEX_LSB;
    return status ? status : tw_program_add(program, &tw_program_register_format, &members);
}

/* Rules of jobs of the convolution engine, in the order of codes and fields. */
#include "tilewright_rules.h"

#define RULE(condition, code, field) condition, TW_RULE_REFUSE, TW_CONV_ERROR_##code, FIELD_##field
#define F(field) FIELD_##field

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

/*
 * Local variables. The first six are 0 or 1; ELEMENT_BYTES and RESULT_BYTES are those of an element of X and of Y; the
 * ends are the addresses after a tensor, 0 for one that the job does not have.
 */
enum { FLOATS, QUANTISED, MAXIMUM, SUMS, HAS_K, ADDS, ELEMENT_BYTES, RESULT_BYTES, ROW, X_END, K_END, TABLE_END, Y_END,
       ADDEND_END };

#define IS(field, value) EQUAL(F(field), C(TW_##value))
/* Whether the bits of a binary32 are those of an infinity or a NaN. */
#define INFINITE(bits) NOT(AND(ADD(SHR(bits, C(23)), C(1)), SHR(SUB(C(0), C(1)), C(56))))
/* With an inverted sign bit, s8 has the order of unsigned numbers. */
#define SIGN SHL(IS(OUTPUT, CONV_OUTPUT_S8), C(7))
#define CROSS(least, most) BELOW(DIFFER(most, SIGN), DIFFER(least, SIGN))
/* Bytes from the first pixel to the last. */
#define SPAN(width, height, pitch) \
    ADD(ADD(MUL(SUB(width, C(1)), ELEMENT(0, pitch)), MUL(SUB(height, C(1)), ELEMENT(1, pitch))), \
        MUL(SUB(F(BATCH), C(1)), ELEMENT(2, pitch)))
#define SAME_PITCH(number) EQUAL(ELEMENT(number, F(ADDEND_PITCH)), ELEMENT(number, F(Y_PITCH)))
/* Whether `bytes`, a power of two, does not divide a number. */
#define REST(number, bytes) AND(number, SUB(bytes, C(1)))
/* The rules of a tensor that results may not overlap, and of all pitches of a tensor. */
#define APART(field) \
    RULE(BOTH(BELOW(F(field), GET(Y_END)), BELOW(F(Y), GET(field##_END))), OVERLAP, field)
#define PITCHES(exists, field, bytes) \
    EACH(3), RULE(BOTH(exists, REST(F(field), bytes)), ALIGNMENT, field), AGAIN
/* The rule that `count` rows of `row` bytes do not overlap, and the bytes of all of them. */
#define ROWS_OVERLAP(count, number, row) \
    RULE(BOTH(BELOW(C(1), count), BELOW(ELEMENT(number, F(Y_PITCH)), row)), PITCH, Y_PITCH), \
    SET(ROW, ADD(row, MUL(SUB(count, C(1)), ELEMENT(number, F(Y_PITCH)))))

static const uint8_t job_rules[] = {
    TW_FROM_CONV,
    /* The fields that decide the meaning of the others. */
    SET(FLOATS, BELOW(C(TW_PE_MM_TYPE_F16 - 1), F(TYPE))),
    SET(ELEMENT_BYTES, SELECT(BELOW(F(TYPE), C(TW_PE_MM_TYPE_S16S16)), C(1), C(2))),
    SET(QUANTISED, OR(IS(OUTPUT, CONV_OUTPUT_U8), IS(OUTPUT, CONV_OUTPUT_S8))),
    SET(MAXIMUM, IS(OPERATION, CONV_OPERATION_MAX_POOL)),
    SET(SUMS, IS(OPERATION, CONV_OPERATION_CONVOLUTION)),
    SET(HAS_K, BELOW(F(OPERATION), C(TW_CONV_OPERATION_DEPTHWISE + 1))),
    SET(ADDS, BOTH(GET(QUANTISED), F(ADD))),
    RULE(BELOW(C(TW_CONV_OPERATION_MAX_POOL), F(OPERATION)), OPERATION, OPERATION),
    RULE(BELOW(C(TW_PE_MM_TYPE_BF16), F(TYPE)), TYPE, TYPE),
    RULE(NOT(AND(SHR(HARDWARE(conv_types), SELECT(GET(FLOATS), SUB(F(TYPE), C(TW_PE_MM_TYPE_F16 - 2)),
                                                  SUB(GET(ELEMENT_BYTES), C(1)))), C(1))), UNSUPPORTED, TYPE),
    RULE(BOTH(NOT(HARDWARE(conv_function)), F(FUNCTION)), UNSUPPORTED, FUNCTION),
    RULE(BOTH(NOT(HARDWARE(conv_zero_first)), F(ZERO_FIRST)), UNSUPPORTED, ZERO_FIRST),
    RULE(OR(OR(BELOW(C(TW_CONV_OUTPUT_ELEMENT), F(OUTPUT)),
               SELECT(GET(FLOATS), GET(QUANTISED), OR(IS(OUTPUT, CONV_OUTPUT_F16), IS(OUTPUT, CONV_OUTPUT_BF16)))),
            DIFFER(GET(MAXIMUM), IS(OUTPUT, CONV_OUTPUT_ELEMENT))), OUTPUT, OUTPUT),
    RULE(BOTH(NOT(OR(GET(QUANTISED), BOTH(GET(MAXIMUM), BELOW(GET(ELEMENT_BYTES), C(2))))), F(FUNCTION)),
         OUTPUT, FUNCTION),

    /* All numbers but addresses and pitches. */
    RULE(BOTH(NOT(OR(GET(FLOATS), GET(MAXIMUM))), SHR(F(X_ZERO), MUL(C(8), GET(ELEMENT_BYTES)))), ZERO, X_ZERO),
    RULE(BOTH(BOTH(NOT(GET(FLOATS)), GET(HAS_K)), SHR(F(K_ZERO), MUL(C(8), GET(ELEMENT_BYTES)))), ZERO, K_ZERO),
    RULE(BOTH(GET(QUANTISED), CROSS(F(MINIMUM), F(MAXIMUM))), CLAMP, MINIMUM),
    RULE(BOTH(GET(ADDS), CROSS(F(ADD_MINIMUM), F(ADD_MAXIMUM))), CLAMP, ADD_MINIMUM),
    EACH(2), RULE(BOTH(GET(ADDS), INFINITE(F(RATIO))), FACTOR, RATIO), AGAIN,
    RULE(BOTH(GET(ADDS), INFINITE(F(OFFSET))), FACTOR, OFFSET),
    RULE(BOTH(NOT(EQUAL(F(MERGE), C(1))),
              OR(NOT(GET(SUMS)), OR(DIFFER(F(DILATION), C(1)),
                                    DIFFER(F(X_PITCH), MUL(F(CHANNELS), GET(ELEMENT_BYTES)))))), MERGE, MERGE),
    SET(ROW, SHL(C(1), F(GRANULARITY))),
    RULE(OR(BELOW(GET(ROW), GET(ELEMENT_BYTES)), OR(BELOW(GET(ROW), SHR(HARDWARE(conv_row_bytes), C(4))),
                                                    BELOW(HARDWARE(conv_row_bytes), GET(ROW)))),
         GRANULARITY, GRANULARITY),
    RULE(BOTH(NOT(GET(SUMS)), DIFFER(F(OUT_CHANNELS), F(CHANNELS))), CHANNELS, OUT_CHANNELS),

    /* Addresses. */
    SET(RESULT_BYTES, SELECT(GET(QUANTISED), C(1), SELECT(GET(MAXIMUM), GET(ELEMENT_BYTES),
                                                          SELECT(F(OUTPUT), C(2), C(4))))),
    RULE(BOTH(NOT(NOT(F(SIGNAL))), AND(F(BARRIER), C(7))), ALIGNMENT, BARRIER),
    RULE(REST(F(X), GET(ELEMENT_BYTES)), ALIGNMENT, X),
    RULE(BOTH(GET(HAS_K), REST(F(K), GET(ELEMENT_BYTES))), ALIGNMENT, K),
    SET(TABLE_END, SELECT(OR(GET(QUANTISED), BOTH(NOT(GET(MAXIMUM)), F(BIAS))),
                          ADD(F(TABLE), MUL(C(8), F(OUT_CHANNELS))), C(0))),
    RULE(BOTH(NOT(NOT(GET(TABLE_END))), AND(F(TABLE), C(7))), ALIGNMENT, TABLE),
    RULE(REST(F(Y), GET(RESULT_BYTES)), ALIGNMENT, Y),
    RULE(BOTH(GET(ADDS), REST(F(ADDEND), GET(RESULT_BYTES))), ALIGNMENT, ADDEND),
    RULE(BOTH(NOT(NOT(F(FUNCTION))), AND(F(FUNCTION_TABLE), C(15))), ALIGNMENT, FUNCTION_TABLE),
    PITCHES(C(1), X_PITCH, GET(ELEMENT_BYTES)),
    RULE(BOTH(GET(HAS_K), REST(F(K_PITCH), GET(ELEMENT_BYTES))), ALIGNMENT, K_PITCH),
    PITCHES(C(1), Y_PITCH, GET(RESULT_BYTES)),
    PITCHES(GET(ADDS), ADDEND_PITCH, GET(RESULT_BYTES)),
    SET(ROW, MUL(F(OUT_CHANNELS), GET(RESULT_BYTES))),
    ROWS_OVERLAP(F(OUT_WIDTH), 0, GET(ROW)),
    ROWS_OVERLAP(F(OUT_HEIGHT), 1, GET(ROW)),
    ROWS_OVERLAP(F(BATCH), 2, GET(ROW)),

    /* Ends. ROW is the number of bytes from the first result to the last. */
    SET(Y_END, ADD(F(Y), GET(ROW))),
    SET(ADDEND_END, SELECT(GET(ADDS), ADD(ADD(F(ADDEND), MUL(F(OUT_CHANNELS), GET(RESULT_BYTES))),
                                          SPAN(F(OUT_WIDTH), F(OUT_HEIGHT), F(ADDEND_PITCH))), C(0))),
    SET(ROW, MUL(F(CHANNELS), GET(ELEMENT_BYTES))),
    SET(X_END, ADD(ADD(F(X), GET(ROW)), SPAN(F(WIDTH), F(HEIGHT), F(X_PITCH)))),
    /* K has rows of all taps, or one of a tap's channels for each tap. */
    SET(K_END, MUL(ELEMENT(0, F(KERNEL)), ELEMENT(1, F(KERNEL)))),
    SET(K_END, SELECT(GET(HAS_K), ADD(F(K), SELECT(GET(SUMS),
        ADD(MUL(GET(ROW), GET(K_END)), MUL(SUB(F(OUT_CHANNELS), C(1)), F(K_PITCH))),
        ADD(GET(ROW), MUL(SUB(GET(K_END), C(1)), F(K_PITCH))))), C(0))),
    RULE(BELOW(HARDWARE(smem_bytes), SELECT(F(SIGNAL), ADD(F(BARRIER), SELECT(BOTH(GET(SUMS), F(EARLY)), C(16), C(8))),
                                            C(0))), RANGE, BARRIER),
    RULE(BELOW(HARDWARE(smem_bytes), GET(X_END)), RANGE, X),
    RULE(BELOW(HARDWARE(smem_bytes), GET(K_END)), RANGE, K),
    RULE(BELOW(HARDWARE(smem_bytes), GET(TABLE_END)), RANGE, TABLE),
    RULE(BELOW(HARDWARE(smem_bytes), GET(Y_END)), RANGE, Y),
    RULE(BELOW(HARDWARE(smem_bytes), GET(ADDEND_END)), RANGE, ADDEND),
    RULE(BELOW(HARDWARE(smem_bytes), SELECT(F(FUNCTION), ADD(F(FUNCTION_TABLE), SHL(C(1), C(8))), C(0))),
         RANGE, FUNCTION_TABLE),
    APART(X),
    APART(K),
    APART(TABLE),
    /* Results may take the place of the second operand. */
    SET(ADDEND_END, SELECT(BOTH(BOTH(EQUAL(F(ADDEND), F(Y)), SAME_PITCH(0)), BOTH(SAME_PITCH(1), SAME_PITCH(2))),
                           C(0), GET(ADDEND_END))),
    APART(ADDEND),
    STOP_IF(NOT(F(FUNCTION))),
    RULE(BOTH(BELOW(F(FUNCTION_TABLE), GET(Y_END)), BELOW(F(Y), ADD(F(FUNCTION_TABLE), SHL(C(1), C(8))))),
         OVERLAP, FUNCTION_TABLE),
    END
};

tw_status tw_check_job(const uint64_t word[TW_CONVOLUTION_WORDS], const tw_hardware *hardware)
{
    struct tw_convolution job;
    tw_status status = tw_unpack_checked(&job, &tw_convolution_format, word);

    if (status)
        return TW_STATUS(TW_FROM_CONV, TW_CONV_ERROR_VERSION - 1, 0) + status;
    return tw_check_rules(job_rules, &tw_convolution_format, &job, NULL, &hardware->features);
}

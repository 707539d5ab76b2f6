/* What the checks share. Programs do not include it. */
#ifndef TILEWRIGHT_RULES_H
#define TILEWRIGHT_RULES_H

#include "tilewright.h"

#ifdef __GNUC__
#define TW_OUT_OF_LINE __attribute__((noinline)) /* the compiler would copy it to each of its callers */
#else
#define TW_OUT_OF_LINE
#endif

/* Whether hardware was built without a feature. */
#define TW_LACKS(features, feature) (!((features) >> TW_REG_FEATURES_##feature##_LSB & 1))

/*
 * A refusal of an engine while it is being found: a number that fits the immediate of one instruction, unlike the
 * tw_status that it stands for. 0: none.
 */
typedef uint32_t tw_refusal;
#define TW_REFUSAL(code, field) ((tw_refusal)(code) | (tw_refusal)(field) << 6)

static inline tw_status tw_refused(uint32_t from, tw_refusal refusal)
{
    return refusal ? TW_STATUS(from, refusal & 63, refusal >> 6) : 0;
}

/* Log2 of the bytes of an element. */
static inline uint32_t tw_element_log2(uint32_t element)
{
    return UINT32_C(0x02E5FA50) >> (2 * element) & 3;
}

/* Whether words have bits that the format of `members`, which were unpacked from them, does not have. */
int tw_has_reserved(const uint64_t *words, const tw_format *format, const void *members);
#endif /* TILEWRIGHT_RULES_H */

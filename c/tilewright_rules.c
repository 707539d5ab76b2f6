/* Applies tables of rules. */
#include "tilewright_rules.h"

#define DEPTH 12 /* of the stack */

/* A member, or of an array the element `index`. */
static uint64_t value_of(const tw_field *field, const uint32_t *members, uint32_t index)
{
    members += field->offset;
    if (TW_FIELD_COUNT(field) == 1)
        index = 0;
    if (field->shape & TW_FIELD_WIDE)
        return ((const uint64_t *)(const void *)members)[index];
    return field->shape & TW_FIELD_SIGNED ? (uint64_t)(int32_t)members[index] : members[index];
}

tw_status tw_check_rules(const uint8_t *rules, const tw_format *format, const void *members,
                         const struct tw_descriptor *map, const uint32_t *hardware)
{
    uint64_t stack[DEPTH], locals[TW_RULE_LOCALS], *top = stack;
    const uint8_t *loop = NULL;
    uint32_t from = *rules++, index = 0;

    for (;;) {
        uint32_t byte = *rules++;
        uint64_t value, right;

        if (byte >= TW_RULE_CONSTANT) {
            value = byte - TW_RULE_CONSTANT;
        } else if (byte < TW_RULE_MAP) {
            value = value_of(&format->fields[byte], members, index);
        } else if (byte < TW_RULE_HARDWARE) {
            value = value_of(&tw_descriptor_format.fields[byte - TW_RULE_MAP], (const uint32_t *)map, index);
        } else if (byte < TW_RULE_LOCAL) {
            value = hardware[byte - TW_RULE_HARDWARE];
        } else if (byte < TW_RULE_SET) {
            value = locals[byte - TW_RULE_LOCAL];
        } else if (byte == TW_RULE_INDEX) {
            value = index;
        } else if (byte == TW_RULE_LOOP) {
            loop = rules;
            continue;
        } else if (byte == TW_RULE_AGAIN) {
            if (index)
                index--, rules = loop;
            continue;
        } else {
            value = *--top;
            if (byte < TW_RULE_OPERATION) {
                locals[byte - TW_RULE_SET] = value;
                continue;
            }
            if (byte == TW_RULE_AT) {
                index = (uint32_t)value;
                continue;
            }
            if (byte == TW_RULE_REFUSE) {
                if (value)
                    return TW_STATUS(from, rules[0], rules[1]);
                rules += 2;
                continue;
            }
            if (byte == TW_RULE_STOP) {
                if (value)
                    return 0;
                continue;
            }
            if (byte == TW_RULE_NOT) {
                value = !value;
            } else if (byte == TW_RULE_ELEMENT_LOG2) {
                value = UINT32_C(0x02E5FA50) >> (2 * value & 31) & 3;
            } else {
                right = value;
                value = *--top;
                switch (byte) {
                case TW_RULE_SELECT:
                    if (!*--top)
                        value = right;
                    break;
                case TW_RULE_ADD:
                    value += right;
                    break;
                case TW_RULE_SUB:
                    value -= right;
                    break;
                case TW_RULE_MUL:
                    value *= right;
                    break;
                case TW_RULE_DIV:
                    value = (uint32_t)value / (uint32_t)right;
                    break;
                case TW_RULE_SHL:
                    value <<= right;
                    break;
                case TW_RULE_SHR:
                    value >>= right;
                    break;
                case TW_RULE_AND:
                    value &= right;
                    break;
                case TW_RULE_OR:
                    value |= right;
                    break;
                case TW_RULE_XOR:
                    value ^= right;
                    break;
                default:
                    if (byte == TW_RULE_LESS) {
                        value ^= UINT64_C(1) << 63;
                        right ^= UINT64_C(1) << 63;
                    }
                    value = value < right;
                }
            }
        }
        *top++ = value;
    }
}

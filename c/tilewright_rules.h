/*
 * The rules of descriptors, commands and jobs as byte code, which is a third of what the same rules are as instructions
 * of a processor. Programs do not include this file.
 *
 * A table begins with the engine that reports its refusals. Then come statements: the rules, in the order in which
 * hardware applies them, and others. A rule is a condition, TW_RULE_REFUSE, and the code and the field to report if the
 * condition is true. Values are integers modulo 2^64; any but 0 is true.
 *
 * An argument of a macro may be an expression only if the macro is defined below: others must not forward it.
 */
#ifndef TILEWRIGHT_RULES_H
#define TILEWRIGHT_RULES_H

#include "tilewright.h"

#define TW_RULE_LOCALS 14

/* A byte of a table is a number in one of these ranges, or an operation. */
enum {
    TW_RULE_FIELD = 0, /* a member of the structure, by the number of its field */
    TW_RULE_MAP = 48, /* a member of the descriptor of a command */
    TW_RULE_HARDWARE = 68, /* a word of tw_hardware */
    TW_RULE_LOCAL = 77,
    TW_RULE_SET = TW_RULE_LOCAL + TW_RULE_LOCALS,
    TW_RULE_OPERATION = TW_RULE_SET + TW_RULE_LOCALS,
    TW_RULE_CONSTANT = 128
};

/* Operands are on a stack, and a result takes their place. */
enum {
    TW_RULE_AGAIN = TW_RULE_OPERATION, TW_RULE_INDEX, TW_RULE_LOOP, TW_RULE_AT, TW_RULE_STOP, TW_RULE_REFUSE,
    TW_RULE_NOT, TW_RULE_ELEMENT_LOG2, TW_RULE_SELECT, TW_RULE_ADD, TW_RULE_SUB, TW_RULE_MUL, TW_RULE_DIV,
    TW_RULE_SHL, TW_RULE_SHR, TW_RULE_AND, TW_RULE_OR, TW_RULE_XOR, TW_RULE_BELOW, TW_RULE_LESS
};

typedef char tw_rule_operations_fit[(int)TW_RULE_LESS < (int)TW_RULE_CONSTANT ? 1 : -1];

/* ---- Statements ---- */

/* No further rule holds. */
#define STOP_IF(condition) condition, TW_RULE_STOP
#define END STOP_IF(C(1))
/* Sets a local variable, of which there are TW_RULE_LOCALS. */
#define SET(local, value) value, TW_RULE_SET + (local)
/* Applies what follows until AGAIN with the indices count - 1 to 0. Elsewhere the index is 0. */
#define EACH(count) C((count) - 1), TW_RULE_AT, TW_RULE_LOOP
#define AGAIN TW_RULE_AGAIN

/* ---- Expressions ---- */

#define C(number) TW_RULE_CONSTANT + (number) /* 0 to 127 */
#define GET(local) TW_RULE_LOCAL + (local)
#define HARDWARE(member) TW_RULE_HARDWARE + offsetof(tw_hardware, member) / 4
#define LACKS(feature) NOT(AND(SHR(HARDWARE(features), C(TW_REG_FEATURES_##feature##_LSB)), C(1)))
/* The index selects an element of members that are arrays. */
#define INDEX TW_RULE_INDEX
/* `value`, with the index changed by `offset`. */
#define AT(offset, value) INDEX, offset, TW_RULE_ADD, TW_RULE_AT, value, INDEX, offset, TW_RULE_SUB, TW_RULE_AT
/* The element `number` of an array; not in a loop. */
#define ELEMENT(number, member) C(number), TW_RULE_AT, member, C(0), TW_RULE_AT
#define ELEMENT_LOG2(element) element, TW_RULE_ELEMENT_LOG2 /* log2 of the bytes of a TW_ELEMENT_… */
#define SELECT(condition, yes, no) condition, yes, no, TW_RULE_SELECT
#define NOT(value) value, TW_RULE_NOT /* 1 for 0, otherwise 0 */
#define ADD(a, b) a, b, TW_RULE_ADD
#define SUB(a, b) a, b, TW_RULE_SUB
#define MUL(a, b) a, b, TW_RULE_MUL
#define DIV(a, b) a, b, TW_RULE_DIV /* of numbers of 32 bits */
#define SHL(a, b) a, b, TW_RULE_SHL
#define SHR(a, b) a, b, TW_RULE_SHR
#define AND(a, b) a, b, TW_RULE_AND
#define OR(a, b) a, b, TW_RULE_OR
#define DIFFER(a, b) a, b, TW_RULE_XOR
#define EQUAL(a, b) a, b, TW_RULE_XOR, TW_RULE_NOT
#define BELOW(a, b) a, b, TW_RULE_BELOW /* 0 or 1; of unsigned numbers */
#define LESS(a, b) a, b, TW_RULE_LESS /* 0 or 1; of signed numbers */
/* True if `truth`, which is 0 or 1, is 1 and `value` is true. */
#define BOTH(truth, value) truth, value, TW_RULE_MUL

/*
 * The refusal of the first rule that is broken, or 0. The members of a structure are those of `format`; `map` and
 * `hardware` are only for tables that mention them.
 */
tw_status tw_check_rules(const uint8_t *rules, const tw_format *format, const void *members,
                         const struct tw_descriptor *map, const uint32_t *hardware);

/* Like tw_unpack, of words with a version. 1: they have another one; 2: a bit is set that the format does not have. */
uint32_t tw_unpack_checked(void *members, const tw_format *format, const uint64_t *words);

#endif /* TILEWRIGHT_RULES_H */

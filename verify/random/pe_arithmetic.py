"""Random arithmetic instructions of the processing engine: every function, with operands of every kind."""

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.spec.arithmetic import FUNCTIONS, UNITS, Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, Operation

__all__ = ["random_arithmetic", "wrong_arithmetic"]

_PREDICATES = 8
_ARITH = INSTRUCTIONS[Operation.ARITH]
#: Words with which functions behave differently from others: limits of integers, and all classes of floats.
_CORNERS = [
    0, 1, 2, 3, 31, 32, 33, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF,
    0xFFFFFF80, 0xFFFFFF7F, 0x80808080, 0x7F7F7F7F, 0x3F800000, 0xBF800000, 0x3F000000, 0x4B7FFFFF, 0x4F000000,
    0xCF000000, 0x4F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F7FFFFF, 0x00800000, 0x00000001,
    0x807FFFFF, 0x7C003C00, 0x03FF7E01, 0x80007BFF,
]  # fmt: skip


def random_arithmetic(rng, params, free, uniforms, *, clean, entries):
    """An instruction of any function, which writes a register from ``free`` on or a predicate.

    Parameters
    ----------
    rng : random.Random
    params : PeParams
    free : int
    uniforms : sequence of int
        Uniform registers that are set.
    clean : bool
        Nothing refuses it.
    entries : bool
        The lookup memory is loaded, so functions may read it.
    """

    def slip(probability):
        return not clean and rng.random() < probability

    built = [unit for unit in params.units if entries or unit != "lookup"]
    missing = [unit for unit in UNITS if unit not in params.units]
    units = missing if missing and (not built or slip(0.04)) else built
    functions = [each for each in Function if FUNCTIONS[each].unit in units]
    # There are few divisions, and fewer lookups.
    more = [each for each in functions for _ in range({"div": 3, "lookup": 5}.get(FUNCTIONS[each].unit, 0))]
    function = rng.choice(functions + more)
    info = FUNCTIONS[function]
    fields = {"part": rng.randrange(info.parts)}
    fields["rd"] = rng.randrange(_PREDICATES) if info.predicate else rng.randint(free, params.regs - 1)
    if info.selects:
        fields["ps"] = rng.randrange(_PREDICATES)
    for operand in info.operands:
        fields |= _operand_b(rng, params, uniforms, slip) if operand == "b" else {f"r{operand}": _register(rng, params)}
    used = [name for name in ("rd", "ra", "rb", "rc") if name in fields]
    if used and slip(0.05):
        fields[rng.choice(used)] = rng.choice([params.regs, 0xFFFF, params.uniform_regs])
    guard = {"guard": 1, "predicate": rng.randrange(_PREDICATES)} if rng.random() < 0.4 else {}
    return word(Operation.ARITH, function=function, **fields, **guard)


def _register(rng, params):
    return rng.randrange(params.regs)


def _operand_b(rng, params, uniforms, slip):
    kind = rng.choices([Operand.REGISTER, Operand.IMMEDIATE, Operand.UNIFORM], [4, 3, 3])[0]
    if kind == Operand.IMMEDIATE:
        return {"b": kind, "imm": rng.choice([*_CORNERS, rng.getrandbits(32), rng.getrandbits(8), rng.getrandbits(8)])}
    if kind == Operand.REGISTER or not uniforms:
        return {"b": Operand.REGISTER, "rb": _register(rng, params)}
    wrong = [params.uniform_regs, 0xFFFF, rng.randrange(params.uniform_regs)]
    return {"b": kind, "rb": rng.choice(wrong if slip(0.1) else uniforms)}


def wrong_arithmetic(rng):
    """An arithmetic instruction, or a loop, with the error OPCODE: a field that cannot be, or that must be 0."""
    function = rng.choice(list(Function))
    info = FUNCTIONS[function]
    good = word(Operation.ARITH, function=function)
    kinds = [Operand.REGISTER, Operand.UNIFORM] if "b" in info.operands else [3]
    choices = [
        Operation.ARITH | rng.randrange(max(Function) + 1, 256) << _ARITH["function"].lsb,
        good | 3 << _ARITH["b"].lsb,
        good | rng.choice(kinds) << _ARITH["b"].lsb | 1 << rng.choice([96, 127]),
        word(Operation.LOOP, imm=1),
        word(Operation.LOOP, b=Operand.IMMEDIATE),
        word(Operation.LOOP, b=Operand.IMMEDIATE, imm=1, rb=1),
        word(Operation.LOOP, b=Operand.UNIFORM, imm=1),
    ]
    if "b" in info.operands:
        choices.append(good | Operand.IMMEDIATE << _ARITH["b"].lsb | 1 << _ARITH["rb"].lsb + rng.randrange(16))
    unused = [name for name in ("ra", "rb", "rc") if name[1] not in info.operands]
    unused += [] if info.selects else ["ps"]
    choices += [good | 1 << _ARITH[name].lsb + rng.randrange(_ARITH[name].width) for name in unused]
    if info.parts < _ARITH["part"].mask + 1:
        choices.append(good | rng.randint(info.parts, _ARITH["part"].mask) << _ARITH["part"].lsb)
    if info.predicate:
        choices.append(good | rng.randint(_PREDICATES, 0xFFFF) << _ARITH["rd"].lsb)
    return rng.choice(choices)

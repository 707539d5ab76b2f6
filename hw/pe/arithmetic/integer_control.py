"""Controls of the integer functions: which functions take part in a step, by the cycle of the step."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Mux, Signal
from amaranth.utils import ceil_log2

from tilewright.spec.arithmetic import Function

from ...lib.logic import delay, is_one_of

__all__ = ["integer_controls"]

_SETS = {
    "bytes": "XB XBU LOOKUP LOOKB",
    "halves": "XH XHU",
    "signed_byte": "XB", "signed_half": "XH",
    "sel": "SEL",
    "shfl": "SHFL",
    "subtracts": "SUB SUB4 MIN MAX MINU MAXU MIN4 MAX4 MINU4 MAXU4 EQ NE LT LE GT GE LTU LEU GTU GEU",
    "signed": "MIN MAX LT LE GT GE MIN4 MAX4",
    "four": "ADD4 SUB4 MIN4 MAX4 MINU4 MAXU4",
    "compares": "MIN MAX MINU MAXU MIN4 MAX4 MINU4 MAXU4 SEL LT LTU LE LEU GT GTU GE GEU",
    "flips": "MAX MAXU MAX4 MAXU4 AND",
    "chooses": "MIN MAX MINU MAXU MIN4 MAX4 MINU4 MAXU4 SEL",
    "and_or": "AND OR", "xor": "XOR",
    "pack_bytes": "PACKB PACKBU",
    "pack_unsigned": "PACKBU PACKHU",
    "packs": "PACKB PACKBU PACKH PACKHU",
    "low": "MUL MAD SHL",
    "high": "MULH MULHU SHR SAR DP4",
    "dp4": "DP4", "mad": "MAD", "mulh": "MULH", "sar": "SAR",
    "shifts": "SHL SHR SAR",
    "right": "SHR SAR",
    "lookup": "LOOKUP LOOKB",
    "lookb": "LOOKB",
    "equal": "EQ NE LE LEU GT GTU", "orders": "LT LTU LE LEU GT GTU GE GEU",
    "inverts": "NE GT GTU GE GEU",
    "joins": "PAND POR PXOR PANDN",
    "or_": "POR PXOR", "not_": "PXOR PANDN",
}  # fmt: skip


def integer_controls(m, function, part, threads):
    """Controls that all threads share, decoded once: by the cycle in which they are used, attributes.

    ``function`` and ``part`` come a cycle before the operands, which are there in cycle 0.
    """
    of = {name: Signal(name=name) for name in _SETS}
    m.d.comb += [
        signal.eq(is_one_of(function, (Function[each] for each in _SETS[name].split()))) for name, signal in of.items()
    ]
    of = SimpleNamespace(**of)
    swaps = [Signal(name=f"swaps{bit}") for bit in range(ceil_log2(threads))]
    m.d.comb += [swap.eq(of.shfl & (part == bit)) for bit, swap in enumerate(swaps)]

    def chosen(names):
        return {name: getattr(of, name) for name in names.split()}

    # What each cycle needs.
    needed = {
        0: {
            "byte": Mux(of.bytes, part[:2], Cat(0, of.halves & part[0])),  # where the lowest byte comes from
            "extends": of.bytes | of.halves,
            "upper_half": of.halves & part[0],
            "clears": Cat(swaps).any(),
            "swaps": Cat(swaps),
            **chosen("bytes signed_byte signed_half dp4 mulh sar shifts right"),
            "part": part,
            "join": Cat(of.not_, of.or_),
        },
        1: chosen("subtracts signed four sel compares joins mad dp4 pack_bytes pack_unsigned"),
        2: {
            **chosen("flips four equal orders inverts pack_bytes pack_unsigned"),
            "mode": Cat(of.chooses | of.xor, of.and_or | of.xor),
        },
        3: {
            # Of a byte: the entry's own, its lowest, that of operand c; else what is not looked up.
            "looks": Cat(
                Cat(of.lookup & (~of.lookb | (part[:2] != n)), of.lookb)
                for n in range(4)
            ),
            "places": Cat(of.pack_bytes, of.pack_bytes & part[0]),
        },
        6: {"result": Cat(of.packs | of.high, of.low | of.high)},
    }  # fmt: skip
    return {
        cycle: SimpleNamespace(
            **{name: delay(m, value, cycle + 1, name=f"{name}_at{cycle}") for name, value in values.items()}
        )
        for cycle, values in needed.items()
    }

"""The text of a kernel for a step of an LSTM, a GRU or an RNN (docs/network.md, "Kernels").

Units of the state are computed in pairs of blocks. Each thread computes two units, one in each *half* of the pair: it
holds elements of a vector in registers and multiplies them by the weights of its units. While it multiplies in one
half, it loads the next weights of the other.

Uniform registers 0 to 5 are segments: x; the result; weights; the state before the step, and after it; cells, of a GRU
what it keeps between its phases. 6 is the number of pairs, 7 the row of x and of the result plus 2¹⁶ times the first
unit. The lookup memory has the floats of x.
"""

from itertools import zip_longest

from ..recurrence import COEFFICIENTS, LIMIT, LOG2_E, PHASES
from .kernels import float_bits
from .places import padded

__all__ = ["WORDS", "depth_of", "text_of_phase"]

#: Words of a row of weights, and partial sums of a product.
WORDS, _SUMS = 32, 4
_HALVES = (0, 1)
_GATES = 4
#: Registers: r0, r1 the place in a vector; r2, r3 and r4, r5 the places of weights of both halves; r6 the unit and r7
#: the row of the result; r8, r9 the place of biases. Others are for each half, and for each gate of it.
_SHIFT, _ONE, _SERIES, _BIAS, _TOTALS, _KEPT, _TEMPORARY, _PRODUCTS = 10, 11, 12, 16, 24, 32, 34, 50
_VECTOR = _PRODUCTS + 2 * _GATES * _SUMS
#: A unit that nothing is stored for.
_NOWHERE = 0x40000000


def depth_of(gates):
    """Elements of a vector whose weights for some gates are a row: a multiple of the sums."""
    return WORDS // len(gates) // _SUMS * _SUMS


def text_of_phase(node, number, half, threads):
    """The text of a phase of a ``Recurrent``, and the number of registers that it needs.

    Parameters
    ----------
    node : Recurrent
    number : int
        Of the phase.
    half : int
        Units of a half, at most ``threads``.
    threads : int
    """
    phase = PHASES[node.cells, node.after][number]
    count, deepest = len(phase.biases), max(depth_of(gates) for _, gates in phase.products)
    weights = [_VECTOR + 2 * deepest + WORDS * n for n in _HALVES]
    words = max(depth_of(gates) * len(gates) for _, gates in phase.products)
    first = f"ld r{weights[0]}, ur2:rf2:0, {words}"
    lines = [
        "mov r8, 0", "mov r2, 0", "mov r4, 0", "mov r9, tid", "mov r6, ur7", f"add r3, r9, {half}",
        f"add r5, r9, {2 * half}", "and r7, r6, 0xffff", "shr r6, r6, 16", f"mov r{_SHIFT}, 12582912.0",
        f"mov r{_ONE}, 1.0", *(f"mov r{_SERIES + n}, {float_bits(each)}" for n, each in enumerate(COEFFICIENTS[:-1])),
        "mov r1, r7", "add r6, r6, r9",
    ]  # fmt: skip
    if half < threads:
        lines += [f"setp.geu p1, tid, {half}", f"@p1, mov r6, {_NOWHERE}"]
    lines += [first, "loop ur6", f"ld r{_BIAS}, ur2:rf8:0, {2 * count}"]
    lines += [f"ld r{_product(n, 0, 1)}, ur2:rf8:{_NOWHERE}, {_SUMS * count}" for n in _HALVES]  # zeros
    for product in phase.products:
        lines += _multiply(node, product, half, _VECTOR + deepest, weights, words)
    # The places of the biases and of the first weights of the next pair.
    lines += ["mov r9, r3", f"add r3, r3, {half}", f"add r5, r5, {half}", first]
    lines += _in_turn([_total(node, n, gate, count) for n in _HALVES for gate in range(count)])
    units = padded(node.recurrence.shape[1], 2 * half)
    for chains in zip(*(_ENDS[node.cells, node.after][number](node, n, half * n, units) for n in _HALVES),
                      strict=True):  # fmt: skip
        lines += _in_turn([chain for own in chains for chain in own])
    return "\n".join([*lines, f"add r6, r6, {2 * half}", "end", "return"]), weights[1] + WORDS


def _product(half, gate, part):
    """The register of a sum, in another bank than the element that is multiplied."""
    return _PRODUCTS + _SUMS * (_GATES * half + gate) + (part ^ 1)


def _multiply(node, product, half, factors, weights, words):
    """Instructions that multiply a vector, a row of weights at a time."""
    name, gates = product
    deep, length = depth_of(gates), node.weight.shape[1] if name == "x" else node.recurrence.shape[1]
    segment, some = {"x": 0, "h": 3, "s": 5}[name], range(deep)
    load = f"ld r{_VECTOR}, ur{segment}:rf0:0, {deep // 4 if name == 'x' else deep}"
    lines = ["mov r0, 0", load, f"loop {-(-length // deep)}", f"add r0, r0, {deep}",
             f"ld r{weights[1]}, ur2:rf4:0, {words}"]  # fmt: skip
    lines += [f"lookup.{n % 4} r{factors + n}, r{_VECTOR + n // 4}, 0" if name == "x" else
              f"mov r{factors + n}, r{_VECTOR + n}" for n in some]  # fmt: skip
    fused = [
        [f"fma r{total}, r{weights[half] + element * len(gates) + place}, r{factors + element}, r{total}"
         for element in some for place, (own, _) in enumerate(gates)
         for total in [_product(half, own, element % _SUMS)]]
        for half in _HALVES
    ]  # fmt: skip
    following = f"ld r{weights[0]}, ur2:rf2:0, {words}"
    return [*lines, f"add r3, r3, {2 * half}", load, *fused[0], following, f"add r5, r5, {2 * half}", *fused[1], "end"]


def _in_turn(chains):
    """Instructions of chains, one of each in turn, because an instruction waits for the one before it in its chain."""
    return [line for step in zip_longest(*chains) for line in step if line]


def _gate(half, number):
    return _TOTALS + _GATES * half + number


def _total(node, half, gate, count):
    """The sum of a gate with its bias."""
    parts, total = [_product(half, gate, part) for part in range(_SUMS)], _gate(half, gate)
    limited = [] if node.clip is None else _limited(total, float(node.clip))
    return [f"fadd r{parts[0]}, r{parts[0]}, r{parts[2]}", f"fadd r{parts[1]}, r{parts[1]}, r{parts[3]}",
            f"fadd r{total}, r{parts[0]}, r{parts[1]}", f"fadd r{total}, r{total}, r{_BIAS + count * half + gate}",
            *limited]  # fmt: skip


def _limited(register, limit):
    return [f"fmin r{register}, r{register}, {float_bits(limit)}",
            f"fmax r{register}, r{register}, {float_bits(-limit)}"]  # fmt: skip


def _share(register, factor):
    """1 / (1 + e^(factor · x)) of x in the register of a gate, which has two temporary registers."""
    p = _TEMPORARY + 2 * (register - _TOTALS)
    n, scale, last = p + 1, float_bits(factor * LOG2_E), float_bits(COEFFICIENTS[-1])
    return [*_limited(register, LIMIT / abs(factor)), f"fma r{n}, r{register}, {scale}, r{_SHIFT}",
            f"fsub r{p}, r{_SHIFT}, r{n}", f"fma r{register}, r{register}, {scale}, r{p}", f"shl r{n}, r{n}, 23",
            f"fma r{p}, r{register}, {last}, r{_SERIES + 3}",
            *(f"fma r{p}, r{p}, r{register}, r{each}" for each in (_SERIES + 2, _SERIES + 1, _SERIES, _ONE)),
            f"add r{p}, r{p}, r{n}", f"fadd r{p}, r{p}, r{_ONE}", f"fdiv r{register}, r{_ONE}, r{p}"]  # fmt: skip


def _sigmoid(register):
    return _share(register, -1)


def _tanh(register):
    return [*_share(register, 2), f"fma r{register}, r{register}, -2.0, r{_ONE}"]


def _state(node, register, unit):
    """Stores a state, and its integer; limits keep the sum with the zero point from a wrap."""
    lines = [f"st r{register}, ur4:rf6:{unit}, 1", f"fdiv r{register}, r{register}, {float_bits(node.y_scale)}",
             *_limited(register, 1024.0), f"sf r{register}, r{register}"]  # fmt: skip
    lines += [f"add r{register}, r{register}, {node.y_zero}"] if node.y_zero else []
    return [*lines, f"max r{register}, r{register}, {node.minimum}", f"min r{register}, r{register}, {node.maximum}",
            f"st.e r{register}, ur1:rf6:{unit}, 1"]  # fmt: skip


def _lstm(node, half, unit, units):
    """For a half: chains of instructions that do not need each other, then one that needs all of them."""
    (i, o, f, g), c = (_gate(half, number) for number in range(4)), _KEPT + half
    yield [[f"ld r{c}, ur5:rf6:{unit}, 1"], _sigmoid(i), _sigmoid(o), _sigmoid(f), _tanh(g)]
    yield [[f"fmul r{i}, r{i}, r{g}", f"fma r{c}, r{f}, r{c}, r{i}", f"st r{c}, ur5:rf6:{unit}, 1", f"mov r{g}, r{c}",
            *_tanh(g), f"fmul r{o}, r{o}, r{g}", *_state(node, o, unit)]]  # fmt: skip


def _mixed(node, half, unit, z, n):
    """The state of a GRU: n + z · (h − n)."""
    h = _KEPT + half
    return [f"fsub r{h}, r{h}, r{n}", f"fma r{n}, r{z}, r{h}, r{n}", *_state(node, n, unit)]


def _gru(node, half, unit, units):
    """The same: r scales the product of the state."""
    z, r, n, q = (_gate(half, number) for number in range(4))
    yield [[f"ld r{_KEPT + half}, ur3:rf6:{unit}, 1"], _sigmoid(z), _sigmoid(r)]
    yield [[f"fma r{n}, r{r}, r{q}, r{n}", *_tanh(n), *_mixed(node, half, unit, z, n)]]


def _scaled(node, half, unit, units):
    """The same: r scales the state. That, the sum of n, and z are kept."""
    (z, r, n), h = (_gate(half, number) for number in range(3)), _KEPT + half
    yield [[f"ld r{h}, ur3:rf6:{unit}, 1"], _sigmoid(z), _sigmoid(r)]
    yield [[f"fmul r{r}, r{r}, r{h}", *(f"st r{kept}, ur5:rf6:{unit + number * units}, 1"
                                       for number, kept in enumerate((r, n, z)))]]  # fmt: skip


def _of_scaled(node, half, unit, units):
    """The same, after the product of the state that r has scaled."""
    q, n, z, h = (*(_gate(half, number) for number in range(3)), _KEPT + half)
    yield [[f"ld r{h}, ur3:rf6:{unit}, 1", f"ld r{n}, ur5:rf6:{unit + units}, 1",
            f"ld r{z}, ur5:rf6:{unit + 2 * units}, 1"]]  # fmt: skip
    yield [[f"fadd r{n}, r{n}, r{q}", *_tanh(n), *_mixed(node, half, unit, z, n)]]


def _rnn(node, half, unit, units):
    """The same."""
    total = _gate(half, 0)
    yield [[*_tanh(total), *_state(node, total, unit)]]


#: By the kind of a layer, and whether a GRU scales the product of the state: the end of each phase.
_ENDS = {
    ("LSTM", False): (_lstm,),
    ("GRU", True): (_gru,),
    ("GRU", False): (_scaled, _of_scaled),
    ("RNN", False): (_rnn,),
}

"""A kernel that normalises short rows: gains, shifts and whole rows stay in registers (docs/network.md, "Kernels")."""

from tilewright.sim.kernels.text import kernel_words

__all__ = ["rows_of_thread", "short_norm"]

#: Most columns, and of two rows of a thread at once; registers.
_MOST, _OF_TWO, _REGISTERS = 80, 40, 320
_CHUNK = 16
#: Registers: constants, zero, one, factors of this block and of the next one, words of rows, of the next rows and of
#: results, sums, temporary numbers, gains.
_CONSTANTS, _ZERO, _ONE, _NOW, _NEXT = 10, 17, 18, 20, 24
_WORDS, _COMING, _RESULTS, _SUMS, _TEMPORARY, _GAINS = 32, 56, 80, 104, 112, 144
#: Instructions between one that has a result and one that needs it: of arithmetic, of a root or a quotient, of a load.
_LATENCY, _LONG, _LOAD = 12, 34, 24
#: Cycles of a block in which no instruction is issued, and more for each row of a thread; the fewest of a block.
_WAITS, _MORE, _LEAST = 74, 38, 440
#: Registers that a load brings at most.
_LOADED = 16


def rows_of_thread(width, regs):
    """How many rows each thread normalises at once; 0 if rows are too long, or no words, or registers are too few."""
    if regs < _REGISTERS or width > _MOST or width % 4:
        return 0
    return 2 if width <= _OF_TWO else 1


def short_norm(width, threads, rows, x_dtype, y_dtype):
    """The instructions, a tuple, and the expected cycles of a block of ``rows`` rows of each thread.

    Arguments are those of ``layer_norm``, without numbers of chunks; there is a block more than there are rows for.
    While a block is normalised, results of the one before are stored, and the factors of the next one are computed.
    """
    main, side = _normalised(width, rows, y_dtype), _factors(width, rows, threads * rows, x_dtype)
    shifts = _GAINS + width + 1  # the other bank of registers
    lines = ["mov r0, 0", f"ld r{_CONSTANTS}, ur4:rf0:0, 7", f"mov r{_ZERO}, 0", f"mov r{_ONE}, 1.0"]
    for first in range(0, width, _LOADED):
        count = min(_LOADED, width - first)
        lines += [f"ld r{_GAINS + first}, ur2:rf0:{first}, {count}", f"ld r{shifts + first}, ur3:rf0:{first}, {count}"]
    for row in range(rows):
        lines += [f"mov r{2 * row}, 0", f"mov r{4 + 2 * row}, 0", f"mov r{1 + 2 * row}, tid"]
        lines += [f"add r{1 + 2 * row}, r{1 + 2 * row}, {threads * row}",
                  f"sub r{5 + 2 * row}, r{1 + 2 * row}, {2 * threads * rows}"]  # fmt: skip
    body = _merged(main, side)
    body += [f"mov r{_NOW + number}, r{_NEXT + number}" for number in range(2 * rows)]
    body += [f"add r{1 + 2 * row}, r{1 + 2 * row}, {threads * rows}" for row in range(rows)]
    last = [_stored(width, row) for row in range(rows)]
    code = tuple(kernel_words("\n".join([*lines, "loop ur5", *body, "end", *last, "return"]), {}))
    return code, max(len(body) + _WAITS + _MORE * rows, _LEAST)


def _stored(width, row):
    return f"st r{_RESULTS + width // 4 * row}, ur1:rf{4 + 2 * row}:0, {width // 4}"


def _normalised(width, rows, dtype):
    """Instructions that normalise the rows at hand."""
    u, words, shifts = "u" if dtype == "uint8" else "", width // 4, _GAINS + width + 1
    lanes, lines, packs = [(row, column) for row in range(rows) for column in range(width)], [], []
    for number, first in enumerate(range(0, len(lanes), _CHUNK)):
        some = lanes[first : first + _CHUNK]
        spots = [_TEMPORARY + _CHUNK * (number % 2) + place for place in range(len(some))]
        pairs = list(zip(spots, some, strict=True))
        lines += [f"lookup.{k % 4} r{t}, r{_WORDS + words * row + k // 4}, 0" for t, (row, k) in pairs]
        # Words that have been read make room for the next rows.
        lines += [f"ld r{_WORDS + words * row}, ur0:rf{2 * row}:0, {words}" for row, k in some if k == width - 1]
        lines += packs
        lines += [f"fma r{t}, r{t}, r{_NOW + 2 * row}, r{_NOW + 1 + 2 * row}" for t, (row, k) in pairs]
        lines += [f"fma r{t}, r{t}, r{_GAINS + k}, r{shifts + k}" for t, (row, k) in pairs]
        lines += [f"sf r{t}, r{t}" for t in spots]
        results = [(t, _RESULTS + words * row + k // 4) for t, (row, k) in pairs[::4]]
        lines += [f"packb{u}.0 r{result}, r{t}, r{t + 1}, r{_ZERO}" for t, result in results]
        packs = [f"packb{u}.1 r{result}, r{t + 2}, r{t + 3}, r{result}" for t, result in results]
    return lines + packs


def _factors(width, rows, step, dtype):
    """Groups of instructions that compute the factors of the next rows, and how many come between them and the next."""
    x, words, (n, two, square, share, centred, epsilon) = "u" if dtype == "uint8" else "s", width // 4, range(10, 16)
    groups = [([f"ld r{_COMING + words * row}, ur0:rf{2 * row}:0, {words}"], _LOAD) for row in range(rows)]
    groups += [([_stored(width, row)], _LOAD) for row in range(rows)]
    groups[-1][0].extend(f"add r{5 + 2 * row}, r{5 + 2 * row}, {step}" for row in range(rows))
    for word in range(words):
        group = []
        for row in range(rows):
            value, total, squares = (
                _COMING + words * row + word,
                _SUMS + 4 * row + word % 2,
                _SUMS + 4 * row + 2 + word % 2,
            )
            before = (total, squares) if word > 1 else (_ZERO, _ZERO)
            group += [f"dp4.{x}u r{total}, r{value}, 0x01010101, r{before[0]}",
                      f"dp4.{x}{x} r{squares}, r{value}, r{value}, r{before[1]}"]  # fmt: skip
        groups.append((group, _LATENCY // 2))
    if words == 1:
        groups.append(
            ([f"mov r{_SUMS + 4 * row + 1 + 2 * half}, 0" for row in range(rows) for half in (0, 1)], _LATENCY)
        )
    steps = [
        (("add r{s}, r{s}, r{t}", "add r{q}, r{q}, r{p}"), _LATENCY),
        ((f"mad r{{q}}, r{{s}}, r{two}, r{{q}}", f"add r{{s}}, r{{s}}, r{n}"), _LATENCY),
        ((f"add r{{q}}, r{{q}}, r{square}", "fs r{s}, r{s}"), _LATENCY),
        (("fs r{q}, r{q}", f"fmul r{{s}}, r{{s}}, r{share}"), _LATENCY),
        ((f"fmul r{{q}}, r{{q}}, r{share}", f"fmul r{{s}}, r{{s}}, r{centred}"), _LATENCY),
        (("xor r{t}, r{s}, 0x80000000",), _LATENCY),
        (("fma r{q}, r{t}, r{s}, r{q}",), _LATENCY),
        (("fmax r{q}, r{q}, 0",), _LATENCY),
        ((f"fadd r{{q}}, r{{q}}, r{epsilon}",), _LATENCY),
        (("fsqrt r{q}, r{q}",), _LONG),
        ((f"fdiv r{{r}}, r{_ONE}, r{{q}}",), _LONG),
        (("fmul r{b}, r{t}, r{r}",), _LATENCY),
    ]
    for texts, gap in steps:
        group = []
        for row in range(rows):
            s = _SUMS + 4 * row
            names = {"s": s, "t": s + 1, "q": s + 2, "p": s + 3, "r": _NEXT + 2 * row, "b": _NEXT + 1 + 2 * row}
            group += [text.format(**names) for text in texts]
        groups.append((group, gap))
    return groups


def _merged(main, groups):
    """Instructions of ``main`` with those of ``groups`` between them, at their distances if there are enough."""
    lines, place = [], 0
    for group, gap in groups:
        lines += [*group, *main[place : place + gap]]
        place += gap
    return lines + main[place:]

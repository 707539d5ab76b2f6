"""A kernel for sums and quotients of tensors, made for their scales (docs/network.md, "Kernels")."""

from tilewright.sim.kernels.text import kernel_words

from .kernels import Blocks, Kernel, Operand, UnfitError, engine_of, fitting, float_bits

__all__ = ["arithmetic_kernel"]

#: The instruction of each operation of an ``Arithmetic``.
_OPERATIONS = {"Div": "fdiv", "Sum": "fadd"}


def arithmetic_kernel(node, width, x_dtypes, y_dtype, pe, room):
    """The :class:`Kernel` of an ``Arithmetic`` of rows of ``width`` bytes on an engine; UnfitError if there is none."""
    threads = engine_of(pe).threads
    code = tuple(kernel_words(_text(node, x_dtypes, y_dtype), {}))
    operands = tuple(Operand(source, dtype) for source, dtype in enumerate(x_dtypes))
    arguments = (*operands, Blocks(threads), threads, -(-width // 4))
    if len(arguments) > pe.uniform_regs:
        raise UnfitError(f"it has {len(x_dtypes)} inputs, and a kernel at most {pe.uniform_regs - 3}")
    divisions = 8 if node.operation == "Div" else 4
    cycles = 60 + (100 + 60 * len(operands) + 22 * divisions) * -(-width // 4)
    elements = (1,) * (len(operands) + 1)
    kernel = Kernel("arithmetic", code, (), (), arguments, width, elements, threads, cycles,
                    block_registers=len(elements) * -(-width // 4))  # fmt: skip
    return fitting(kernel, pe)


def _text(node, x_dtypes, y_dtype):
    """The text of a kernel of an ``Arithmetic``: four elements of each thread at a time, in the place of the first."""
    count, four = len(x_dtypes), range(4)
    blocks, threads, words = (f"ur{count + number}" for number in range(3))
    lines = ["mov r1, tid", "mov r2, 0", f"loop {blocks}", "mov r0, 0", f"loop {words}"]
    lines += [f"ld r{4 + source}, ur{source}:rf0:0, 1" for source in range(count)]
    for source, ((scale, zero), dtype) in enumerate(zip(node.quantities, x_dtypes, strict=True)):
        first, u = 16 if source else 12, "u" if dtype == "uint8" else ""
        lines += [f"xb{u}.{n} r{first + n}, r{4 + source}, {-zero}" for n in four]
        lines += [f"fs r{first + n}, r{first + n}" for n in four]
        lines += [f"fmul r{first + n}, r{first + n}, {float_bits(scale)}" for n in four]
        if source:
            lines += [f"{_OPERATIONS[node.operation]} r{12 + n}, r{12 + n}, r{16 + n}" for n in four]
    # Limits keep the sum with the zero point from a wrap; what is not a number becomes the lower one.
    lines += [f"fdiv r{12 + n}, r{12 + n}, {float_bits(node.y_scale)}" for n in four]
    lines += [
        f"{kind} r{12 + n}, r{12 + n}, {limit}"
        for kind, limit in (("fmax", "-1024.0"), ("fmin", "1024.0"))
        for n in four
    ]
    lines += [f"sf r{12 + n}, r{12 + n}" for n in four]
    lines += [f"add r{12 + n}, r{12 + n}, {node.y_zero}" for n in four] if node.y_zero else []
    u = "u" if y_dtype == "uint8" else ""
    lines += [
        f"packb{u}.0 r4, r12, r13, r2",
        f"packb{u}.1 r4, r14, r15, r4",
        "st r4, ur0:rf0:0, 1",
        "add r0, r0, 4",
        "end",
    ]
    return "\n".join([*lines, f"add r1, r1, {threads}", "end", "return"])

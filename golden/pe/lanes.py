"""Arithmetic instructions on a machine: operands, the result of every thread, and which results are open.

Specification: docs/pe.md, "Arithmetic", "What is left open".
"""

import numpy as np

from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand

from .arithmetic import combine, compare, compute, lookup_index, replace_byte

__all__ = ["execute_arithmetic"]


def execute_arithmetic(pe, guard, predicate, function, b, part, ps, rd, ra, rb, rc, imm):
    """Executes an instruction with these fields, which nothing refuses, on ``pe``."""
    function = Function(function)
    info = FUNCTIONS[function]
    values, doubt = _operands(pe, info, b, ra, rb, rc, imm)
    if info.selects:
        chosen = [ps, part] if info.predicate else [ps]
        doubt |= pe.open.predicates[chosen].any(axis=0)
    if function == Function.SHFL:
        partners = _partners(pe.sizes.threads, part)
        result, doubt = values["a"][partners], doubt[partners]
    elif function == Function.SEL:
        result = np.where(pe.predicates[ps], values["a"], values["b"])
    elif info.unit == "lookup":
        entries = lookup_index(values["a"], values["b"], part, pe.sizes.lookup_words)
        result, doubt = pe.kernels.lookup[entries], doubt | pe.kernels.lookup_open[entries]
        if function == Function.LOOKB:
            result = replace_byte(values["c"], result, part)
    elif info.predicate:
        result = combine(function, *pe.predicates[[ps, part]]) if info.selects else compare(function, **values)
    else:
        unused = np.zeros(pe.sizes.threads, np.uint32)
        result = compute(function, *(values.get(name, unused) for name in "abc"), part)
    targets, opens = (pe.predicates, pe.open.predicates) if info.predicate else (pe.registers.T, pe.open.registers.T)
    if guard:
        threads = pe.taking_part(guard, predicate)
        result = np.where(threads, result, targets[rd])
        doubt = np.where(threads, doubt, opens[rd]) | pe.open.guards(guard, predicate)
    targets[rd], opens[rd] = result, doubt


def _operands(pe, info, b, ra, rb, rc, imm):
    """The operands that a function has, by name, and in which threads a register among them is open."""
    registers = {name: number for name, number in zip("abc", (ra, rb, rc), strict=True) if name in info.operands}
    values = {}
    if "b" in registers and b != Operand.REGISTER:
        number = imm if b == Operand.IMMEDIATE else pe.uniform[rb]
        values["b"] = np.full(pe.sizes.threads, number, np.uint32)
        del registers["b"]
    doubt = np.zeros(pe.sizes.threads, bool)
    for name, number in registers.items():
        values[name] = pe.registers[:, number].copy()
        doubt |= pe.open.registers[:, number]
    return values, doubt


def _partners(count, bit):
    """For each of ``count`` threads the one whose number differs in ``bit``, or itself if there is none."""
    threads = np.arange(count)
    partners = threads ^ 1 << bit
    return np.where(partners < count, partners, threads)

"""Payloads and ports of the arithmetic."""

from amaranth.hdl import unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ...lib.component import Port

__all__ = ["ArithmeticAccessSignature", "ArithmeticRegistersSignature", "OperationLayout", "TargetLayout"]


class OperationLayout(data.StructLayout):
    """An instruction for the arithmetic, without an error: an ARITH, a mov or a setp."""

    def __init__(self, params):
        register = unsigned(params.reg_width)
        super().__init__(
            {
                "function": unsigned(8),  # spec.arithmetic.Function
                "part": unsigned(3),
                "ps": unsigned(3),  # first predicate that the function reads
                "selects": 1,  # it reads ``ps``
                "joins": 1,  # it also reads predicate ``part``
                "guard": 1,
                "predicate": unsigned(3),
                "a": register,
                "b": register,
                "c": register,
                "reads": unsigned(3),  # which of a, b and c are registers that it reads
                "thread": 1,  # operand a is the number of the thread
                "scalar": unsigned(32),  # operand b, if it is no register
                "target": register,  # register, or predicate, that is written
                "to_predicate": 1,
                "iterates": 1,  # a division or root, for DivideRow
                "alternates": 1,  # a short quotient, of which one starts every other cycle
                "turn": 1,  # of Issue, when the operation was accepted
            }
        )


class TargetLayout(data.StructLayout):
    """What an operation in flight writes."""

    def __init__(self, params):
        super().__init__({"valid": 1, "target": unsigned(params.reg_width), "to_predicate": 1})


class ArithmeticAccessSignature(Port):
    """Asks whether the registers and predicates of an operation are free of loads, multiplies and stores before it."""

    def __init__(self, params):
        super().__init__({"operation": Out(OperationLayout(params)), "clear": In(1)})


class ArithmeticRegistersSignature(Port):
    """Reads and writes of the registers of all threads by the arithmetic, which shares the ports of the banks.

    Bank 0 has the even registers, bank 1 the odd ones. A bank has two read ports: ``left``, which multiplies use for
    accumulators, and ``right``, for factors and lane reads. Rows follow one cycle after ``enable``.
    """

    def __init__(self, params):
        row = data.ArrayLayout(32, params.threads)
        addresses = Out(params.reg_width - 1).array(2)
        super().__init__(
            {
                "left_enable": Out(2),
                "left_address": addresses,
                "left_rows": In(row).array(2),
                "left_busy": In(2),  # multiplies use the port in this cycle
                "right_wanted": Out(2),  # from registers: lane reads leave the port free, except after they had to wait
                "right_enable": Out(2),
                "right_address": addresses,
                "right_rows": In(row).array(2),
                "right_busy": In(2),  # others use the port in this cycle
                # None of the results waits: multiplies must not write the bank in the same cycle.
                "results_valid": Out(1),
                "results_register": Out(params.reg_width),
                "results_threads": Out(params.threads),
                "results_data": Out(row),
                "crowded": In(1),  # registered: a lane write has waited for long; until it is low, nothing may start
            }
        )

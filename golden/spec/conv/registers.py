"""Registers of the convolution engine (docs/conv.md, "Records and registers")."""

from ..fields import Field
from ..pe.instruction import MM_FAMILIES
from ..registers import Access, Register, counter, identification, interrupts

__all__ = ["CONV_ID_VALUE", "CONV_REGISTERS", "built_with"]


CONV_REGISTERS = (
    *identification("TWCV", "convolution engine"),
    Register("params0", 0x08, Access.RO, "Parameters that the hardware was built with.", (
        Field("row_bytes", 0, 8, "M: bytes that a compute unit multiplies in a cycle."),
        Field("slaves", 8, 8, "NS: circuits with different output channels."),
        Field("units", 16, 8, "NCU: compute units of each."),
        Field("results", 24, 8, "R: results that are post-processed in a cycle."),
    )),
    Register("params1", 0x0C, Access.RO, "Parameters that the hardware was built with.", (
        Field("feature_rows", 0, 8, "L1: rows of the first buffer."),
        Field("weight_rows", 8, 8, "L2: rows of the second buffer."),
        Field("queue_depth", 16, 8, "Jobs that wait."),
        Field("types", 24, 4, "Elements that are multiplied, a bit each: 8-bit integers, 16-bit integers, fp16, bf16."),
        Field("rotation", 28, 1, "Slaves can have rows of each other's memories."),
    )),
    Register("params2", 0x10, Access.RO, "Parameters that the hardware was built with.",
             (Field("weight_bytes", 0, 32, "Bytes of a slave's weight memory."),)),
    Register("control", 0x20, Access.WO, "Acts once.", (
        Field("clear_counters", 0, 1, "Set all performance counters to zero."),
        Field("clear_error", 1, 1, "Forget the error record and its count."),
    )),
    Register("status", 0x24, Access.RO, "What the engine does now.", reset=1, fields=(
        Field("idle", 0, 1, "No job is under way."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("queue_level", 8, 8, "Jobs that wait in the queue."),
    )),
    *interrupts(
        Field("error", 0, 1, "A job ended with an error."),
        Field("done", 1, 1, "A job ended without one."),
    ),
    Register("error", 0x30, Access.RO, "Error record: of the first job with an error since clear_error.", (
        Field("code", 0, 8, "ConvError; 0 if there was none."),
        Field("field", 8, 8, "Number of the field in the job."),
        Field("tag", 16, 16, "Tag of the job."),
    )),
    Register("error_count", 0x34, Access.RO, "Jobs that ended with an error since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    counter("jobs", 0x40, "Jobs accepted."),
    counter("busy_cycles", 0x44, "Cycles in which a job was under way."),
    counter("steps", 0x48, "Cycles in which the array multiplied."),
    counter("feature_rows_fetched", 0x4C, "Feature rows that came from shared memory."),
    counter("weight_rows_fetched", 0x50, "Weight rows that came from shared memory."),
    counter("results_written", 0x54, "Results written."),
    counter("stall_features", 0x58, "Cycles in which the array waited for feature rows."),
    counter("stall_weights", 0x5C, "Cycles in which the array waited for weight rows."),
    counter("stall_results", 0x60, "Cycles in which the array waited for space in the result buffers."),
    counter("bank_conflicts", 0x64, "Cycles that reads of shared memory took longer because of bank conflicts."),
)  # fmt: skip
#: What register ``id`` holds.
CONV_ID_VALUE = CONV_REGISTERS[0].reset


def built_with(params):
    """Fields of the registers that show a :class:`ConvParams`, by register."""
    names = {"params0": ("row_bytes", "slaves", "units", "results"), "params2": ("weight_bytes",),
             "params1": ("feature_rows", "weight_rows", "queue_depth", "rotation")}  # fmt: skip
    shown = {register: {name: getattr(params, name) for name in fields} for register, fields in names.items()}
    shown["params1"]["types"] = sum(1 << bit for bit, family in enumerate(MM_FAMILIES) if family in params.types)
    return shown

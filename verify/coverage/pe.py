"""Which combinations of features random programs of the processing engine have shown."""

from tilewright.golden.pe.checks import decode
from tilewright.golden.pe.machine import Pe
from tilewright.sim.replay.pe_cases import golden_engine
from tilewright.spec.arithmetic import FUNCTIONS, UNITS, Function, Operand
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import INSTRUCTIONS, MEMORY_OPERATIONS, MM_FAMILIES, MmType, Operation, PeError, SegmentElement

from .table import Coverage

__all__ = ["pe_coverage", "sample_program"]

_MM_TYPES = tuple(kind.name for kind in MmType)
_MEMORY = tuple(operation.name for operation in Operation if operation in MEMORY_OPERATIONS)
#: Those that a program has: a core is stopped from outside.
_CODES = tuple(code.name for code in PeError if code != PeError.STOPPED)
_MERGED = tuple(range(1, 5))
_WIDE = tuple(element.name for element in SegmentElement if element.bytes == 4)

_FEATURES = {
    "operation": tuple(operation.name for operation in Operation),
    "error": _CODES,
    "type": _MM_TYPES,
    "ka": _MERGED,
    "kb": _MERGED,
    "t": (0, 1),
    "guarded": (0, 1),
    "memory": _MEMORY,
    "rank": (1, 2, 3, 4),
    "paged": (0, 1),
    "swizzle": tuple(swizzle.name for swizzle in Swizzle),
    "element": tuple(element.name for element in SegmentElement),
    "access": ("NONE", "ALIGNMENT", "UNMAPPED", "OFF_CHIP", "MEMORY"),
    "some": ("all", "some", "none"),
    "function": tuple(function.name for function in Function),
    "unit": UNITS,
    "b": tuple(operand.name for operand in Operand),
    "inside": ("kernel", "stream"),
    "single": (0, 1),
}
_CROSSES = (
    ("operation",),
    ("error",),
    ("ka", "kb", "t", "guarded"),
    ("type", "t"),
    ("memory", "rank", "paged"),
    ("memory", "paged", "swizzle"),
    ("memory", "element", "single"),
    ("function",),
    ("unit", "b", "guarded"),
    ("operation", "inside"),
    ("memory", "access"),
    ("memory", "some"),
)


def pe_coverage(params):
    """An empty account for engines of these sizes."""
    threads = params.threads
    absent = tuple(kind.name for kind in MmType if kind.family not in params.types)
    absent_units = tuple(unit for unit in UNITS if unit not in params.units)
    absent_functions = tuple(function.name for function in Function if FUNCTIONS[function].unit in absent_units)
    controls = ("ARITH", "CALL", "RETURN", "LOOP", "END", "LOAD")
    complete = params.types == MM_FAMILIES and params.units == UNITS
    exclusions = (
        ("more members of a group than threads",
         *({"ka": ka, "kb": tuple(kb for kb in _MERGED if ka * kb > threads)} for ka in _MERGED)),
        ("all types and units are there", *([{"error": "UNSUPPORTED"}] if complete else [])),
        ("there is no such type", {"type": absent}),
        ("never more members than threads", *([{"error": "MERGE"}] if threads >= 16 else [])),
        ("mm has no elements of 32 bits", {"memory": "MM", "element": _WIDE}),
        ("programs end with it", {"operation": "HALT"}),
        ("mm has no elements by themselves", {"memory": "MM", "single": (0, 1)}),
        ("they are refused there", {"operation": ("CALL", "LOAD"), "inside": "kernel"}),
        ("they are refused outside", {"operation": ("RETURN", "LOOP", "END"), "inside": "stream"}),
        ("kernels do not change names of segments", {"operation": "MOV", "inside": "kernel"}),
        ("the unit is not built", {"unit": absent_units}, {"function": absent_functions}),
        ("without units there is no arithmetic", *([] if params.units else [{"operation": controls}])),
    )  # fmt: skip
    return Coverage(_FEATURES, _CROSSES, exclusions)


def sample_program(coverage, program):
    """Runs a program on the golden model and counts its body."""
    engine = golden_engine(program, _Sampled)
    engine.run(program.setup)
    engine.coverage = coverage
    engine.run(program.body)
    engine.coverage = None
    engine.run(program.ending)
    return engine


class _Sampled(Pe):
    """A golden machine that counts what it executes while it has a ``coverage``."""

    coverage = None

    def step(self, word):
        samples = {} if word is None else _before(self, word)
        samples["inside"] = "kernel" if self.kernels.active else "stream"
        fault = super().step(word)
        if self.coverage is not None:
            self.coverage.sample(_samples(samples, fault.code if fault else PeError.NONE))
        return fault


def _before(engine, word):
    """Features of an instruction, as far as they can be seen before it is executed."""
    fmt = INSTRUCTIONS.get(word & 0xFF)
    if fmt is None:
        return {}
    fields = fmt.unpack(word)
    operation = Operation(fields["opcode"])
    samples = {"operation": operation.name}
    if operation in MEMORY_OPERATIONS:
        samples |= {"memory": operation.name, "guarded": fields["guard"]} | _place(engine, fields)
    if operation in (Operation.LD, Operation.ST):
        samples["single"] = fields["element"]
    if operation == Operation.ARITH and decode(word):
        info = FUNCTIONS[fields["function"]]
        samples |= {"function": Function(fields["function"]).name, "unit": info.unit, "guarded": fields["guard"]}
        samples |= {"b": Operand(fields["b"]).name} if "b" in info.operands else {}
    if operation == Operation.MM and fields["type"] in set(MmType):
        samples |= {name: fields[name] for name in ("ka", "kb")}
        samples |= {"t": fields["transpose"], "type": MmType(fields["type"]).name}
    return samples


def _place(engine, fields):
    """Features of the segment that an instruction names, and of how many threads begin inside it."""
    uniform = engine.uniform[fields["ur"]] if fields["ur"] < len(engine.uniform) else None
    segment = engine.segments[uniform] if uniform is not None and uniform < len(engine.segments) else None
    if segment is None or fields["rf"] + segment.rank > engine.sizes.regs:
        return {}
    threads = engine.predicates[fields["predicate"]] if fields["guard"] else True
    coordinates = engine.registers[:, fields["rf"] : fields["rf"] + segment.rank].astype("int64")
    coordinates[:, 0] = coordinates[:, 0] + fields["imm"] & 0xFFFFFFFF
    inside = segment.inside(coordinates) & threads
    return {
        "rank": segment.rank,
        "paged": int(segment.paged),
        "swizzle": segment.swizzle.name,
        "element": segment.element.name,
        "some": "all" if inside.all() else "some" if inside.any() else "none",
    }


def _samples(samples, code):
    """All features as sets; an instruction that does nothing at all shows only its error."""
    if PeError.NONE < code < PeError.PRODUCT or code == PeError.CONTROL:
        samples = {}
    if "some" in samples and samples["some"] != "none":
        samples["access"] = code.name
    samples["error"] = code.name
    return {name: {samples[name]} if name in samples else set() for name in _FEATURES}

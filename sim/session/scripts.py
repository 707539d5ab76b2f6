"""Scripts of a session, made of its users' arguments, which are checked before anything is sent."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tilewright.golden import PeSizes, Program, command_word
from tilewright.golden.arguments import integer, member, shown
from tilewright.hw.core.params import ENGINES
from tilewright.hw.core.top import core_regions
from tilewright.spec import BANKS, CHUNK_BYTES, COMMAND, BarrierOp
from tilewright.spec.cluster import CLUSTER_REGISTERS, MOST_CORES
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.core import PROGRAM_REGISTERS
from tilewright.spec.names import suggestion
from tilewright.spec.pe import PE_REGISTERS
from tilewright.spec.tmau_registers import TMAU_REGISTERS, own_tag_bits, processor_registers

from .products import PeProgram

__all__ = [
    "RegisterMap",
    "barrier_rows",
    "chosen",
    "command_row",
    "command_rows",
    "job_rows",
    "port_order",
    "probability",
    "program_parts",
    "program_rows",
    "read_rows",
    "register_address",
    "register_rows",
    "run_cycles",
    "session_options",
    "shown_values",
    "table_order",
    "window",
]

#: Cycles that the simulation counts at a time.
_CYCLES_MAX = (1 << 32) - 1


def chosen(presets, preset, params):
    """``params``, or those of the preset if they are None."""
    if params is None:
        if not isinstance(preset, str) or preset not in presets:
            wrong = f"{shown(preset)}{suggestion(preset, presets)}"
            raise ValueError(f"the preset must be one of {', '.join(presets)}, not {wrong}")
        return presets[preset]
    kind = type(next(iter(presets.values())))
    if not isinstance(params, kind):
        raise TypeError(f"params must be {kind.__name__}, not {shown(params)}")
    return params


def session_options(simulators, *, simulator, patience, **paths):
    """Checks what every session has: its simulator, its patience in cycles, and paths to leave files at, or None."""
    if not isinstance(simulator, str) or simulator not in simulators:
        wrong = f"{shown(simulator)}{suggestion(simulator, simulators)}"
        raise ValueError(f"the simulator must be one of {', '.join(simulators)}, not {wrong}")
    integer("patience", patience, 1, _CYCLES_MAX)
    for name, path in paths.items():
        if not isinstance(path, str | Path | None):
            raise TypeError(f"{name} must be a path, not {shown(path)}")


def run_cycles(limit, drain):
    """``limit``, which may be None, and ``drain`` of a run."""
    limit = None if limit is None else integer("limit", limit, 1, _CYCLES_MAX)
    return limit, integer("drain", drain, 0, _CYCLES_MAX)


def port_order(ports, after):
    """``after`` of a run, checked: for each port those that must have finished before."""
    if not isinstance(after, dict):
        raise TypeError(f"after must be a dictionary of ports, not {shown(after)}")
    for port, others in after.items():
        if not isinstance(others, list | tuple | set | frozenset):
            raise TypeError(f"after must give a list of ports for {shown(port)}, not {shown(others)}")
        for name in (port, *others):
            if name not in ports:
                raise ValueError(f"after must name ports among {', '.join(ports)}, not {shown(name)}")
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        raise ValueError(f"after must not have ports wait for each other: {' for '.join(error.args[1])}") from None
    return after


def window(name, value, memory):
    """A window of ``memory``, a backdoor: its first address and number of bytes; None or False for none, True for all.

    IndexError if it does not lie there.
    """
    if value is None or value is False:
        return None
    if value is True:
        return memory.base, len(memory)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError(f"{name} must be an address and a number of bytes, not {shown(value)}")
    address, count = integer(name, value[0], 0), integer(name, value[1], 0)
    memory.check(address, count)
    return address, count


def probability(value):
    """A probability as a harness takes it, in 256ths."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the probability of a pause must be a number, not {shown(value)}")
    if not 0 <= value < 1:
        raise ValueError(f"the probability of a pause must be at least 0 and less than 1, not {value!r}")
    return min(round(256 * value), 255)


_WORD_MAX = (1 << 32) - 1
_COMMAND_MAX = (1 << COMMAND.bits) - 1
_OPERATION_MAX = 7


def program_parts(program, segments, pages, params):
    """Instructions, segments, pages and shared memory of a program, or of a golden ``Program``, on PeParams.

    Shared memory is None where the program is a sequence of words.
    """
    if isinstance(program, Program):
        for name in PeSizes.__dataclass_fields__:
            made, has = getattr(program.sizes, name), getattr(params, name)
            if name != "types" and made != has:
                raise ValueError(f"the program is made for {made} {name}, and the hardware has {has}: give it sizes")
        kind = program.gemm.type
        if kind.family not in params.types:
            raise ValueError(
                f"the program multiplies {kind.name.lower()}, and the hardware takes {', '.join(params.types)}"
            )
        if segments is not None or pages is not None:
            raise ValueError("a Program brings its segments and pages: they must be left out")
        whole = PeProgram.of_product(program)
        return whole.words, whole.segments, whole.pages, whole.smem
    return program, {} if segments is None else segments, {} if pages is None else pages, None


def table_order(after):
    """``after`` of a run with a program, which begins when the tables are written, unless it says otherwise."""
    first = {"instructions": ("segments", "pages")}
    return first if after is None else first | after if isinstance(after, dict) else after


def program_rows(program, segments, pages, params):
    """Rows of a program's ports on PeParams: instructions, and words of segments and page entries by number."""
    rows = {"instructions": [{"item": integer("an instruction", word, 0)} for word in _listed("program", program)]}
    for port, words in (("segments", segments), ("pages", pages)):
        if not isinstance(words, dict):
            raise TypeError(f"{port} must be a dictionary of words by their numbers, not {shown(words)}")
        count = getattr(params, port)
        for index in words:
            if integer(f"a number of {port}", index, 0) >= count:
                raise ValueError(f"a number of {port} must be one of the {count} {port}, not {index}")
        rows[port] = [
            {"item": {"index": int(index), "word": integer(f"a word of {port}", word, 0)}}
            for index, word in words.items()
        ]
    return rows


def command_rows(commands, processors=1):
    """Rows of commands for a unit with ``processors`` processors; a dictionary without a tag gets its index as one."""
    return [command_row(command, number, processors) for number, command in enumerate(_listed("commands", commands))]


def command_row(command, number, processors=1):
    """A command: packed, or a dictionary of fields of the format that its opcode has in ``spec.FORMATS``.

    In a dictionary, the tag is ``number`` if left out; ``wait`` may be there, and of several processors ``processor``,
    a number for the upper bits of the tag; an opcode of no operation has the fields of ``COMMAND``.
    """
    if not isinstance(command, dict):
        return {"item": integer("a command that is no dictionary", command, 0, _COMMAND_MAX)}
    fields = {"opcode": 0, "tag": number} | command
    wait = fields.pop("wait", False)
    if "processor" in fields:
        processor = integer("processor", fields.pop("processor"), 0, processors - 1)
        own_bits = own_tag_bits(processors)
        fields["tag"] = processor << own_bits | integer("tag", fields["tag"], 0, (1 << own_bits) - 1)
    return {"item": command_word(**fields), "wait": wait}


def job_rows(jobs):
    """Rows of packed jobs."""
    return [{"item": integer("a job", word, 0)} for word in _listed("jobs", jobs)]


def read_rows(reads, smem_bytes):
    """Rows of reads of the consumer from shared memory of ``smem_bytes`` bytes."""
    return [_read_row(lanes, smem_bytes) for lanes in _listed("reads", reads)]


def _read_row(lanes, smem_bytes):
    """A read of the consumer: up to eight byte addresses, None for a lane that does not read."""
    addresses = [None if address is None else _shared_address("an address of reads", address, smem_bytes)
                 for address in _listed("an entry of reads", lanes)]  # fmt: skip
    if len(addresses) > BANKS or any((address or 0) % CHUNK_BYTES for address in addresses):
        raise ValueError(f"a read has up to {BANKS} addresses that are multiples of {CHUNK_BYTES}, not {lanes!r}")
    wanted = sum(1 << lane for lane, address in enumerate(addresses) if address is not None)
    return {"item": {"lanes": wanted, "chunks": [(address or 0) // CHUNK_BYTES for address in addresses]}}


def barrier_rows(barriers, smem_bytes, most=4):
    """Rows of operations on barriers in shared memory of ``smem_bytes`` bytes, of at most ``most`` entries."""
    return [_barrier_row(smem_bytes, *_entries("barriers", operation, 2, most))
            for operation in _listed("barriers", barriers)]  # fmt: skip


def _barrier_row(smem_bytes, op, address, value=0, retry=False, of=None):
    """An operation, which may be one that does not exist, by number, on a barrier; ``of`` another core of a cluster."""
    op = member("the operation", BarrierOp, op) if isinstance(op, str) else integer("the operation", op, 0,
                                                                                   _OPERATION_MAX)  # fmt: skip
    address = _shared_address("the barrier", address, smem_bytes)
    request = {"op": op, "address": address, "value": integer("the value", value, 0)}
    if of is not None:
        request |= {"remote": 1, "core": integer("the core of a barrier", of, 0, MOST_CORES - 1)}
    return {"item": {"request": request, "retry": bool(retry)}}


def register_rows(registers, table):
    """Rows of accesses to registers of a table: a name, and the word to write, if there is one."""
    listed = [_entries("registers", access, 1, 2) for access in _listed("registers", registers)]
    return [_register_row(register_address(table, name), *word) for name, *word in listed]


class RegisterMap:
    """The registers of a core by the name of their engine; an access that names none is to the first engine's.

    Parameters
    ----------
    params : CoreParams
    """

    def __init__(self, params):
        tables = {"pe": PE_REGISTERS, "conv": CONV_REGISTERS, "program": PROGRAM_REGISTERS}
        if params.tmau:
            shared = processor_registers(params.tmau.processors, params.tmau.has("windows"))
            tables["tmau"] = TMAU_REGISTERS + (CLUSTER_REGISTERS if params.cores > 1 else ()) + shared
        regions = core_regions(params)
        self._tables = {name: tables[name] for name in params.engines}
        self._bases = {name: regions[name].base for name in params.engines}

    def table(self, engine=None):
        """Registers of an engine."""
        engine = next(iter(self._tables)) if engine is None else engine
        if engine not in self._tables:
            wrong = f"{shown(engine)}{suggestion(engine, self._tables)}"
            raise ValueError(f"the engine must be one of {', '.join(self._tables)}, not {wrong}")
        return self._tables[engine]

    def address(self, *register):
        """Byte address of a register: an engine and a name, a name, or the address itself."""
        *engine, name = register
        if not engine and not isinstance(name, str):
            return register_address((), name)
        engine = engine[0] if engine else next(iter(self._tables))
        return register_address(self.table(engine), name) + self._bases[engine]

    def addresses(self, name):
        """Byte addresses of a register that all engines have at one offset, by engine."""
        return {engine: base + register_address(self._tables[engine], name) for engine, base in self._bases.items()}

    def rows(self, accesses):
        """Rows of accesses: a register as of :meth:`address`, followed by the word to write, if there is one."""
        rows = []
        for access in _listed("registers", accesses):
            access = _entries("registers", access, 1, 3)
            named = access[0] in ENGINES or isinstance(access[-1], str)  # two names are an engine and its register
            count = min(len(access), 2 if len(access) == 3 or named else 1)
            rows.append(_register_row(self.address(*access[:count]), *access[count:]))
        return rows


def register_address(table, name):
    """Byte address of the register ``name`` of a table, which may be the address itself."""
    if not isinstance(name, str):
        return integer("a register that is no name", name, 0, _WORD_MAX)
    offsets = {register.name: register.offset for register in table}
    if name not in offsets:
        raise ValueError(f"there is no register {name!r}{suggestion(name, offsets)}")
    return offsets[name]


def shown_values(table, answers):
    """Values of the registers of a table that the hardware has, by name, from the answers to reads of all of them."""
    pairs = zip(table, answers, strict=True)
    return {register.name: answer.data for register, answer in pairs if not answer.response}


def _register_row(address, *word):
    """A read of a register, or a write of one word."""
    data = integer("the word of a register", word[0], 0, _WORD_MAX) if word else 0
    return {"item": {"address": address, "write": len(word), "data": data, "strobe": 0b1111}}


def _shared_address(what, address, smem_bytes):
    """An address that the ports of shared memory of ``smem_bytes`` bytes can hold."""
    if integer(what, address, 0) >= smem_bytes:
        raise ValueError(f"{what} must lie in the {smem_bytes} bytes of shared memory, not at {int(address):#x}")
    return int(address)


def _listed(name, value):
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} must be a list, not {shown(value)}")
    return value


def _entries(name, value, least, most):
    if not isinstance(value, list | tuple) or not least <= len(value) <= most:
        raise TypeError(f"{name} must be tuples of {least} to {most} entries, not {shown(value)}")
    return value

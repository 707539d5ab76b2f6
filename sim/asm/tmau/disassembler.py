"""The text of TMAU commands, written: a 512-bit command as a line that the assembler reads."""

from tilewright.golden.spec import COMMAND, DESCRIPTOR, FORMATS, Element, LaneLayout, Mode, Opcode, Reduction, Space
from tilewright.golden.tmau.descriptor import spoken

from ...usage import UsageError
from .assembler import BLOCK_BYTES, assemble_line

__all__ = ["disassemble"]


def disassemble(word, tmap=None):
    """The line of a command; ``word n`` if it has bits that no line says.

    Mode and rank are the descriptor's: without ``tmap``, im2col is seen by its offsets, and rank 5 is taken.
    """
    opcode = COMMAND.unpack(word)["opcode"]
    if opcode in FORMATS:
        command = FORMATS[opcode].unpack(word)
        try:
            text = _WRITERS[opcode](command, tmap)
            text += f" tag={command['tag']}" if command["tag"] else ""
            if assemble_line(text) == word:
                return text
        except (UsageError, ValueError):
            pass  # an enumeration has no name for the number, or no line may have it
    return f"word {word:#x}"


def _tensor(command, tmap):
    opcode = command["opcode"]
    offsets = command["offsets"]
    im2col = any(offsets) if tmap is None else tmap.mode == Mode.IM2COL
    rank = 5 if tmap is None else tmap.rank
    operation = f"{'im2col' if im2col else 'tiles'}.{rank}d"
    words = [f"{command['descriptor']:#x}", _tuple(command["coords"][:rank])]
    if opcode == Opcode.PREFETCH:
        operation = f"prefetch_tensor.{operation}"
    else:
        source = "fill" if command["fill"] else "shared"
        route = "shared,global" if opcode == Opcode.LOAD else f"global,{source}"
        operation = f"copy_tensor.{operation}.{route}"
        if opcode == Opcode.REDUCE:
            operation += f".{Reduction(command['reduction']).name.lower()}"
        if not (opcode != Opcode.LOAD and command["fill"]):
            words.append(f"{command['smem']:#x}")
        if command["signal"]:
            words.append(f"{command['barrier']:#x}")
    if im2col and any(offsets):
        words.append(_tuple(offsets[: rank - 2]))
    return " ".join([operation, *words])


def _block(command, _):
    words = [f"{command['source']:#x}", str(command["size"] // BLOCK_BYTES)]
    if command["opcode"] == Opcode.PREFETCH_BLOCK:
        return " ".join(["prefetch_block", *words])
    target, source = (Space(command[f"{side}_space"]).name.lower() for side in ("destination", "source"))
    operation = f"copy_block.{target},{source}"
    if command["reduction"]:
        operation += f".{Reduction(command['reduction']).name.lower()}.{spoken(Element(command['element']))}"
    barrier = [f"{command['barrier']:#x}"] if command["signal"] else []
    return " ".join([operation, f"{command['destination']:#x}", *barrier, *words])


def _group(command, _):
    name = Opcode(command["opcode"]).name.lower()
    if command["opcode"] == Opcode.WAIT:
        return f"{name}{'.read' if command['read'] else ''} {command['count']}"
    return name


def _replace(command, _):
    if command["field"] >= len(DESCRIPTOR.fields):
        raise ValueError("no field has this number")
    field = DESCRIPTOR.fields[command["field"]]
    index = f"[{command['index']}]" if field.count or command["index"] else ""
    return f"replace {command['descriptor']:#x} {field.name}{index} {command['value']:#x}"


def _lanes(command, _):
    sides = {}
    for side in ("source", "destination"):
        lane = command[f"{side}_lane"]
        sides[side] = f"{command[side]:#x}{f':{lane}' if lane else ''}"
    layouts = ",".join(LaneLayout(command[f"{side}_layout"]).name.lower() for side in ("destination", "source"))
    barrier = [f"{command['barrier']:#x}"] if command["signal"] else []
    words = [sides["destination"], *barrier, sides["source"], _tuple(command["shape"])]
    units = [str(1 << command[name]) for name in ("lanes_log2", "eu_log2")]
    return " ".join([f"lanes.{spoken(Element(command['element']))}.{layouts}", *words, *units])


def _tuple(numbers):
    return f"({','.join(map(str, numbers))})"


_WRITERS = {
    **dict.fromkeys((Opcode.LOAD, Opcode.STORE, Opcode.REDUCE, Opcode.PREFETCH), _tensor),
    Opcode.INVALIDATE: lambda command, _: f"invalidate {command['descriptor']:#x}",
    **dict.fromkeys((Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK), _block),
    **dict.fromkeys((Opcode.COMMIT, Opcode.WAIT, Opcode.WAIT_ALL, Opcode.INVALIDATE_ALL), _group),
    Opcode.REPLACE: _replace,
    Opcode.LANES: _lanes,
}

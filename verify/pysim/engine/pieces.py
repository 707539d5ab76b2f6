"""What is combinational in a design, in pieces and in an order in which each is evaluated once."""

from amaranth.hdl import _ast
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim import _pyrtl

__all__ = ["PieceCompiler", "in_order"]


class PieceCompiler(_pyrtl._FragmentCompiler):
    """Compiles a design to processes of clocks, which it returns, and to :attr:`pieces` for all between them.

    Amaranth makes one process of all that is combinational in a module, and runs it again for each step that a change
    takes on its way through.

    Attributes
    ----------
    pieces : list of _Piece
    """

    def __init__(self, state):
        super().__init__(state)
        self.pieces = []

    def __call__(self, fragment):
        statements = fragment.statements
        ports = fragment._read_ports if isinstance(fragment, MemoryInstance) else ()
        self._add(_split(statements.get("comb", ())), fragment, [port for port in ports if port._domain == "comb"])
        fragment.statements = {domain: found for domain, found in statements.items() if domain != "comb"}
        if ports:
            fragment._read_ports = [port for port in ports if port._domain != "comb"]
        processes = super().__call__(fragment)
        fragment.statements = statements
        if ports:
            fragment._read_ports = ports
        return processes

    def _add(self, parts, memory, ports):
        """A piece for each list of statements, and for each port of a memory that has no clock."""
        emitter, pieces = _pyrtl._PythonEmitter(), []
        for statements in parts:
            masks = LHSMaskCollector()
            masks.visit_stmt(statements)
            pieces.append(_Piece(self.state, emitter, len(pieces), masks, statements))
        for port in ports:
            masks = LHSMaskCollector()
            masks.visit_value(port._data, ~0)
            pieces.append(_Piece(self.state, emitter, len(pieces), masks, memory=memory._data, port=port))
        if pieces:
            emitter.append(f"run = [{', '.join(f'run_{number}' for number in range(len(pieces)))}]")
            names = {"slots": self.state.slots, **_pyrtl._ValueCompiler.helpers, **_pyrtl._StatementCompiler.helpers}
            exec(_pyrtl.compile(emitter.flush(), "<string>", "exec"), names)
            for piece, piece.run in zip(pieces, names["run"], strict=True):
                self.pieces.append(piece)


class _Piece:
    """Some code: numbers of the slots that it reads and drives, and when it is compiled, a function."""

    def __init__(self, state, emitter, number, masks, statements=(), memory=None, port=None):
        signals, driven = _ast.SignalSet(), []
        emitter.append(f"def run_{number}():")
        emitter._level += 1
        for signal, mask in masks.masks():
            slot = state.get_signal(signal)
            state.slots[slot].is_comb = True
            driven.append((slot, mask, len(signal), signal.shape().signed))
            emitter.append(f"next_{slot} = {signal.init}")
        compiler = _pyrtl._StatementCompiler(state, emitter, inputs=signals)
        compiler(_ast._StatementList(statements))
        if port is not None:
            place = state.get_memory(memory)
            address = f"{(1 << len(port._addr)) - 1:#x} & {compiler.rhs(port._addr)}"
            compiler.lhs(port._data)(emitter.def_var("read_data", f"slots[{place}].read({address})"))
        for slot, mask, width, is_signed in driven:
            if mask != (1 << width) - 1:  # another piece drives the rest, or nothing does
                mask |= -1 << width if is_signed and mask >> width - 1 else 0
                emitter.append(f"next_{slot} = slots[{slot}].next & {~mask} | next_{slot} & {mask}")
            emitter.append(f"if slots[{slot}].curr != next_{slot}: slots[{slot}].drive(next_{slot})")
        emitter._level -= 1
        self.reads = [state.get_signal(signal) for signal in signals] + ([] if port is None else [place])
        self.drives = [slot for slot, *_ in driven]


def in_order(pieces):
    """The pieces, each behind those that drive what it reads; in a loop of them one has to be before."""
    drivers = {}
    for piece in pieces:
        for slot in piece.drives:
            drivers.setdefault(slot, []).append(piece)
    ordered, begun = [], set()
    for last in pieces:
        # Chains are longer than Python's stack is deep.
        chain = [(last, iter([last]))]
        while chain:
            piece, before = chain[-1]
            for each in before:
                if each not in begun:
                    begun.add(each)
                    chain.append((each, iter([driver for slot in each.reads for driver in drivers.get(slot, ())])))
                    break
            else:
                chain.pop()
                if chain:
                    ordered.append(piece)
    return ordered


def _split(statements):
    """Lists of statements, of which no two drive a signal together."""
    joined = {}

    def group(signal):
        while joined[signal] != signal:
            signal = joined[signal]
        return signal

    def join(statements):
        for statement in statements:
            if type(statement) is _ast.Assign:
                first, *others = [id(signal) for signal in statement._lhs_signals()]
                joined.setdefault(first, first)
                for other in others:
                    joined.setdefault(other, other)
                    joined[group(other)] = group(first)
            elif type(statement) is _ast.Switch:
                for _, inner, _ in statement.cases:
                    join(inner)

    def parts(statements):
        found = {}
        for statement in statements:
            if type(statement) is _ast.Switch:
                cases = [(patterns, parts(inner), place) for patterns, inner, place in statement.cases]
                for key in dict.fromkeys(key for _, inner, _ in cases for key in inner):
                    found.setdefault(key, []).append(_switch(statement, key, cases))
            else:
                # Assertions and messages drive nothing.
                signals = statement._lhs_signals()
                key = group(id(next(iter(signals)))) if signals else None
                found.setdefault(key, []).append(statement)
        return found

    join(statements)
    return list(parts(statements).values())


def _switch(whole, key, cases):
    # Patterns are in order already: making a switch anew would look at them again.
    found = _ast.Switch.__new__(_ast.Switch)
    found.src_loc, found._test = whole.src_loc, whole.test
    found._cases = [(patterns, _ast._StatementList(inner.get(key, ())), place) for patterns, inner, place in cases]
    return found

"""What Amaranth does with a design before it is simulated, in less time."""

from contextlib import ExitStack, contextmanager

from amaranth.hdl import _ast, _xfrm

__all__ = ["quick_passes"]


@contextmanager
def quick_passes():
    """Elaborates, and leaves values in which there is nothing to replace as they are.

    Values never change, but each of Amaranth's passes makes all of them anew. Not for netlists: what several statements
    share would be one cell there, and is one for each of them.
    """
    with ExitStack() as before:
        for name, replace in _REPLACE.items():
            before.callback(setattr, _xfrm.ValueTransformer, name, getattr(_xfrm.ValueTransformer, name))
            setattr(_xfrm.ValueTransformer, name, replace)
        yield


def _operator(self, value):
    operands = [self.on_value(operand) for operand in value.operands]
    return value if _are(operands, value.operands) else _ast.Operator(value.operator, operands)


def _slice(self, value):
    whole = self.on_value(value.value)
    return value if whole is value.value else _ast.Slice(whole, value.start, value.stop)


def _part(self, value):
    whole, offset = self.on_value(value.value), self.on_value(value.offset)
    same = whole is value.value and offset is value.offset
    return value if same else _ast.Part(whole, offset, value.width, value.stride)


def _concat(self, value):
    parts = [self.on_value(part) for part in value.parts]
    return value if _are(parts, value.parts) else _ast.Concat(parts)


def _switch_value(self, value):
    test, found = self.on_value(value.test), [self.on_value(part) for _, part in value.cases]
    if test is value.test and _are(found, [part for _, part in value.cases]):
        return value
    return _ast.SwitchValue(test, [(patterns, part) for (patterns, _), part in zip(value.cases, found, strict=True)])


def _are(values, others):
    return all(value is other for value, other in zip(values, others, strict=True))


#: By the function of Amaranth's passes, all of which make a value of its replaced parts.
_REPLACE = {
    "on_Operator": _operator,
    "on_Slice": _slice,
    "on_Part": _part,
    "on_Concat": _concat,
    "on_SwitchValue": _switch_value,
}

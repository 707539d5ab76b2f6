"""What ONNX says that an operator has: attributes become inputs from one version to the next, and defaults change."""

import onnx

from ..errors import ModelError

__all__ = ["check_opset", "check_schema"]

#: Before it, operators broadcast as attributes say, and some defaults are others.
_FIRST = 7


def check_opset(opset):
    """Refuses versions of ONNX's operators whose meaning is not known here."""
    last = onnx.defs.onnx_opset_version()
    if not _FIRST <= opset <= last:
        raise ModelError(f"the operators are of opset {opset}: {_FIRST} to {last} are supported")


def check_schema(op, opset):
    """Refuses a node of ONNX's own domain that has what its operator does not have in a version."""
    try:
        schema = onnx.defs.get_schema(op.kind, opset)
    except onnx.defs.SchemaError:
        raise op.refusal(f"the operator does not exist in opset {opset}") from None
    for attribute in op.proto.attribute:
        if attribute.name not in schema.attributes:
            raise op.refusal(f"its attribute {attribute.name!r} does not exist in opset {opset}")
    for what, names, most in (
        ("inputs", op.proto.input, schema.max_input), ("outputs", op.proto.output, schema.max_output),
    ):  # fmt: skip
        if len(names) > most:
            raise op.refusal(f"it has {len(names)} {what}, of which there are {most} at most in opset {opset}")

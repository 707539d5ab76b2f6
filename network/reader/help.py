"""What would help a model whose operator is not supported."""

__all__ = ["help_for"]

_KERNEL = "it would need a kernel of the processing engine, and there is none"
_STATIC = "quantise the model statically (docs/quantise.md)"
_PLAIN = "export the model without control flow"
_HELP = {
    **dict.fromkeys(("LRN", "LpNormalization"), f"elsewhere {_KERNEL}"),
    **dict.fromkeys(("If", "Loop", "Scan"), _PLAIN),
    **dict.fromkeys(("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"), _STATIC),
}  # fmt: skip


def help_for(kind):
    """The end of a refusal of an operator: what would help, after a colon; nothing if that is not known."""
    return f": {_HELP[kind]}" if kind in _HELP else ""

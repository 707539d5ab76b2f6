"""What the host may compute after the engines (docs/models.md, "At the end")."""

from .graph import HOST_SHARE, ModelError, node_error

__all__ = ["late_nodes"]


def late_nodes(graph):
    """Errors of nodes that only the host computes, if more multiplications follow them than the host may do.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    list of ModelError
        In the order of the nodes; none if the host may compute all of the tail. Nodes that are there only because a
        later one needs their floats are left out.
    """
    macs = {node.output: graph.macs(node) for node in graph.tail}
    if sum(macs.values()) * HOST_SHARE <= sum(map(graph.macs, graph.nodes)):
        return []
    needed, late = set(), []
    for node in reversed(graph.tail):
        if macs[node.output] or node.output in needed:
            needed.update(node.inputs)
        if node.output in needed and node.kind in ("Floats", "Softmax"):
            late.append(node)
    late = [node for node in late if getattr(node.attributes, "reason", "")] or late
    return [_error(node) for node in reversed(late)] or [_error(next(node for node in graph.tail if macs[node.output]))]


def _error(node):
    reason = getattr(node.attributes, "reason", "")
    if reason:
        return ModelError(reason)
    return node_error(node.name, node.operator or node.kind, "the operator is only at the end of a network supported")

"""For all tests: which files run first, and connections are between equal layouts."""

import gc
from functools import wraps

from amaranth.lib import data, wiring

#: Files that build a simulator which others use too, each another one: two processes that need the same one at the same
#: time would wait for each other.
BUILDERS = [
    "integration/cluster/test_networks.py", "integration/core/test_program.py", "integration/cluster/test_cluster.py",
    "cocotb/test_monitored.py", "integration/conv/test_overlap.py", "integration/tmau/test_align.py",
    "integration/pe/test_multiply.py", "integration/cluster/test_l2_alone.py", "integration/conv/test_garbage.py",
]  # fmt: skip


def pytest_collection_modifyitems(items):
    ranks = {f"tests/{name}": rank for rank, name in enumerate(BUILDERS)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))


# Amaranth's ``connect`` compares widths only.
def _layouts(port):
    """Layouts of the members of an interface, by path; plain shapes are left to Amaranth."""
    shapes = {path: member.shape for path, member, _ in port.signature.flatten(port)}
    return {path: data.Layout.cast(shape) for path, shape in shapes.items() if _is_layout(shape)}


def _is_layout(shape):
    return isinstance(shape, data.Layout) or (isinstance(shape, type) and issubclass(shape, data.Struct))


def _checked(connect):
    @wraps(connect)
    def checked(m, *args, **kwargs):
        named = dict(enumerate(args)) | kwargs
        (name, first), *others = ((name, _layouts(port)) for name, port in named.items())
        for other_name, other in others:
            for path in first.keys() & other.keys():
                if first[path] != other[path]:
                    raise TypeError(f"{name} and {other_name} have different layouts at {'.'.join(map(str, path))}")
        return connect(m, *args, **kwargs)

    return checked


# Before any module of the package is imported, which would bind the function itself.
wiring.connect = _checked(wiring.connect)

# Designs are millions of objects, and are kept: each search for garbage among them is for nothing.
gc.set_threshold(50_000, 20, 50)

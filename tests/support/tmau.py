"""Commands of the access unit on a session and on golden."""

from tilewright.golden import Machine, Memory, command_word
from tilewright.verify.compare.differences import bus_differences, ending_differences, memory_differences

__all__ = ["compare_with_golden"]


def compare_with_golden(session, commands, contents, smem, **options):
    """Runs commands, tagged with their numbers, on both memories; golden must agree with all bytes and ends.

    ``options`` are those of the session's run, which is returned.
    """
    params = session.params.tmau
    session.global_memory.write(0, contents)
    session.shared_memory.write(0, smem)
    machine = Machine(Memory(contents.copy()), smem.copy(), params.bus_bytes, params.addr_width)
    for tag, command in enumerate(commands):
        machine.execute(command_word(**{"tag": tag} | {key: of for key, of in command.items() if key != "wait"}))
    run = session.run(commands, shared=True, memory=(0, len(contents)), **options)
    differences = [
        *bus_differences(run),
        *ending_differences(run, machine),
        *memory_differences("shared memory", run.shared, machine.smem, smem),
        *memory_differences("global memory", run.memory, machine.gmem.data, contents),
    ]
    assert not differences, differences
    return run

"""Several streams, of which at most one has something."""

__all__ = ["pick"]


def pick(m, ports, payload, valid, ready):
    """Connects the one of ``ports`` that is valid to ``payload`` and ``valid``.

    No arbitration: only one may be valid at a time, and so all have ``ready``, which does not wait for who it is. If
    none is valid the payload is the last one's, so that nothing waits for whether that one is.

    Parameters
    ----------
    m : Module
    ports : sequence of streams, in
    payload, valid : Signal
        To be driven.
    ready : Value
    """
    m.d.comb += [port.ready.eq(ready) for port in ports]
    *others, last = ports
    m.d.comb += [payload.eq(last.payload), valid.eq(last.valid)]
    for number, port in enumerate(others):
        with m.If(port.valid) if number == 0 else m.Elif(port.valid):
            m.d.comb += [payload.eq(port.payload), valid.eq(1)]

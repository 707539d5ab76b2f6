"""A reference system: a RISC-V processor with a core, memory and a serial port, and firmware that runs a network."""

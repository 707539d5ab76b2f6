"""An access unit on a development board: shared and global memory on the chip, and a serial line to a computer."""

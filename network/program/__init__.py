"""From layers that have been cut to a program with its memory, and to its run (docs/network.md, "The program")."""

"""Random commands, descriptors and programs."""

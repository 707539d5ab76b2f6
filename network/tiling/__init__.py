"""How layers are cut so that they fit shared memory, and which are done together (docs/network.md, "Tiles")."""

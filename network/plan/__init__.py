"""The steps of a network's layers, and the programs that do them (docs/network.md, "The plan")."""

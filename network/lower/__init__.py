"""From a network to a program of the core: layers, tiles, memory, words (docs/network.md, "On the engines")."""

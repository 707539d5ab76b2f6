"""From a graph to layers of jobs: what each operator is on the engines (docs/network.md, "On the engines")."""

"""What a cluster adds to the commands of its cores, and its errors (docs/cluster.md)."""

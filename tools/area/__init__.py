"""What blocks cost: LUTs, flip-flops, memories, levels of logic."""

"""What the tensor memory access unit means: descriptors, tiles, fill, swizzle."""

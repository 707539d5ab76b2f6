"""Speed, in exact cycles beside their limits."""

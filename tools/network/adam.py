"""A step of Adam with decay, for the programs that train models; it needs JAX."""

import jax
import jax.numpy as jnp

__all__ = ["adam", "no_state"]


def no_state(weights):
    """The state before the first step: both averages of slopes."""
    return jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)


def adam(weights, state, slopes, rate, decay, number):
    """Weights and state after step ``number``, counted from 0."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state[0], slopes)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, state[1], slopes)
    before, squared = 1 - 0.9 ** (number + 1), 1 - 0.99 ** (number + 1)
    return jax.tree.map(
        lambda w, m, v: w - rate * (m / before / (jnp.sqrt(v / squared) + 1e-6) + decay * w), weights, first, second
    ), (first, second)

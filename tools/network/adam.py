"""Adam with decay, for the programs that train models; it needs JAX."""

import jax
import jax.numpy as jnp

__all__ = ["adam", "fit", "no_state"]

_RISE = 100  # steps in which the rate rises
_SHOWN = 250  # steps between lines that show the loss


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


def fit(network, weights, draw, *, steps, rate, decay):
    """The weights after ``steps`` of training for classes, at a rate that falls as a cosine.

    ``network`` gives scores, [n, classes], of weights and inputs; ``draw()`` inputs and the numbers of their classes.
    """

    def loss_of(weights, inputs, targets):
        scores = jax.nn.log_softmax(network(weights, inputs))
        return -jnp.take_along_axis(scores, targets[:, None], 1).mean()

    @jax.jit
    def step(weights, state, inputs, targets, number):
        loss, slopes = jax.value_and_grad(loss_of)(weights, inputs, targets)
        now = rate * jnp.minimum(number / _RISE, 0.5 + 0.5 * jnp.cos(jnp.pi * number / steps))
        return *adam(weights, state, slopes, now, decay, number), loss

    state = no_state(weights)
    for number in range(steps):
        weights, state, loss = step(weights, state, *draw(), number)
        if number % _SHOWN == 0:
            print(f"step {number}: loss {loss:.3f}", flush=True)
    return weights

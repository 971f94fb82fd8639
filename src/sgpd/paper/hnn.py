"""The baseline: a Hamiltonian neural network (Greydanus, Dzamba, Yosinski 2019), trained as its authors train theirs.

The network is an energy, fitted to finite differences of the recording; nothing is integrated before the rollout.
Training is in single precision, as theirs is: double takes twice as long. Networks come back in double precision.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float

from sgpd.arrays import Key, Scalar, State
from sgpd.fields import Field, halves
from sgpd.integrators import adaptive_rollout

WIDTH = 200
LEARNING_RATE = 1e-3
ROUND = 100  # steps between two calls of `progress`

Rows = Float[np.ndarray, "n d"]


class HamiltonianNetwork(eqx.Module):
    """H(x) = w₃ · tanh(W₂ tanh(W₁ x + b₁) + b₂), and its field f = (-H_q, H_p). No last bias: f would not see it."""

    w1: Float[Array, "width d"]
    b1: Float[Array, " width"]
    w2: Float[Array, "width width"]
    b2: Float[Array, " width"]
    w3: Float[Array, " width"]

    @classmethod
    def initial(cls, key: Key, dimension: int) -> "HamiltonianNetwork":
        """Orthogonal weights; biases as PyTorch's `Linear` has them, uniform within ±1/√inputs."""
        k_w1, k_b1, k_w2, k_b2, k_w3 = jr.split(key, 5)
        orthogonal = jax.nn.initializers.orthogonal()
        return cls(
            w1=orthogonal(k_w1, (WIDTH, dimension)),
            b1=jr.uniform(k_b1, (WIDTH,), minval=-1, maxval=1) / dimension**0.5,
            w2=orthogonal(k_w2, (WIDTH, WIDTH)),
            b2=jr.uniform(k_b2, (WIDTH,), minval=-1, maxval=1) / WIDTH**0.5,
            w3=orthogonal(k_w3, (1, WIDTH))[0],
        )

    def energy(self, x: State) -> Scalar:
        """H(x)."""
        return self.w3 @ jnp.tanh(self.w2 @ jnp.tanh(self.w1 @ x + self.b1) + self.b2)

    def __call__(self, x: State) -> State:
        dp, dq = halves(jax.grad(self.energy)(x))
        return jnp.concatenate([-dq, dp])


def _slopes(times: np.ndarray, states: np.ndarray) -> np.ndarray:
    return np.diff(states, axis=0) / np.diff(times)[:, None]


# From (times, states) to (states, derivatives there). The paper does not say which it takes.
DIFFERENCES: dict[str, Callable[[Float[np.ndarray, " n"], Rows], tuple[Rows, Rows]]] = {
    "gradient": lambda times, states: (states, np.gradient(states, times, axis=0)),
    "forward": lambda times, states: (states[:-1], _slopes(times, states)),
    "midpoint": lambda times, states: ((states[:-1] + states[1:]) / 2, _slopes(times, states)),
}


def train_networks(
    states: Float[np.ndarray, "seeds n d"],
    derivatives: Float[np.ndarray, "seeds n d"],
    steps: int,
    seeds: Sequence[int],
    *,
    weight_decay: float = 1e-4,
    progress: Callable[[int, int], None] | None = None,
) -> list[HamiltonianNetwork]:
    """One network a seed, each on its own rows, side by side: faster than in turn. `progress` hears (done, in all).

    The authors take 2000 steps for one degree of freedom; for two bodies, without noise, 10000 and no weight decay.
    """
    keys = jnp.stack([jr.key(seed) for seed in seeds])
    networks = jax.vmap(lambda key: HamiltonianNetwork.initial(key, states.shape[-1]))(keys)
    networks, rows, targets = _cast((networks, states, derivatives), jnp.float32)
    moments = jax.vmap(_optimiser(weight_decay).init)(networks)
    # Not one compiled loop: there XLA would write out the matrix products itself, ten times slower than its library.
    for done in range(1, steps + 1):
        networks, moments = _train_step(networks, moments, rows, targets, weight_decay)
        if progress is not None and (done % ROUND == 0 or done == steps):
            jax.block_until_ready(networks)  # what has only been asked for is not done
            progress(done, steps)
    networks = _cast(networks, jnp.float64)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], networks) for i in range(len(seeds))]


@eqx.filter_jit
def _train_step(
    networks: HamiltonianNetwork,
    moments: optax.OptState,
    states: Float[Array, "seeds n d"],
    derivatives: Float[Array, "seeds n d"],
    weight_decay: float,
) -> tuple[HamiltonianNetwork, optax.OptState]:
    """One more step for each network, on all of its rows at once."""
    optimiser = _optimiser(weight_decay)

    def step(network, moments, x, dx):
        error = lambda network: jnp.mean((jax.vmap(network)(x) - dx) ** 2)
        change, moments = optimiser.update(jax.grad(error)(network), moments, network)
        return eqx.apply_updates(network, change), moments

    return jax.vmap(step)(networks, moments, states, derivatives)


def _optimiser(weight_decay: float) -> optax.GradientTransformation:
    # torch.optim.Adam adds the decay to the gradient, before the moments see it. That is not AdamW.
    return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(LEARNING_RATE))


def _cast(tree, dtype):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), tree)


_rolled = eqx.filter_jit(adaptive_rollout)


def roll(field: Field, x0: State | np.ndarray, times: Float[np.ndarray, " n"]) -> tuple[Rows, bool]:
    """The solution at `times` from x0 at times[0], by adaptive steps, and whether it reached the end and is finite."""
    states, ok = _rolled(field, jnp.asarray(x0), jnp.asarray(times))
    return np.asarray(states), bool(ok)

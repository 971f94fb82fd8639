"""Where a fit stands, on disk, so that an interrupted one goes on to the same numbers."""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from sgpd.arrays import on_device
from sgpd.errors import BadInput
from sgpd.writing import write_whole


class Checkpoint:
    """One file with the arrays of a fit's state and its history. Without a path it keeps nothing.

    `identity` is whatever decides the numbers of the fit: a file that another fit has left is refused.
    """

    def __init__(self, path: str | Path | None, identity: PyTree):
        self.path = None if path is None else Path(path)
        self.digest = "" if path is None else _digest((version("sgpd"), identity))

    def save(self, state: PyTree, history: list[dict]):
        """Keep a state in place of the one before."""
        if self.path is None:
            return
        arrays = {str(index): _plain(leaf) for index, leaf in enumerate(jax.tree.leaves(state))}
        lines = [{name: np.asarray(value).tolist() for name, value in line.items()} for line in history]
        write_whole(self.path, to_bytes(arrays, {"fit": self.digest, "history": json.dumps(lines)}))

    def load(self, like: PyTree) -> tuple[Any, list[dict]]:
        """The state that was kept and its history; `like` and no history where there is none."""
        if self.path is None or not self.path.exists():
            return like, []
        leaves, form = jax.tree.flatten(like)
        try:
            with safe_open(self.path, framework="numpy") as file:
                about = file.metadata() or {}
                arrays = [file.get_tensor(str(index)) for index in range(len(file.keys()))]
        except (SafetensorError, OSError) as problem:
            raise self._refused(f"cannot be read ({problem})") from None
        if about.get("fit") != self.digest or len(arrays) != len(leaves):
            raise self._refused("belongs to a fit of other data or with other settings")
        restored = [_restored(array, leaf) for array, leaf in zip(arrays, leaves, strict=True)]
        return jax.tree.unflatten(form, restored), json.loads(about["history"])

    def _refused(self, what: str) -> BadInput:
        return BadInput(f"{self.path}: the checkpoint {what}", "delete it to start from the beginning", str(self.path))


def _digest(identity: PyTree) -> str:
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(identity):
        digest.update(np.asarray(leaf).tobytes() if hasattr(leaf, "dtype") else repr(leaf).encode())
        digest.update(b";")
    return digest.hexdigest()


def _plain(leaf: Any) -> np.ndarray:
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.array(jax.random.key_data(leaf) if is_key else leaf, order="C")


def _restored(array: np.ndarray, like: Any) -> Array | np.ndarray | int:
    if isinstance(like, int):
        return int(array)
    if isinstance(like, np.ndarray):
        return array
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(on_device(array))
    return on_device(array)

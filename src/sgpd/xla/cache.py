"""Compiled programs are kept between processes, so that only the first one waits for the compiler."""

import os
from pathlib import Path


def keep_compiled_programs():
    """Switch JAX's compilation cache on, in the user's cache folder; a folder that the user has set stays."""
    import jax

    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sgpd"
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

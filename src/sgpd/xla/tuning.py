"""How XLA compiles, and how many threads it has: settings of a whole process, which count before its first program.

Importing sgpd leaves them alone. The first fit or forecast of a process in which JAX has computed nothing yet makes
them; elsewhere `tune` does. Nothing is imported here that would load JAX.
"""

import os
import sys
import warnings

from sgpd.errors import SgpdWarning

SOLVES = 4  # batched solves that one program may have under way, at most
# Pendulum, two cores, medians of four processes each, in turns: a second fit takes 0.55 s instead of 0.34 s, a forecast
# of 256 paths 0.16 s instead of 0.06 s; a first fit, most of which is tracing, 4.2 s instead of 4.1 s.
TOO_LATE = (
    "JAX has computed in this process before sgpd could tune its compiler. Results are the same to rounding, but a fit "
    "of a pendulum takes 1.6 times and a forecast 2.7 times as long; with more dimensions it is more. Add the line "
    "`import sgpd; sgpd.xla.tune()` before the first use of JAX."
)

_told = False


def tune():
    """Set XLA's flags and its number of threads, for sgpd's programs and all others of this process.

    Call it before the first use of JAX; after that it only warns. What XLA_FLAGS and NPROC say already stays. A fit or
    a forecast calls it where it comes first, unless SGPD_TUNE=0.
    """
    if not jax_runs():
        os.environ.update(_missing())
    elif _missing():
        _tell_once()


def tune_unless_told_not_to():
    """`tune`, where the user has not asked for it, and keep compiled programs in a process that is still all ours.

    SGPD_TUNE=0 switches the one off, SGPD_CACHE=0 the other.
    """
    first = not jax_runs()
    if os.environ.get("SGPD_TUNE") != "0":
        tune()
    if first and os.environ.get("SGPD_CACHE") != "0":
        from sgpd.xla.cache import keep_compiled_programs

        keep_compiled_programs()


def jax_runs() -> bool:
    """Whether JAX has started a backend, whose flags and threads stay what they are."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None:
        return False
    # No public name tells this. Should the private one go, a JAX that is imported counts as one that runs: then nothing
    # of the user's is touched, and nothing here relies on threads that may not be there.
    asked = getattr(bridge, "backends_are_initialized", lambda: True)
    return asked()


def pool_threads() -> int:
    """How many threads XLA's pool has, or will have."""
    given = os.environ.get("NPROC", "")
    return int(given) if given.isdigit() else os.cpu_count() or 1


def programs_at_once() -> int:
    """How many programs may run side by side: one a core, as far as the pool has threads for their solves."""
    return max(1, min(os.cpu_count() or 1, pool_threads() // SOLVES))


def pool_is_narrow() -> bool:
    """Whether the solves of a single program may already wait for one another (see `_threads`)."""
    return pool_threads() < 2 * SOLVES


def _missing() -> dict[str, str]:
    """What is to be set in the environment, beside what stands there."""
    flags = os.environ.get("XLA_FLAGS", "")
    added = [f"{name}={value}" for name, value in _flags().items() if name not in flags]
    missing = {"XLA_FLAGS": " ".join([flags, *added]).strip()} if added else {}
    return missing if "NPROC" in os.environ else missing | {"NPROC": str(_threads())}


def _flags() -> dict[str, str]:
    """Loops become kernels.

    Programs as small as ours are no faster on several threads, and a loop of small operations is several times faster
    as one compiled kernel than when XLA's executor hands its operations to threads one by one. It becomes one where it
    is small enough (by the second flag any is) and calls no library: not YNNPACK (the third), which jaxlib 0.10 takes
    for sums and products. A flag that a jaxlib does not know ends the process.
    """
    from jaxlib.version import __version_info__ as version

    flags = {"--xla_cpu_multi_thread_eigen": "false"}
    if version[:2] == (0, 10):
        flags["--xla_backend_extra_options"] = "xla_cpu_small_while_loop_byte_threshold=1000000000"
        flags["--xla_cpu_experimental_ynn_fusion_type"] = ""
    return flags


def _threads() -> int:
    """Enough for all solves at once.

    jaxlib's LAPACK shares a batch of solves among the threads of XLA's pool, and waits for them on one of these
    threads. As many such solves at once as the pool has threads wait for one another for ever: seen with jaxlib 0.10.2
    on two cores, with two solves, and on a pool of eight with eight programs. XLA reads the number from NPROC.
    """
    return max(2 * SOLVES, SOLVES * (os.cpu_count() or 1))


def _tell_once():
    global _told
    if not _told:
        _told = True
        warnings.warn(TOO_LATE, SgpdWarning, stacklevel=4)

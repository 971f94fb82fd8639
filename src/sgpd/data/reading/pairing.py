"""Which columns are the momenta and which the positions: settled by the sign test, and said."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from sgpd.data.reading.naming import meaning
from sgpd.data.reading.options import ReadingOptions
from sgpd.data.reading.roles import Pairing
from sgpd.data.refusals import Where
from sgpd.data.signs import Sign, sign_test
from sgpd.data.trajectories import Run, Trajectories

Said = list[tuple[str, str]]


def settle_pairs(
    data: Trajectories, pairings: Sequence[Pairing], asked: ReadingOptions, where: Where
) -> tuple[Trajectories, Said]:
    """The recording with its channels as momenta, then positions, where pairs are asked for; and what to say of it."""
    if not pairings:
        return data, _as_given(data) if asked.pairs else []
    chosen, signs = _chosen(data, pairings, where)
    _refuse_swapped(chosen, signs, where)
    said = [("guessed" if chosen.how != "asked" else "roles", _sentence(chosen, signs))]
    return _select(data, chosen.momenta + chosen.positions), said + _about_velocities(chosen)


def _chosen(data: Trajectories, pairings: Sequence[Pairing], where: Where) -> tuple[Pairing, tuple[Sign, ...]]:
    """The pairing that the signs speak for; what only the order of columns suggests needs a clear sign."""
    tested = [(pairing, sign_test(data, pairing.momenta, pairing.positions)) for pairing in pairings]
    best = max(tested, key=lambda found: min(np.nan_to_num(sign.correlation, nan=-1.0) for sign in found[1]))
    if best[0].how != "order" or all(sign.positive for sign in best[1]):
        return best
    names = ", ".join(best[0].positions + best[0].momenta)
    raise where.refuse(
        f"which of {names} are momenta and which positions can be told neither by name nor by sign "
        f"({_in_words(best[1])})",
        "say it with --momentum and --position; velocities may stand for momenta, positions alone are not enough",
    )


def _refuse_swapped(pairing: Pairing, signs: Sequence[Sign], where: Where):
    if not any(sign.negative for sign in signs):
        return
    momenta, positions = ",".join(pairing.momenta), ",".join(pairing.positions)
    raise where.refuse(
        f"{_in_words([sign for sign in signs if sign.negative])}: momentum and position look swapped",
        f"try --momentum {positions} --position {momenta}; if it is right as it is, take it untested by "
        f"--state {momenta},{positions}",
        next(sign.momentum for sign in signs if sign.negative),
    )


def _sentence(pairing: Pairing, signs: Sequence[Sign]) -> str:
    words = ("momentum", "position") if len(signs) == 1 else ("momenta", "positions")
    sides = [
        f"{word} = {', '.join(names)}" for word, names in zip(words, (pairing.momenta, pairing.positions), strict=True)
    ]
    change = "" if pairing.how == "asked" else "; change with --momentum --position"
    return f"{', '.join(sides)} ({_in_words(signs)}){change}"


def _in_words(signs: Sequence[Sign]) -> str:
    return "; ".join(map(str, signs))


def _as_given(data: Trajectories) -> Said:
    """A state that is taken as it is: nothing is refused, but what the signs say is said."""
    half = data.dimension // 2
    if 2 * half != data.dimension:
        return []
    momenta, positions = data.names[:half], data.names[half:]
    signs = sign_test(data, momenta, positions)
    swapped = ": this looks swapped" if any(sign.negative for sign in signs) else ""
    return [("roles", _sentence(Pairing(momenta, positions, "asked"), signs) + swapped)]


def _about_velocities(pairing: Pairing) -> Said:
    fast = [name for name in pairing.momenta if meaning(name).part == "velocity"]
    if len(pairing.momenta) < 2 or not fast:
        return []
    return [
        (
            "note",
            f"{', '.join(fast)} are velocities by name; they may stand for momenta only if all masses are equal, "
            "else multiply each by its mass",
        )
    ]


def _select(data: Trajectories, names: Sequence[str]) -> Trajectories:
    """The same recording with its channels in this order."""
    index = [data.names.index(name) for name in names]
    runs = tuple(Run(run.times, run.states[:, index]) for run in data.runs)
    return dataclasses.replace(data, runs=runs, names=tuple(names), units=tuple(data.units[k] for k in index))

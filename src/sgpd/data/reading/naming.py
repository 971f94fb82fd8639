"""What the name of a column says about its part in the dynamics: momentum, velocity, position, or nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

TIMES = ("t", "time", "times", "timestamp", "sec", "secs", "second", "seconds")
RUNS = ("run", "trial", "trajectory", "episode")
MOMENTA = ("p", "mom", "momentum", "momenta")
VELOCITIES = ("v", "w", "vel", "velocity", "velocities", "speed", "omega", "ω", "rate", "dot", "angvel")
POSITIONS = (
    *("q", "x", "y", "z", "r", "theta", "θ", "phi", "φ", "psi", "ψ", "alpha", "α", "beta", "β"),
    *("pos", "position", "positions", "angle", "angles", "displacement", "elongation", "height"),
    *("pitch", "roll", "yaw"),
)
COORDINATES = "|".join(sorted(POSITIONS, key=len, reverse=True))
PREFIXED = re.compile(rf"(?P<head>[pvd])(?P<key>(?:{COORDINATES})\d*)")  # px, vtheta, dq1
DOTTED = re.compile(r"(?P<key>.+?)dot(?P<number>\d*)")  # qdot, q1dot, qdot1
NUMBERED = re.compile(r"(?P<head>[^\W\d]+)(?P<key>\d+)")  # v1, theta2
OF_AXIS = re.compile(r"(?P<head>q)(?P<key>[xyz])")  # qx: the position that px goes with


@dataclass(frozen=True)
class Meaning:
    """The part that a name suggests, "" for none, and the key that a momentum shares with its position."""

    part: str = ""  # "momentum", "velocity", "position"
    key: str = ""

    @property
    def moves(self) -> bool:
        """Whether it can stand on the side of the momenta."""
        return self.part in ("momentum", "velocity")


def meaning(name: str) -> Meaning:
    """What a name says: v1 is a velocity with key 1, p_theta a momentum with key theta, x1 a position with key 1."""
    word = name.lower().replace("'", "dot").removesuffix("/dt")
    words = [part for part in re.split(r"[_\s.\-]+", word) if part]
    joined = "".join(words)
    if part := _part(joined):
        return Meaning(part)
    if len(words) > 1 and (found := _by_words(words)):
        return found
    if (match := DOTTED.fullmatch(joined)) and "ddot" not in joined:
        return Meaning("velocity", match["key"] + match["number"])
    for pattern in (NUMBERED, OF_AXIS):
        if (match := pattern.fullmatch(joined)) and (part := _part(match["head"])):
            return Meaning(part, match["key"])
    if match := PREFIXED.fullmatch(joined):
        return Meaning("momentum" if match["head"] == "p" else "velocity", match["key"])
    return Meaning()


def _part(word: str) -> str:
    for part, names in (("momentum", MOMENTA), ("velocity", VELOCITIES), ("position", POSITIONS)):
        if word in names:
            return part
    return ""


def _by_words(words: list[str]) -> Meaning | None:
    """theta_velocity, p_theta, x_1: the first or the last word tells the part; a momentum's word goes before others."""
    ends = [(words[0], words[1:]), (words[-1], words[:-1])]
    found = [Meaning(part, "".join(rest)) for word, rest in ends if (part := _part(word))]
    found += [Meaning("velocity", "".join(words[1:]))] if words[0] == "d" else []
    return next((one for one in found if one.moves), next(iter(found), None))


def matched(momenta: Sequence[str], positions: Sequence[str]) -> tuple[str, ...]:
    """The momenta in the order of their positions: v1 goes with x1, p_theta with theta; in file order if unclear."""
    keys = {name: meaning(name).key for name in momenta}
    found = []
    for position in positions:
        names = {meaning(position).key, "".join(re.split(r"[_\s.\-]+", position.lower()))}
        found += [name for name in momenta if keys[name] in names]
    return tuple(found) if sorted(found) == sorted(momenta) else tuple(momenta)

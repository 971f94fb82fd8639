"""Where a model comes from: what a report says besides numbers."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class About:
    """The files, the command and the machine behind a fit; each may be left out where there is none."""

    title: str
    command: str = ""
    files: tuple[tuple[str, str], ...] = ()  # (name, SHA-256)
    said: tuple[tuple[str, str], ...] = ()  # (word, sentence): what reading and splitting the data said
    versions: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    seconds: float | None = None  # of the fit
    problems: tuple[str, ...] = ()

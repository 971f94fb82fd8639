"""What can go wrong, in words: each failure is one sentence and one remedy.

Inside compiled code a failure is a value (a residual, a flag); it becomes an exception or a warning once, at the edge.
"""

import difflib
from collections.abc import Iterable
from enum import Enum


class Outcome(Enum):
    """How a numerical computation ended. The value is (what happened, what to do)."""

    OK = ("Every step converged and stayed finite.", "")
    NOT_CONVERGED = (
        "The stage equations of an implicit step did not converge.",
        "Use a shorter step, or check whether the learned lengthscales are much shorter than one step's motion.",
    )
    NOT_FINITE = (
        "A rollout left the range of floating-point numbers.",
        "Start inside the region that the recording covers, shorten the horizon, or use a structure that keeps "
        "rollouts bounded.",
    )
    NOT_POSITIVE_DEFINITE = (
        "A covariance matrix of inducing values is not positive definite.",
        "Use fewer inducing points, or spread them further apart than the lengthscale allows now.",
    )
    UNSTABLE = (
        "Rollouts of even a few rows are so unstable that no field was found for them.",
        "Record more often, look for outliers and for times or units that are not what they seem, or try another "
        "structure.",
    )
    DIVERGED = (
        "The training objective became infinite or not a number.",
        "Lower the learning rate, shorten the windows, or check the recording for outliers.",
    )

    @property
    def sentence(self) -> str:
        """What happened."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self.value[1]


class SgpdError(Exception):
    """What went wrong, in one sentence, and what to do about it."""

    def __init__(self, message: str, hint: str):
        self.message, self.hint = message, hint
        joined = " " if message.endswith((".", "?")) else ". " if hint[:1].isupper() else "; "
        super().__init__(f"{message}{joined}{hint}")


class NumericalFailure(SgpdError, RuntimeError):
    """A computation that could not give a usable answer. Carries its `Outcome`."""

    def __init__(self, outcome: Outcome, detail: str = ""):
        self.outcome, self.detail = outcome, detail
        super().__init__(" ".join(part for part in (outcome.sentence, detail) if part), outcome.remedy)

    def __reduce__(self):  # from its arguments, not from the sentence: it may come from another process
        return type(self), (self.outcome, self.detail)


class BadInput(SgpdError, ValueError):
    """Input that cannot be used: what is wrong and where, and what to do about it."""

    def __init__(
        self, message: str, hint: str, file: str | None = None, line: int | None = None, column: str | None = None
    ):
        self.file, self.line, self.column = file, line, column
        super().__init__(message, hint)

    def __reduce__(self):
        return type(self), (self.message, self.hint, self.file, self.line, self.column)


class SgpdWarning(UserWarning):
    """Something a careful user wants to know about a result that is usable all the same."""


class CheckWarning(SgpdWarning):
    """A check of a fit that asks for attention. It stands in the model's diagnosis, too, where it may be told again."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> BadInput:
    """The refusal of a name that does not exist: what there is, and a guess at what was meant."""
    choices = list(known)
    close = difflib.get_close_matches(str(name), choices, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return BadInput(f"There is no {kind} called {name!r}", f"{guess}Known: {', '.join(choices)}.")

"""Recordings as trajectories, and trajectories as windows. Plain numpy, on the host."""

from sgpd.data.excerpt import excerpts
from sgpd.data.holdout import hold_out
from sgpd.data.reading.options import ReadingOptions
from sgpd.data.reading.recording import Reading, read_recording
from sgpd.data.signs import Sign, sign_test
from sgpd.data.trajectories import Run, Trajectories
from sgpd.data.window import Windows, windows

__all__ = [
    "Reading",
    "ReadingOptions",
    "Run",
    "Sign",
    "Trajectories",
    "Windows",
    "excerpts",
    "hold_out",
    "read_recording",
    "sign_test",
    "windows",
]

"""Recordings as trajectories, and trajectories as windows. Plain numpy, on the host."""

from sgpd.data.trajectories import Run, Trajectories
from sgpd.data.windows import Windows, windows

__all__ = ["Run", "Trajectories", "Windows", "windows"]

"""What counts as a gap between two rows of a recording, once for all who ask. In usual intervals between rows."""

MISSING = 1.5  # where rows are evenly spaced, a row is missing in a longer one
SHORT = 3.0  # across a longer one, differences between rows tell neither noise nor slope
LONG = 10  # across a longer one, nothing is known of the motion: pieces, splines and drawn curves end there


def longest_bridged(usual: float) -> float:
    """The longest time between two rows that belong to one piece: LONG steps, to the nearest whole number."""
    return (LONG + 0.5) * usual

"""The paper's engine: stochastic gradient ascent on a bound, window by window."""

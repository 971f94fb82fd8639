"""The default engine: least squares by stages, kernels and noise by the evidence, a joint Gaussian, and its draws."""

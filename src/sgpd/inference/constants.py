"""The numbers that both engines were tuned with: the first guess, and when residuals count as correlated."""

# The first guess (`initial.py`)
LENGTHSCALES = (0.75, 1.0, 1.5, 2.0, 3.0)  # to choose from, in standard deviations of what a latent depends on
AMPLITUDE = 2.0  # of the field of processes, and of that of trends, in root mean squares of the data's derivatives
GAUSS_NEWTON = 6  # rounds, where a structure is not linear in its latents
LONGEST_STEP = 1.5  # of an unknown in such a round but the first, in prior standard deviations
MARGIN = 0.15  # of the data's range, by which inducing points reach beyond it on either side
POINTS = {1: 12, 2: 64}  # inducing points by input dimension
GRID = 2  # input dimensions, up to which inducing points are a grid
PER_DIMENSION = 8  # inducing points in more than two dimensions
REGARD = 1.5  # lengthscale, in standard deviations, by which inducing points are placed in more than two dimensions
CONFINED = 0.1  # a recording stays in a subspace if it moves across it by less than this share of its motion along it
ACROSS = (1.0, 10.0)  # lengthscales across such a subspace to choose from, in those along it
CONSTANT = 1e-9  # of its size: a coordinate that moves less does not move
START_STD = 3.0  # prior standard deviation of starts, in standard deviations of the data

# Correlated residuals (`residuals.py`)
SIGNIFICANT = 4.0  # standard errors of a correlation between neighbouring residuals
FEW = 10  # pairs of neighbours, below which their correlation says nothing
WINDOW = 5  # lags that are summed, in units of the autocorrelation time

# Rollouts (`rolling.py`)
CHUNK = 512  # entries that a program takes at once: a piece of 500 rows, most often
DRAWS_AT_ONCE = 8, 72  # draws that a program rolls out side by side: for few, and for many

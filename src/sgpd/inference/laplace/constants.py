"""The numbers that the default engine was tuned with."""

# Stages (`engine.py`)
SHORT = 20  # rows between restarts in the first stage
LONGEST = 500  # rows of one rollout; a longer recording is cut
TUNED_ON = 4000  # rows, about, at most: of a longer recording kernels and noise are tuned on excerpts
TUNING, DRAWING = 6, 6  # how much longer it takes to tune kernels and noise, and to draw, than to fit once

# Levenberg-Marquardt (`descent.py`)
ITERATIONS = 30  # at most, a stage
DAMPING, STIFF = 1e-2, 1e8  # at first, and beyond which there is nothing left to try
LEAPS = 6  # rollouts of how many lengths are tried on the way to one, at most
NEAR = 8  # rollouts that get longer by less than one part in so many have come as far as they can
LOST = 10.0  # times the cost of shorter rollouts: where a descent stops there, it leapt too far
ENOUGH = 1e-3  # a fall of the cost by less than this share ends a stage
TIGHT = 1e-4  # the same for the stages in which kernels and noise are tuned

# The starts of pieces that were not tuned on (`starts.py`)
START_ITERATIONS = 4  # a stage
LONGER = 5  # times, from stage to stage

# More inducing points (`growing.py`, `stages.py`)
FULL = 0.5  # share of the values at inducing points that a recording determines, above which there are twice as many
MOST_POINTS = 256  # of a latent
MOST_WORK = 2e9  # squared number of unknowns times observed values, at most: what one step of a fit multiplies
WORSE = 3.0  # nats: twice as many points whose evidence is lower by more have ended in a worse optimum

# Kernels and noise by the evidence (`evidence.py`)
ROUNDS = 24  # at most
EVALUATIONS = 8  # of the evidence in one round, at most, if one of them was better
TRUST_RADIUS = 0.7  # of the trust region: how far a logarithm may move in the first round
LARGEST_RADIUS = 2.0  # and in later ones, after rounds that gained what the linear model had promised
SMALLEST_RADIUS = 0.02  # no move of a logarithm by more than this helps: converged, too
CONVERGED = 0.03  # nats: a round that gains less is the last
LEFT = CONVERGED / 20  # nats: what a round leaves if no more is promised
# Standard deviations of the priors of the logarithms. A trend's variances have that of a variance: with 20 instead of 6
# evidences of pendulum, non-separable system and rigid body differ by 0.5 nat at most. For a polynomial no lengthscale
# is too long: half of these widths held lengthscales back, and bands were too wide. But axes are estimates: with 5,
# lengthscales across a subspace grew as if they were exact, and bands were too narrow. (Along the axes, too, because
# all of them grow together.)
WIDTH = {"lengthscale": 5.0, "lengthscale along axes": 3.0, "variance": 6.0, "noise": 2.0}

# Draws (`engine.py`, `sampling.py`)
POOL, MOST = 4, 16  # draws of the Gaussian, by which it is judged, for each that would be stored: at first, at most
MANY = 12  # pieces of a long recording, from which draws are weighed without the scatter of their starts
LINEAR = 0.8  # effective sample size of its draws, as a share, from which the Gaussian is taken for the posterior
SEARCHED = 20_000  # rows, at most, of a recording to which such fits are made: each goes through all of them
PROMISING = 16  # fits to randomised data, of which half must be usable for others to be made
SEARCH_ITERATIONS = 12  # of such a fit, at most
SEARCH_DAMPING = 5e-2
# A search has ended when its last step lowered the cost by less; a draw's own cost varies by much more.
SEARCH_CONVERGED = 0.5

# What programs make together (`programs.py`)
BLOCK = 16  # entries whose derivatives by the field are made at once; a chunk is a multiple

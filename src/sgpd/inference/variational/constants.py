"""The numbers that the variational engine was tuned with."""

BATCH = 32  # windows a step, at most
WINDOW = 50  # rows
SHOOTING = (10, 30)  # rows between restarts, before the whole recording
SELECTION_PATHS = 5  # draws by whose rollouts a model is judged for the selection
BETWEEN_SAVES = 1.0  # seconds
DRAWN_AHEAD = 2**24  # random numbers for the steps of a training, at most
MAX_SKIPPED = 50  # steps in a row whose gradient was not finite, before the training is given up

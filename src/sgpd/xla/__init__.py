"""What exists only because of the compiler: its flags, its cache, its threads, and sums that it would make badly."""

from sgpd.xla.tuning import tune as tune
from sgpd.xla.tuning import tune_unless_told_not_to as tune_unless_told_not_to

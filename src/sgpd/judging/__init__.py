"""What is said of a fit: how it does on rows that it did not see, what it has learned, and the verdict over all."""

from sgpd.judging.held_out import HeldOut as HeldOut
from sgpd.judging.held_out import judge_held_out as judge_held_out
from sgpd.judging.learned import Learned as Learned
from sgpd.judging.overall import Overall as Overall
from sgpd.judging.overall import Row as Row
from sgpd.judging.overall import verdict as verdict

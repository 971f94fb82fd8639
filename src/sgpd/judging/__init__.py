"""What is said of a fit: held-out rows, what was learned, the four questions; all of it is the assessment."""

from sgpd.judging.assessment import Assessment as Assessment
from sgpd.judging.assessment import assess as assess
from sgpd.judging.held_out import HeldOut as HeldOut
from sgpd.judging.held_out import Scores as Scores
from sgpd.judging.held_out import judge_held_out as judge_held_out
from sgpd.judging.learned import Learned as Learned
from sgpd.judging.overall import Overall as Overall
from sgpd.judging.overall import Row as Row
from sgpd.judging.overall import verdict as verdict

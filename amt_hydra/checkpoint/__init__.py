"""Looking into checkpoints without torch and without executing their pickles."""

from amt_hydra.checkpoint.facts import Monitor, TensorFact, Xray
from amt_hydra.checkpoint.listing import best, checkpoints, newest
from amt_hydra.checkpoint.look import xray

__all__ = ["Monitor", "TensorFact", "Xray", "best", "checkpoints", "newest", "xray"]

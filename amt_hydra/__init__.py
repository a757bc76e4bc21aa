"""Hydra configuration for melody transcription training: compose, check, launch, record."""

__version__ = "0.1.0"

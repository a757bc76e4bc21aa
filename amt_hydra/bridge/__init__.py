"""Runs inside the training process: what a repository lacks is added there, without a change to its files.

Python 3.8 and its standard library only: the repository's interpreter may be older than ours. Nothing of Hydra or of
our other modules is imported.
"""

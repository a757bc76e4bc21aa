"""Runs on a Slurm cluster: what a job asks for, how it is submitted, what runs in it, and how it stands."""

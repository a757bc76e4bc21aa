"""Start train.py on this machine: its environment, the lock of its experiment, and the supervision of its processes."""

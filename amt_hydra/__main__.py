"""`python -m amt_hydra`."""

import gc
import sys

if __name__ == "__main__":
    # A short-lived process that builds trees of small objects: the collector only costs time. train.py is its own.
    gc.disable()
    from amt_hydra.cli import main

    sys.exit(main())

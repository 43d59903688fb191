"""`python -m edp_mx` is `edp-mx`."""

import sys

from edp_mx.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""``python -m caransac``, the command line."""

import sys

from caransac.cli import main

sys.exit(main())

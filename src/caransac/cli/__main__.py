"""``python -m caransac.cli``."""

import sys

from caransac.cli import main

sys.exit(main())

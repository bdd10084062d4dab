"""``python -m caransac_lab``, the command line."""

import sys

from caransac_lab.cli import main

sys.exit(main())

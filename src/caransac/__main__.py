"""``python -m caransac``, the command line."""

import sys

try:
    from caransac.cli import main
except KeyboardInterrupt:  # later ones are the command line's own
    sys.stderr.write("caransac: interrupted; the same command starts again\n")
    sys.exit(130)

sys.exit(main())

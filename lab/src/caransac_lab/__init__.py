"""The lab of caransac: training, data sets, benchmarks, rendering, and the publication of results."""

__version__ = "0.3.0"

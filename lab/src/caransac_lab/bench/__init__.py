"""The benchmark: robust estimators side by side, on the same matches, under the same rules (docs/benchmark.md)."""

"""The benchmark: robust estimators side by side, on the same matches, under the same rules (docs/benchmark.md).

A protocol says what runs: `contract`, `adapters`, `filters`, `plan`, `protocol`, `runner`, `benchmark`, and the
`studies` and `steps` of what is published. A `journal` says what ran. Tables say what is shown: `summary`, `tables`,
`plots`, `document_tables`, which `publication` writes.
"""

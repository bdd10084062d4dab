"""The benchmark: compare robust estimators on the same matches and under the same rules (docs/benchmark.md).

A protocol defines what runs: `contract`, `adapters`, `filters`, `plan`, `protocol`, `runner` and `benchmark`, and the
`studies` and `steps` of published results. A `journal` records what ran. `summary`, `tables`, `plots` and
`document_tables` show the results, and `publication` writes them.
"""

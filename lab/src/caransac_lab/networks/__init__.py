"""Networks that only the lab uses: the match filter and the sample quality, with their weights."""

"""Training of the networks, the only user of torch."""

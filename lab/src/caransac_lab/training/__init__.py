"""Train the networks. Only this package uses torch."""

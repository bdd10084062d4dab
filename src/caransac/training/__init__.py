"""Training of the state network: the numpy loop runs, torch replays its networks for the gradient."""

"""Lenses that are fitted together with the pose, and the evidence for them."""

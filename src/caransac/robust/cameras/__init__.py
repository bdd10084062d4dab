"""Cameras that are not exact: lenses that are fitted with the pose, and the evidence for them."""

"""Cameras that are not exact: lenses fitted with the pose, and the cameras that come back with an answer."""

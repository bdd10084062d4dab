"""Drop-in replacements for calls of OpenCV, PoseLib and pycolmap: one module per library."""

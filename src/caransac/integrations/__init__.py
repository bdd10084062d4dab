"""The calls of OpenCV, PoseLib and COLMAP, answered by caransac: one module per library, same arguments and returns."""

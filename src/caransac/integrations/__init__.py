"""The calls of OpenCV, PoseLib and COLMAP, answered by caransac: one module a library, same arguments, same returns."""

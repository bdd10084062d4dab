"""The public functions by the name of the problem that they solve."""

from caransac import estimate_fundamental, estimate_relative_pose

METHODS = ("ca-ransac", "lm-lo", "lm-lo-u")


def solve(problem, pair, **arguments):
    points = pair.points1, pair.points2
    if problem == "pose":
        return estimate_relative_pose(*points, pair.camera1, pair.camera2, **arguments)
    return estimate_fundamental(*points, **arguments)

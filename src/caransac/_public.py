"""The public names. The package loads this module when one of them is first used."""

from caransac.api import *  # noqa: F403  # its __all__ lists the calls
from caransac.camera import Camera as Camera
from caransac.io.adapters import matches_from as matches_from
from caransac.io.adapters import matches_from_warp as matches_from_warp
from caransac.io.matches import Matches as Matches
from caransac.options import Options as Options
from caransac.policy import GeometryPolicy as GeometryPolicy
from caransac.results import AbsolutePoseResult as AbsolutePoseResult
from caransac.results import FundamentalResult as FundamentalResult
from caransac.results import GeometryResult as GeometryResult
from caransac.results import HomographyResult as HomographyResult
from caransac.results import Points3D as Points3D
from caransac.results import RayPoseResult as RayPoseResult
from caransac.results import RefinedMatches as RefinedMatches
from caransac.results import Refinement as Refinement
from caransac.results import RelativePose as RelativePose
from caransac.results import RelativePoseResult as RelativePoseResult
from caransac.results import Rival as Rival
from caransac.results import Round as Round
from caransac.results import load_result as load_result
from caransac.viewer import show as show

"""Values for property tests: anything that a caller could pass, and scenes that have an answer."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from caransac import Camera
from caransac.synthetic import make_pair

DTYPES = st.sampled_from(
    [np.dtype(name) for name in ("f8", "f4", "f2", "i4", "u1", "i8", "u8", "?", "c16", "U2", ">f8")]
)
NUMBERS = st.one_of(
    st.floats(), st.integers(), st.sampled_from([0, 1, -1, 1e300, 2**63, -(2**70), np.float32(3), True])
)
JUNK = st.one_of(
    NUMBERS,
    st.none(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.just(object()),
    st.just([[1, 2], [3]]),
    st.just({"model": "PINHOLE"}),
    st.just(np.ma.masked_array(np.ones((9, 2)), mask=True)),
    st.just(np.array([None] * 8).reshape(4, 2)),
)
ANY_ARRAY = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9))
ANYTHING = st.one_of(ANY_ARRAY, JUNK)


@st.composite
def any_points(draw):
    """Draw points (n, 2) of two images, mostly small integers: collinear, repeated, few; sometimes a special number."""
    count = draw(st.sampled_from([0, 1, 3, 4, 5, 6, 7, 8, 9, 20, 60]))
    element = st.one_of(st.integers(-3, 3), st.integers(0, 4000), st.floats(0, 4000, width=32))
    points = [draw(hnp.arrays(np.float64, (count, 2), elements=element)) for _ in range(2)]
    if count and draw(st.integers(0, 3)) == 0:
        points[draw(st.integers(0, 1))][draw(st.integers(0, count - 1)), 0] = draw(st.floats())
    return tuple(points)


@st.composite
def scenes(draw):
    """Draw a pair with known truth, some wrong matches and exact cameras."""
    count, share = draw(st.integers(150, 400)), draw(st.sampled_from([0.0, 0.2, 0.5]))
    return make_pair(count, outlier_ratio=share, seed=draw(st.integers(0, 2**20)))


CAMERAS = st.one_of(
    ANYTHING,
    st.just(Camera("SIMPLE_PINHOLE", (800.0, 320.0, 240.0), 640, 480)),
    st.just(np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])),
    st.just(Camera.of_unknown_focal(640, 480)),
)

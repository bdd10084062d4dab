"""Files of synthetic pairs in hloc's format."""

import h5py
import numpy as np
from databases import some_pairs

PAIRS = some_pairs(5)


def names(index):
    return f"day/{index}/left.jpg", f"night/{index}.jpg"


def group(index):
    return "/".join(name.replace("/", "-") for name in names(index))


def make_files(tmp_path):
    """Write features, matches and pairs in hloc's format, and cameras in COLMAP's; pixels follow hloc."""
    with h5py.File(tmp_path / "feats.h5", "w") as features, h5py.File(tmp_path / "matches.h5", "w") as matches:
        for index, pair in enumerate(PAIRS):
            rng = np.random.default_rng(index)
            order = rng.permutation(len(pair.points2))
            for name, points in zip(names(index), (pair.points1, pair.points2[order]), strict=True):
                features[f"{name}/keypoints"] = points.astype(np.float32)
            unmatched = rng.random(len(order)) < 0.1
            made = matches.create_group(group(index))
            made["matches0"] = np.where(unmatched, -1, np.argsort(order)).astype(np.int16)
            made["matching_scores0"] = np.where(unmatched, 0, 1 - pair.scores).astype(np.float16)
    (tmp_path / "pairs.txt").write_text("".join(" ".join(names(index)) + "\n" for index in range(len(PAIRS))))
    focal, cx, cy = PAIRS[0].camera1.params
    lines = [f"{name} SIMPLE_PINHOLE 1024 768 {focal} {cx + 0.5} {cy + 0.5}" for i in range(5) for name in names(i)]
    (tmp_path / "cameras.txt").write_text("# name MODEL width height params\n" + "\n".join(lines) + "\n")
    return tmp_path


def arguments(files, *more):
    named = (("features", "feats.h5"), ("matches", "matches.h5"), ("pairs", "pairs.txt"), ("out", "out/verified.h5"))
    return ["verify", *(word for name, file in named for word in (f"--{name}", str(files / file))), *more]


def inputs_of(files):
    return [files / name for name in ("feats.h5", "matches.h5", "pairs.txt")]


def content(path):
    """Return all datasets and attributes except times."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()].tobytes() if hasattr(item, "dtype") else None}))
        for name in [name for name in found if found[name] is None]:
            found[name] = {key: str(value) for key, value in file[name].attrs.items() if key != "ms"}
    return found


def put(files, name, group, key, value):
    with h5py.File(files / f"{name}.h5", "a") as file:
        del file[group][key]
        if value is not None:
            file[group][key] = value

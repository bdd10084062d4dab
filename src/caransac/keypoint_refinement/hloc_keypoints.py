"""Keypoints and verified matches of hloc's files.

The refined keypoints go into a new file of features. The matches that agree go into a file beside the output, from
which the next verification makes the output.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac._support import interrupts
from caransac._support.files import as_path, check_no_input, check_writable, replacing_h5
from caransac._support.untrusted_h5 import UntrustedGroup, read_h5
from caransac.geometry import Floats
from caransac.keypoint_refinement.collection import KeypointSummary, RefinedKeypoints
from caransac.keypoint_refinement.keypoint_patches import PhotographFile
from caransac.keypoint_refinement.photograph_files import check_folder, photograph_path
from caransac.verification.hloc import as_matches, find_pair, read_keypoints, read_pairs, read_size
from caransac.verification.keypoints import CACHED_IMAGES
from caransac.verification.pair_records import MatchIndices

IDENTITY, SUMMARY = "caransac_refined", "caransac_refinement"  # attributes of the refined features
DEEPEST = 64  # maximum depth of groups in a file


class HlocKeypoints:
    """The keypoints of a file of features, and the matches of a file that `caransac verify` wrote."""

    def __init__(
        self,
        features: str | Path,
        matches: str | Path,
        pairs: str | Path,
        images: str | Path,
        *,
        out_features: str | Path,
        out: str | Path,
        keep_matches: bool = False,
    ) -> None:
        """Open the files.

        Args:
            features: file of keypoints, one group per image.
            matches: file of verified matches, one group per pair.
            pairs: text file with two image names per line.
            images: folder of the photographs.
            out_features: file to write, with the refined keypoints and everything else in `features`.
            out: file for the verified matches of the refined keypoints. `agreeing_matches` is beside it.
            keep_matches: whether to keep the matches whose patches do not agree.

        Raises:
            OSError: a file or the folder is missing, or an output cannot be written.
            ValueError: the content of a file is invalid. The message explains what to do.
        """
        features, matches, pairs = (
            as_path(path, name) for path, name in ((features, "features"), (matches, "matches"), (pairs, "pairs"))
        )
        self.target, self.features = as_path(out, "out"), as_path(out_features, "out-features")
        self.agreeing_matches = Path(f"{self.target}.agreeing")
        self._folder, self._keep_matches = check_folder(images), keep_matches
        for path, name in ((self.target, "out:"), (self.features, "out-features:")):
            check_no_input(path, (features, matches, pairs), name)
            check_writable(path)
        with ExitStack() as opened:
            self._features = opened.enter_context(read_h5(features))
            self._matches = opened.enter_context(read_h5(matches))
            found = (find_pair(self._matches, *names) for names in read_pairs(pairs))
            self._pairs = [pair for pair in found if pair.group]
            for pair in self._pairs:
                if "config" not in self._matches.group(pair.group).attrs:
                    raise ValueError(f"{matches}: {pair.group} is not verified: run caransac verify first")
            self._names = sorted({name for pair in self._pairs for name in (pair.image1, pair.image2)})
            if not self._names:
                raise ValueError(f"{matches} has no matches of the pairs in {pairs}")
            self._number = {name: number for number, name in enumerate(self._names)}
            self.keypoints = lru_cache(CACHED_IMAGES)(self._read_keypoints)
            self._counts = [len(self._read_keypoints(number)) for number in range(len(self._names))]
            self.images: Sequence[int] = range(len(self._names))
            sizes = [len(self._read_matches(number)) for number in range(len(self._pairs))]
            self.pairs: Sequence[int] = [number for number, size in enumerate(sizes) if size]
            self._opened = opened.pop_all()
        described = json.dumps(
            [caransac.__version__, keep_matches, self._names, self._counts, [p.group for p in self._pairs], sizes]
        )
        self.identity = blake2b(described.encode(), digest_size=16).hexdigest()

    @property
    def is_refined(self) -> bool:
        """Whether refined keypoints of these inputs are there already."""
        if not self.features.exists() or not (self.agreeing_matches.exists() or self.target.exists()):
            return False
        with read_h5(self.features) as file:
            return bool(file.attrs.get(IDENTITY) == self.identity)

    def images_of(self, key: int) -> tuple[int, int]:
        """Return the images of a pair."""
        pair = self._pairs[key]
        return self._number[pair.image1], self._number[pair.image2]

    def name(self, image: int) -> str:
        """Return the name of an image."""
        return self._names[image]

    def photograph(self, image: int) -> PhotographFile:
        """Return the file of an image. hloc reads images with OpenCV, which applies EXIF orientations."""
        name = self._names[image]
        return PhotographFile(photograph_path(self._folder, name), read_size(self._features, name), upright=True)

    def num_keypoints(self, image: int) -> int:
        """Return the number of keypoints of an image."""
        return self._counts[image]

    def matches(self, key: int) -> MatchIndices:
        """Return the verified matches (m, 2) of a pair."""
        matches = self._read_matches(key)
        if np.any(matches >= [self._counts[image] for image in self.images_of(key)]):
            raise ValueError(f"{self._matches.path}: {self._pairs[key].group} names keypoints that are not there")
        return matches

    def _read_matches(self, key: int) -> MatchIndices:
        return as_matches(self._matches.group(self._pairs[key].group))[0]

    def _read_keypoints(self, image: int) -> Floats:
        return read_keypoints(self._features, self._names[image])

    def write(self, refined: RefinedKeypoints, summary: KeypointSummary) -> None:
        """Write the refined features, and the file of the matches that agree."""
        with replacing_h5(self.agreeing_matches) as file:
            for key, pair in enumerate(self._pairs):
                interrupts.check()
                group = self._matches.group(pair.group)
                copy_group(group, file.create_group(pair.group))
                agreeing = None if self._keep_matches else refined.agreeing(key)
                if agreeing is not None:
                    partners = group.array("matches0")
                    partners[self.matches(key)[~agreeing, 0]] = -1
                    file[pair.group]["matches0"][...] = partners
        with replacing_h5(self.features) as file:
            copy_group(self._features, file)
            for image, name in enumerate(self._names):
                keypoints = self._features.group(name).array("keypoints").astype(np.float32)
                keypoints[:, :2] += refined.shifts(image)
                attributes = dict(file[name]["keypoints"].attrs)
                del file[name]["keypoints"]  # half precision, which hloc uses by default, is not enough
                file[name]["keypoints"] = keypoints
                file[name]["keypoints"].attrs.update(attributes)
            file.attrs[IDENTITY], file.attrs[SUMMARY] = self.identity, json.dumps(asdict(summary))

    def close(self) -> None:
        """Close the files."""
        self._opened.close()


def copy_group(source: UntrustedGroup, target: Any, depth: int = 0) -> None:
    """Copy a group of an h5 file with everything in it."""
    if depth > DEEPEST:
        raise ValueError(f"{source.path}: {source.name}: groups are nested too deeply")
    for name, value in source.attrs.items():
        target.attrs[name] = value
    for name in source:
        interrupts.check()
        if source.is_array(name):
            target.create_dataset(name, data=source.array(name))
            for attribute, value in source.attributes(name).items():
                target[name].attrs[attribute] = value
        else:
            copy_group(source.group(name), target.create_group(name), depth + 1)

"""Tables of the paper (Cavalli, Barath, Pollefeys, Larsson: Consensus-Adaptive RANSAC) and their figures."""

from __future__ import annotations

from dataclasses import dataclass

from caransac_lab.bench.contract import ProblemName

COLUMNS = ("AUC5", "AUC1", "MAP20", "Med", "Avg")
PHOTOTOURISM = frozenset({"sacre_coeur", "st_peters_square"})  # the validation scenes of the RANSAC Tutorial 2020
SCANNET = frozenset({"scannet_test_pairs_with_gt"})  # the pair list of SuperGlue
FIGURES = ("figure-1", "figure-3", "figure-5")  # progression, results, runtime; drawn by `paper_figures`
PRESET = "CA-RANSAC paper"  # the row with the figures of the paper's own method
PaperFigures = tuple[float, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Attributes:
        title: title of the table.
        scenes: scenes of the measurement. The paper's figures are shown only if our scenes are the same.
        problem: estimation problem.
        rows: the paper's figures in the order of `COLUMNS`, by our name of each method; empty for rows that the paper
            does not have.
    """

    title: str
    scenes: frozenset[str]
    problem: ProblemName
    rows: dict[str, PaperFigures]

    def __post_init__(self) -> None:
        ours = (PRESET, "CA-RANSAC", "LM-LO", "PoseLib")
        object.__setattr__(self, "rows", self.rows | {name: () for name in ours if name not in self.rows})

    def figures(self, method: str, scenes: frozenset[str]) -> dict[str, float]:
        """Return the paper's figures of a method if the data are the same, otherwise none."""
        if scenes != self.scenes or method not in self.rows:
            return {}
        return dict(zip(COLUMNS, self.rows[method], strict=False))


_HARDNET_ROWS: dict[str, PaperFigures] = {
    PRESET: (69.1, 37.4, 96.3, 0.691, 4.75),
    "OpenCV USAC_DEFAULT": (60.7, 31.1, 90.6, 1.020, 9.73),
    "LM-LO": (63.9, 34.0, 91.8, 0.845, 8.84),
    "LM-LO 10k": (66.4, 35.6, 93.2, 0.764, 7.41),
    "LM-LO 100k": (66.6, 35.7, 93.6, 0.761, 7.06),
    "MAGSAC++": (57.2, 27.7, 88.3, 1.240, 11.5),
    "GC-RANSAC": (63.1, 33.2, 91.4, 0.873, 8.85),
    "OpenCV VSAC": (61.0, 31.0, 92.3, 1.01, 8.49),
}


def _weak(title: str, *rows: PaperFigures) -> PaperTable:
    names = ("MAGSAC++", "OpenCV USAC_DEFAULT", "OpenCV VSAC", "GC-RANSAC", "LM-LO", PRESET)
    return PaperTable(f"E, {title} matches, PhotoTourism", PHOTOTOURISM, "E", dict(zip(names, rows, strict=True)))


TABLES: dict[str, PaperTable] = {
    "table-1": PaperTable(
        "Ablations, E, HardNet matches, PhotoTourism",
        PHOTOTOURISM,
        "E",
        {
            "LM-LO": (63.9, 34.0, 91.8),
            f"{PRESET} -C": (55.8, 28.8, 88.8),
            f"{PRESET} -S": (61.5, 33.3, 82.7),
            f"{PRESET} -R": (69.3, 36.5, 96.1),
            PRESET: (69.1, 37.4, 96.3),
            "CA-RANSAC -C": (),
            "CA-RANSAC -S": (),
            "CA-RANSAC -R": (),
        },
    ),
    "table-1-scannet": PaperTable(
        "Ablations, E, SuperGlue matches, ScanNet",
        SCANNET,
        "E",
        {
            "LM-LO": (14.3, 0.3, 72.9),
            f"{PRESET} -R": (15.1, 0.3, 74.5),
            PRESET: (),
            f"{PRESET} tuned": (19.5, 0.8, 77.7),
            "CA-RANSAC -R": (),
        },
    ),
    "table-2": PaperTable(
        "E, SuperGlue matches, PhotoTourism",
        PHOTOTOURISM,
        "E",
        {
            PRESET: (75.1, 38.1, 98.8, 0.627, 2.25),
            "OpenCV USAC_DEFAULT": (69.9, 32.7, 98.2, 0.806, 3.06),
            "LM-LO": (71.7, 34.7, 98.6, 0.733, 2.57),
            "MAGSAC++": (70.6, 34.2, 96.5, 0.740, 4.20),
        },
    ),
    "table-3": PaperTable("E, HardNet matches, PhotoTourism", PHOTOTOURISM, "E", _HARDNET_ROWS),
    "table-4": PaperTable(
        "E, HardNet matches behind a learned filter, PhotoTourism",
        PHOTOTOURISM,
        "E",
        {
            "CLNet + eight-point": (51.5, 18.5, 92.0, 1.884, 7.39),
            f"{PRESET} tuned": (73.8, 39.9, 97.4, 0.598, 3.43),  # the paper's row with CLNet's features
            "CLNet + OpenCV USAC_DEFAULT": (70.8, 35.7, 97.1, 0.734, 3.83),
            "CLNet + LM-LO": (72.1, 37.9, 97.2, 0.658, 3.59),
            "CLNet + MAGSAC++": (66.8, 30.0, 96.3, 0.927, 4.74),
            "OANet + eight-point": (20.7, 7.6, 39.7, 59.0, 77.9),
            "OANet + MAGSAC++": (62.6, 29.0, 93.2, 1.06, 6.99),
            "ContextFilter 128 + eight-point": (),
            f"{PRESET} with filter features": (),
            f"ContextFilter 128 + {PRESET}": (),
            "ContextFilter 128 + OpenCV USAC_DEFAULT": (),
            "ContextFilter 128 + LM-LO": (),
            "ContextFilter 128 + MAGSAC++": (),
            "ContextFilter + eight-point": (),
            "ContextFilter + LM-LO": (),
            "CA-RANSAC with filter features": (),
        },
    ),
    "table-5": PaperTable(
        "E, SuperGlue matches, ScanNet",
        SCANNET,
        "E",
        {
            f"{PRESET} tuned": (19.5, 0.8, 77.7, 6.17, 18.9),
            f"{PRESET} (PT)": (18.6, 0.7, 78.2, 6.60, 18.7),
            "OpenCV USAC_DEFAULT": (14.0, 0.4, 72.5, 8.32, 22.0),
            "LM-LO": (14.3, 0.3, 72.9, 8.35, 21.2),
            "MAGSAC++": (15.4, 0.6, 74.0, 7.82, 22.7),
        },
    ),
    "table-6": PaperTable(
        "F, SuperGlue matches, PhotoTourism",
        PHOTOTOURISM,
        "F",
        {
            PRESET: (58.6, 26.3, 94.3, 1.20, 5.73),
            f"{PRESET} (E)": (58.6, 25.6, 94.0, 1.26, 5.70),
            "OpenCV USAC_DEFAULT": (55.0, 23.5, 92.8, 1.52, 6.66),
            "LM-LO": (54.3, 23.2, 92.9, 1.55, 6.60),
            "MAGSAC++": (55.9, 24.2, 92.2, 1.40, 6.84),
        },
    ),
    "table-7": PaperTable(
        "Iterations, E, HardNet matches, PhotoTourism",
        PHOTOTOURISM,
        "E",
        {
            f"{PRESET} 1x256": (62.2, 32.2, 94.1, 0.985, 6.65),
            f"{PRESET} 2x256": (66.5, 35.0, 95.5, 0.795, 5.58),
            f"{PRESET} 4x256": (69.1, 37.4, 96.3, 0.691, 4.75),
            f"{PRESET} 8x256": (70.0, 37.8, 96.5, 0.677, 4.75),
            f"{PRESET} 4x256(x8)": (71.2, 39.3, 96.7, 0.623, 4.25),  # the paper uses NeFSAC
            "CA-RANSAC 1x256": (),
            "CA-RANSAC 2x256": (),
            "CA-RANSAC 8x256": (),
            "CA-RANSAC 4x256(x8)": (),
            "CA-RANSAC 4x256(x8) learned": (),
            f"{PRESET} 1x128": (58.7, 30.4, 92.8, 1.162, 7.82),
            f"{PRESET} 2x128": (64.7, 34.0, 94.9, 0.863, 6.07),
            f"{PRESET} 4x128": (67.5, 35.9, 95.6, 0.742, 5.29),
            f"{PRESET} 8x128": (69.1, 36.7, 95.8, 0.699, 5.01),
            f"{PRESET} 16x128": (69.8, 36.9, 95.8, 0.685, 4.88),
            "LM-LO 256": (63.2, 33.4, 91.4, 0.885, 8.91),
            "LM-LO 512": (64.3, 34.1, 91.9, 0.842, 8.42),
            "LM-LO": (65.0, 34.7, 92.4, 0.808, 8.20),
            "LM-LO 2048": (65.5, 35.1, 92.8, 0.784, 7.72),
            "LM-LO 10k": (66.4, 35.6, 93.2, 0.764, 7.41),
            "LM-LO 100k": (66.6, 35.7, 93.6, 0.761, 7.06),
            "LM-LO-U 256": (60.7, 32.2, 89.5, 0.968, 10.6),
            "LM-LO-U 512": (62.5, 33.2, 90.9, 0.898, 9.48),
            "LM-LO-U": (63.9, 34.1, 91.8, 0.842, 8.84),
            "LM-LO-U 2048": (64.8, 34.6, 91.8, 0.837, 8.08),
            "LM-LO-U 10k": (66.1, 35.3, 93.1, 0.777, 7.35),
            "LM-LO-U 100k": (66.6, 35.6, 93.5, 0.768, 6.99),
        },
    ),
    "table-8-rootsift": _weak(
        "RootSIFT 2k",
        (56.2, 27.0, 88.4, 1.29, 11.3),
        (59.6, 30.7, 90.1, 1.09, 10.0),
        (58.7, 30.2, 91.3, 1.12, 9.3),
        (62.5, 33.0, 91.5, 0.90, 8.8),
        (65.1, 34.8, 92.9, 0.80, 8.0),
        (65.8, 34.7, 94.8, 0.81, 6.5),
    ),
    "table-8-orb2k": _weak(
        "ORB 2k",
        (8.5, 2.1, 32.0, 53.6, 69.5),
        (8.3, 2.0, 33.8, 47.5, 67.7),
        (9.6, 2.5, 36.3, 42.4, 66.4),
        (12.8, 4.0, 38.0, 41.4, 65.8),
        (14.2, 4.4, 38.3, 45.2, 67.3),
        (14.9, 4.5, 39.6, 41.4, 65.3),
    ),
    "table-8-orb8k": _weak(
        "ORB 8k",
        (18.1, 4.8, 55.2, 14.3, 42.2),
        (16.7, 4.2, 54.8, 15.4, 42.9),
        (19.2, 5.2, 58.9, 12.7, 39.9),
        (29.6, 11.3, 62.1, 8.1, 38.7),
        (31.1, 11.2, 52.9, 6.3, 33.4),
        (33.3, 12.3, 69.5, 5.3, 31.1),
    ),
}

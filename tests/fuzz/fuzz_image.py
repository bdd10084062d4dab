"""Image files: raw bytes through the decoder and the reader of EXIF."""

import harness

with harness.instrument():
    from caransac.io.images import focal_from_exif, read_image


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    suffix = decisions.choose((".jpg", ".png", ".tif"))
    for read in (read_image, focal_from_exif):
        harness.with_file(decisions.rest(), suffix, read)


if __name__ == "__main__":
    harness.fuzz(one_input)

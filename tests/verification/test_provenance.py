"""The settings of a verification are stored with the geometries, and a change of settings is reported."""

import pycolmap
import pytest
from databases import execute, pair_id, verify_database

from caransac import Options
from caransac.cli import main
from caransac.verification import VerificationOptions, describe_settings
from caransac.verification.provenance import changed_settings, describe_kept


def test_settings_differ_by_name():
    one = describe_settings(VerificationOptions(), calibrated="auto")
    other = describe_settings(VerificationOptions(estimation=Options(seed=3), min_inliers=20), calibrated="auto")
    assert changed_settings(one, one) == []
    assert changed_settings(one, other) == ["max_error_px", "min_inliers", "seed"]
    assert changed_settings(one, describe_settings(VerificationOptions(), calibrated="never")) == ["calibrated"]
    assert describe_kept({one: 3}, one) == []
    assert describe_kept({"[1]": 3, "": 1}, one)[1].startswith("1 pairs were verified before, with settings that")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (
            pycolmap.geometric_verification,
            "6 pairs were verified before, by other software or an early version of ",
        ),
        (verify_database, "6 pairs were verified before, with settings that were not recorded: they are kept;"),
        (lambda path: main(["verify", str(path), "--seed", "3"]), "6 pairs were verified before, with another seed: "),
        (lambda path: main(["verify", str(path)]), ""),
    ],
)
def test_pairs_that_were_verified_before_are_reported(database, capsys, prepare, expected):
    prepare(database)
    capsys.readouterr()
    assert main(["verify", str(database)]) == 0
    printed = capsys.readouterr()
    assert "Verified 0 pairs and kept 6 from before" in printed.out
    assert (expected in printed.err) if expected else (printed.err == "")
    assert main(["verify", str(database), "--overwrite"]) == 0
    assert "Verified 6 pairs" in capsys.readouterr().out


def test_a_run_that_resumes_with_other_settings_reports_it(database, capsys):
    assert main(["verify", str(database)]) == 0
    execute(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", pair_id(2))
    capsys.readouterr()
    assert main(["verify", str(database), "--max-error", "2", "--calibrated", "never"]) == 0
    message = "caransac: 5 pairs were verified before, with another calibrated, max_error_px: they are kept;"
    assert message in capsys.readouterr().err

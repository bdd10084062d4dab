"""One profile for all property tests: fixed examples, few enough for `make test`."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "caransac",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("caransac")

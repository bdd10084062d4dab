"""One profile for all properties: the same examples on every run and machine, few enough for `make test`."""

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

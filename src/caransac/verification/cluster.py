"""Use a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Executor
from contextlib import contextmanager

import caransac
from caransac.verification.build_identity import build_identity

# Sent as text, because workers of another version may lack any function of ours.
VERSION = "__import__('caransac').__version__"
BUILD = "__import__('caransac.verification.build_identity', fromlist=['caransac']).build_identity()"


@contextmanager
def open_cluster(scheduler: str) -> Iterator[Executor]:
    """Open an executor on a Dask cluster. For ``tls://`` addresses, Dask's settings provide the certificates.

    Raises:
        ImportError: Dask is missing here, or caransac is missing on a worker.
        OSError: the cluster does not answer, has other versions, is lost, or repeatedly loses a batch.
        ValueError: the address is invalid.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed.comm.addressing import resolve_address
    except ImportError as error:
        raise ImportError("a Dask cluster needs distributed: pip install 'caransac[cluster]'") from error
    try:
        # First, because a Client with an invalid address waits for a minute in its destructor.
        resolve_address(scheduler)
        client = Client(scheduler, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask has few types
    except (TypeError, ValueError) as error:  # Dask raises TypeError if certificates are missing
        raise ValueError(
            f"scheduler must be an address like tcp://host:8786, or tls://host:8786 with certificates in Dask's "
            f"settings, not {scheduler!r}: {error}"
        ) from error
    except OSError as error:
        raise OSError(f"no Dask scheduler answers at {scheduler}: start one with 'dask scheduler' ({error})") from error
    with client:
        try:
            check_versions(client.run(eval, VERSION, on_error="return"), caransac.__version__)
            check_versions(client.run(eval, BUILD, on_error="return"), build_identity())
            yield client.get_executor()  # type: ignore[no-untyped-call]  # as above
        except KilledWorker as error:
            raise OSError(f"the cluster at {scheduler} gave up a batch: its workers died too often: {error}") from error
        except (CancelledError, ValueError) as error:
            # If the scheduler is lost, Dask sometimes finds no exception to unpack for a future and raises ValueError.
            if isinstance(error, ValueError) and client.status == "running":
                raise
            raise OSError(f"the connection to {scheduler} was lost: start it again, then continue") from error


def check_versions(found: Mapping[str, object], wanted: str) -> None:
    """Raise if a worker has no caransac, or a different version or build.

    Args:
        found: version of each worker by its address, or the exception that the query raised.
        wanted: version of this process.
    """
    for address, version in found.items():
        if isinstance(version, ImportError):
            raise ImportError(f"the worker at {address} has no caransac: install version {caransac.__version__} there")
        if version != wanted:
            raise OSError(
                f"the worker at {address} has caransac {version}, but this process has {wanted}: they must be the "
                "same, because results may differ"
            )

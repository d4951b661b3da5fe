"""What a server is told when it starts: where it listens, who may ask, and how much."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from podium.core.errors import ParameterError

__all__ = ["Limits", "ServerSettings", "is_loopback"]


@dataclass(frozen=True)
class Limits:
    """How much one request, and all of them together, may take."""

    body_bytes: int = 16 << 20  # of a request to the service, as it travels
    upload_bytes: int = 256 << 20  # of a request with files
    decompressed_bytes: int = 256 << 20  # of one body or file, once unpacked
    ratio: int = 200  # unpacked bytes for one packed byte
    lists: int = 100_000  # lists in a request
    items: int = 1_000_000  # rows (or votes, labels) in a request
    id_length: int = 512  # characters of an id
    experts: int = 5000  # in a request; some answers compare each with each
    query_items: int = 5000  # items of a query, for methods that compare each with each
    seconds: float = 30.0  # for one request, waiting included
    concurrent: int = 64  # requests at once; more are told to come back (429)
    workers: int = 2  # computations at once; others wait their turn
    uploads: int = 2  # held in memory and read at once; others wait their turn

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ParameterError(f"the limit {name} is {value!r}; accepted: numbers above 0")


@dataclass(frozen=True)
class ServerSettings:
    """One server. `token_hash` is what `security.hash_token` makes of the token; without one, loopback only."""

    folder: Path  # where projects are kept
    host: str = "127.0.0.1"
    port: int = 8765
    token_hash: str | None = None
    limits: Limits = field(default_factory=Limits)
    roots: tuple[Path, ...] = ()  # folders and files on the server that the studio may open
    hosts: tuple[str, ...] = ()  # further names by which the server may be addressed

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"the port is {self.port}; accepted: 0 (any that is free) to 65535")
        if self.token_hash is None and not is_loopback(self.host):
            raise ParameterError(
                f"{self.host} can be reached from other machines, and there is no token; give one with "
                "--token-file FILE or PODIUM_TOKEN, or leave --host out to listen on this machine only"
            )


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

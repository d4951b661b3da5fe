"""Server settings: address, authentication, limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from podium.core.errors import ParameterError


@dataclass(frozen=True)
class Limits:
    """Limits per request and for all requests together."""

    body_bytes: int = 16 << 20  # of an API request, as sent
    upload_bytes: int = 256 << 20  # of a request with files
    decompressed_bytes: int = 256 << 20  # of one body or file, after decompression
    ratio: int = 200  # decompressed bytes per compressed byte
    lists: int = 100_000  # lists in a request
    items: int = 1_000_000  # rows (or votes, labels) in a request
    id_length: int = 512  # characters of an id
    experts: int = 5000  # in a request; some analyses compare all pairs
    query_items: int = 5000  # items per query, for methods that compare all pairs
    seconds: float = 30.0  # timeout per request, including waiting
    concurrent: int = 64  # concurrent requests; further ones get 429
    workers: int = 2  # concurrent computations; others wait
    uploads: int = 2  # uploads read concurrently; others wait

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise ParameterError(f"the limit {name} is {value!r}; accepted: numbers above 0")


@dataclass(frozen=True)
class ServerSettings:
    """Settings of one server. `token_hash` comes from `security.hash_token`; without it, loopback only."""

    folder: Path  # where projects are kept
    host: str = "127.0.0.1"
    port: int = 8765
    token_hash: str | None = None
    limits: Limits = field(default_factory=Limits)
    roots: tuple[Path, ...] = ()  # server files and folders that the studio may open
    hosts: tuple[str, ...] = ()  # further host names of the server

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"the port is {self.port}; accepted: 0 (any free port) to 65535")
        if self.token_hash is None and not is_loopback(self.host):
            raise ParameterError(
                f"{self.host} can be reached from other machines, so a token is required; give one with "
                "--token-file FILE or PODIUM_TOKEN, or leave --host out to listen on this machine only"
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listening address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

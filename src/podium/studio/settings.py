"""Server settings: address, authentication, limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from podium.core.errors import ParameterError

# first parts of the server's own paths: below one of them, a path with and without the sub-path look the same
OWN_PATHS = frozenset(
    {"p", "v1", "open", "files", "collect", "vote", "join", "login", "logout", "static", "docs", "healthz", "readyz",
     "metrics", "openapi.json"}
)  # fmt: skip


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
    view_seconds: float = 120.0  # time that a page may compute before its process is killed
    job_seconds: float = 24 * 3600.0  # time that a job may run before its process is killed
    header_seconds: float = 10.0  # from the first byte of a connection to the end of its headers
    upload_seconds: float = 300.0  # for the whole body of a request with files
    connections: int = 1000  # open connections; beyond them, the longest idle ones are closed
    concurrent: int = 64  # requests answered at once; further ones get 429, and one user gets three quarters
    receiving: int = 64  # requests whose body is arriving; further ones get 429, and one user gets half
    queue: int = 256  # computations that wait for a process; further ones get 503, and one user gets half
    workers: int = 2  # concurrent computations; others wait
    uploads: int = 2  # uploads read concurrently; others wait
    cache_bytes: int = 512 << 20  # of project data and results kept in the memory of one process
    free_bytes: int = 64 << 20  # free space on the disk below which nothing more is stored

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
    public_url: str = ""  # under which a proxy shows the server, such as https://example.org/podium
    has_tokens: bool = False  # whether the folder has named tokens
    processes: int = 0  # that compute pages and API requests; 0: threads of the server do
    is_view_worker: bool = False  # whether this is the application of one of these processes
    patience: float = 0.4  # seconds that a page waits for a computation before it shows progress

    def __post_init__(self) -> None:
        public = urlsplit(self.public_url)
        if self.public_url and (
            public.scheme not in ("http", "https") or not public.hostname or public.query or public.fragment
        ):
            raise ParameterError(
                f"the public URL is {self.public_url!r}; accepted: such as https://example.org/podium"
            )
        if f"{self.root_path}/".split("/")[1] in OWN_PATHS:
            raise ParameterError(
                f"the public URL is {self.public_url!r}, but the server has pages below that path; accepted: paths "
                f"that begin otherwise than with {', '.join(sorted(OWN_PATHS))}"
            )
        if not 0 <= self.port <= 65535:
            raise ParameterError(f"the port is {self.port}; accepted: 0 (any free port) to 65535")
        if self.token_hash is None and not self.has_tokens and not is_loopback(self.host):
            raise ParameterError(
                f"{self.host} can be reached from other machines, so a token is required; give one with "
                "--token-file FILE or PODIUM_TOKEN, add named ones with `podium token add`, or leave --host out "
                "to listen on this machine only"
            )

    @property
    def root_path(self) -> str:
        """The path of the public URL, without a slash at its end: "" or such as /podium."""
        return urlsplit(self.public_url).path.rstrip("/")

    @property
    def public_host(self) -> str:
        """The host name in the public URL, if there is one."""
        return urlsplit(self.public_url).hostname or ""

    @property
    def public_origin(self) -> str:
        """Scheme, host and port of the public URL, as browsers send them in `Origin`, if there is one."""
        public = urlsplit(self.public_url.lower())
        return f"{public.scheme}://{public.netloc}" if self.public_url else ""

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the server by TLS, so that cookies are sent over TLS only."""
        return urlsplit(self.public_url).scheme == "https"


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

"""Authentication and request checks: token, Host, Origin, security headers, CSRF protection."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from podium.core.errors import ParameterError, PodiumError
from podium.studio.settings import ServerSettings, is_loopback

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, browsers send Origin: null with forms
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
SHORTEST = 24  # minimum characters of a token
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
ELSEWHERE = frozenset({b"cross-site", b"same-site"})  # refused Sec-Fetch-Site values
OPEN = frozenset({"/healthz", "/readyz", "/login", "/docs/style.css"})  # routes without authentication
INVITED = ("/vote/", "/static/")  # routes of invited judges, which check the signature of their link
SESSION, FORMS = "podium_session", "podium_forms"  # cookies


class RequestRefused(PodiumError):
    """A refused request, with its HTTP status."""

    def __init__(
        self, status: int, problem: str, remedy: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.problem, self.remedy, self.headers = status, problem, remedy, dict(headers or {})
        super().__init__(f"{problem}; {remedy}")


# -- the token ---------------------------------------------------------------------------------------------------


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """A salted hash of a token. Tokens are long and random, so a slow hash would only help denial-of-service
    attacks.

    >>> hash_token("short")
    Traceback (most recent call last):
    podium.core.errors.ParameterError: the token has 5 characters; accepted: 24 or more, as ...
    """
    if len(token) < SHORTEST:
        raise ParameterError(
            f"the token has {len(token)} characters; accepted: {SHORTEST} or more, as from `openssl rand -hex 32`"
        )
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}:{_hash_with_salt(token, salt).hex()}"


def _hash_with_salt(token: str, salt: bytes) -> bytes:
    return hmac.digest(salt, token.encode(errors="surrogatepass"), "sha256")


class Guard:
    """Checks requests by their headers alone, before a body is read."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._key = secrets.token_bytes(32)
        own = {settings.host.lower(), socket.gethostname().lower(), "localhost"}
        if is_loopback(settings.host):
            own = {"localhost", "127.0.0.1", "[::1]", settings.host}
        self._names = own | {name.lower() for name in settings.hosts}

    def check_request(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raise `RequestRefused` for a request that must not be answered."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name, colon, port = host.rpartition(":")
        name = name if colon and port.isdigit() else host
        if name not in self._names and (is_loopback(self._settings.host) or not _is_address(name)):
            # with DNS rebinding, another site's requests arrive under its own name
            raise RequestRefused(
                421,
                "the Host header does not name this server",
                "use the URL that `podium serve` printed, or allow the name with --allow-host",
            )
        if method in SAFE:
            site, is_link = headers.get(b"sec-fetch-site"), headers.get(b"sec-fetch-mode") == b"navigate"
            foreign = site in ELSEWHERE and not is_link
        else:  # browsers send their origin, and other programs hold no session cookies
            site, origin = headers.get(b"sec-fetch-site", b"none"), headers.get(b"origin")
            own = origin is None or origin.lower().decode("latin-1") in (f"http://{host}", f"https://{host}")
            foreign = site not in (b"none", b"same-origin") or not own
        if foreign:
            raise RequestRefused(403, "the request comes from another site", "use the pages of this server")
        if self._settings.token_hash is None or path in OPEN or path.startswith(INVITED):
            return
        kind, _, given = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer" and self.is_valid_token(given.strip()):
            return
        cookie = parse_cookies(headers).get(SESSION, "")
        if cookie and hmac.compare_digest(cookie.encode(), self.session_cookie().encode()):
            return
        raise RequestRefused(
            401,
            "this server requires a token",
            "send the header Authorization: Bearer TOKEN",
            {"www-authenticate": "Bearer"},
        )

    def is_valid_token(self, token: str) -> bool:
        """Whether the token is correct; compared in constant time."""
        salt, _, kept = (self._settings.token_hash or "").partition(":")
        return bool(kept) and hmac.compare_digest(
            _hash_with_salt(token, bytes.fromhex(salt)), bytes.fromhex(kept)
        )

    def session_cookie(self) -> str:
        """The session cookie of a logged-in browser; invalid after the server stops."""
        return hmac.digest(self._key, b"session", "sha256").hex()

    def compute_form_token(self, cookie: str) -> str:
        """The CSRF token for a browser with this cookie."""
        return hmac.digest(self._key, b"form:" + cookie.encode(errors="replace"), "sha256").hex()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def parse_cookies(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """The cookies of a request."""
    pairs = (part.strip().partition("=") for part in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return {name: value for name, _, value in pairs}


# -- forms ---------------------------------------------------------------------------------------------------------


def csrf_token(request: Any) -> str:
    """The value that a form must send as `csrf`; also sets the matching cookie."""
    kept: dict[str, str] = request.scope.setdefault("podium.cookies", {})
    mine = kept.get(FORMS) or request.cookies.get(FORMS)
    if not mine or len(mine) > 100:
        mine = kept[FORMS] = secrets.token_urlsafe(24)
    mark: str = request.app.state.guard.compute_form_token(mine)
    return mark


def check_csrf(request: Any, token: object) -> None:
    """Raise `RequestRefused` (403) for a form that this server did not issue to this browser."""
    cookie = request.cookies.get(FORMS, "")
    expected = request.app.state.guard.compute_form_token(cookie)
    if (
        not cookie
        or not isinstance(token, str)
        or not hmac.compare_digest(token.encode(errors="replace"), expected.encode())
    ):
        raise RequestRefused(403, "the form is not from this server, or has expired", "reload the page")

"""Authentication and request checks: tokens, roles, Host, Origin, security headers, CSRF protection."""

from __future__ import annotations

import base64
import hmac
import ipaddress
import os
import re
import secrets
import socket
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.core.errors import InputError, ParameterError, PodiumError
from podium.studio.settings import ServerSettings, is_loopback
from podium.studio.token_store import User, digest_token

if TYPE_CHECKING:
    from podium.studio.store import Store

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
INVITED = ("/join/", "/vote/", "/static/")  # routes of invitations, which check the signature in their path
SESSION, FORMS = "podium_session", "podium_forms"  # cookies
SESSION_SECONDS = 14 * 24 * 3600.0
LOCAL, OPERATOR = User("local", "admin"), User("operator", "admin")  # without a token; with the server's own
# what a role may do beyond looking; all other changes need an editor
COMPUTATIONS = re.compile(r"/v1/(fuse|aggregate|evaluate|explain|leaderboard|annotators)|/logout")
VOTING = re.compile(r"/p/[^/]+/collect/vote|/v1/projects/[^/]+/votes(/.*)?")
CONFIDENTIAL = re.compile(
    r"/v1/projects/[^/]+/(invites|gold)(/.*)?"
)  # links that permit, answers that are asked
ADMINISTRATION = re.compile(r"/v1/(tokens|audit)(/.*)?")


class RequestRefused(PodiumError):
    """A refused request, with its HTTP status."""

    def __init__(
        self, status: int, problem: str, remedy: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status, self.problem, self.remedy, self.headers = status, problem, remedy, dict(headers or {})
        super().__init__(f"{problem}; {remedy}")


# -- the token ---------------------------------------------------------------------------------------------------


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


def load_signing_key(folder: Path) -> bytes:
    """The key that signs sessions and forms, kept in the folder: restarts and other servers accept them."""
    path = folder / "signing.key"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            beside = path.with_name(f".signing-{secrets.token_hex(8)}")
            beside.write_bytes(b"")
            beside.chmod(0o600)
            beside.write_bytes(secrets.token_bytes(32))
            try:
                os.link(beside, path)  # fails if another server was faster, whose key then counts
            except FileExistsError:
                pass
            finally:
                beside.unlink()
        key = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the signing key cannot be read or written: {error.strerror or error}",
            source=str(path),
            remedy="make the folder writable for the server",
        ) from None
    if len(key) != 32:
        raise InputError(
            "the signing key is damaged", source=str(path), remedy="delete it; users log in again"
        )
    return key


def required_role(method: str, path: str) -> str:
    """The least role that may send a request.

    >>> [required_role("POST", p) for p in ("/v1/fuse", "/v1/projects/a/votes", "/open/upload", "/v1/tokens")]
    ['viewer', 'judge', 'editor', 'admin']
    """
    if ADMINISTRATION.fullmatch(path):
        return "admin"
    if CONFIDENTIAL.fullmatch(path):
        return "editor"
    if method in SAFE or COMPUTATIONS.fullmatch(path):
        return "viewer"
    return "judge" if VOTING.fullmatch(path) else "editor"


class Session(NamedTuple):
    """A login of a browser, as its signed cookie names it."""

    name: str
    until: float
    id: str


class Guard:
    """Checks requests by their headers alone, before a body is read."""

    def __init__(self, settings: ServerSettings, store: Store | None = None) -> None:
        self._settings, self._store = settings, store
        self._key = secrets.token_bytes(32) if store is None else load_signing_key(settings.folder)
        self._is_open = settings.token_hash is None and not settings.has_tokens
        self._read_at = -1  # version of the database that the following were read from
        self._users: dict[str, User] = {}
        self._names: dict[str, User] = {}
        self._ended: frozenset[str] = frozenset()
        own = {settings.host.lower(), socket.gethostname().lower(), "localhost"}
        if is_loopback(settings.host):
            own = {"localhost", "127.0.0.1", "[::1]", settings.host}
        self._hosts = own | {name.lower() for name in (*settings.hosts, settings.public_host) if name}

    def check_request(self, method: str, path: str, headers: Mapping[bytes, bytes]) -> User:
        """The user who sends a request; raises `RequestRefused` if it must not be answered."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name, colon, port = host.rpartition(":")
        name = name if colon and port.isdigit() else host
        if name not in self._hosts and (is_loopback(self._settings.host) or not _is_address(name)):
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
            # a proxy may leave the port out of `Host`, but not the browser
            origins = {self._settings.public_origin, f"https://{host}"}
            if not self._settings.is_https or name != self._settings.public_host:
                origins.add(f"http://{host}")
            own = origin is None or origin.lower().decode("latin-1") in origins
            foreign = site not in (b"none", b"same-origin") or not own
        if foreign:
            raise RequestRefused(403, "the request comes from another site", "use the pages of this server")
        user = self._identify(headers)
        if path in OPEN or path.startswith(INVITED):
            return user or User("anonymous", "viewer")
        if user is None:
            raise RequestRefused(
                401,
                "this server requires a token",
                "send the header Authorization: Bearer TOKEN",
                {"www-authenticate": "Bearer"},
            )
        needed = required_role(method, path)
        if not user.may_act_as(needed):
            words = f"this needs the role {needed}, and {user.name} is {user.role}"
            raise RequestRefused(403, words, "ask an administrator for a token with that role")
        return user

    # -- users --------------------------------------------------------------------------------------------------

    def _identify(self, headers: Mapping[bytes, bytes]) -> User | None:
        """The user of the token or session in the headers; on an open server, the local one."""
        if self._is_open:
            return LOCAL  # tokens that are added later count after a restart
        self._read_users()
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer":
            return self.find_user(token.strip())
        session = self.read_session(headers)
        if session is None or session.id in self._ended:
            return None
        return OPERATOR if session.name == OPERATOR.name else self._names.get(session.name)

    def _read_users(self) -> None:
        """Read tokens and ended sessions again if any process has changed the database."""
        if self._store is None:
            return
        try:
            version = self._store.read_version()
            if version != self._read_at:
                self._users, self._ended = self._store.load_users()
                self._names = {user.name: user for user in self._users.values()}
                self._read_at = version
        except sqlite3.Error:  # such as a lock; those that were read last still count
            return

    def find_user(self, token: str) -> User | None:
        """The user with a token."""
        self._read_users()
        # digests are looked up, not tokens, so that the time taken reveals nothing about a token
        return self._users.get(digest_token(token)) or (OPERATOR if self.is_valid_token(token) else None)

    def is_valid_token(self, token: str) -> bool:
        """Whether the token is the server's own; compared in constant time."""
        salt, _, kept = (self._settings.token_hash or "").partition(":")
        return bool(kept) and hmac.compare_digest(
            _hash_with_salt(token, bytes.fromhex(salt)), bytes.fromhex(kept)
        )

    # -- sessions -----------------------------------------------------------------------------------------------

    def session_cookie(self, user: User) -> str:
        """The signed cookie of a browser that logs in."""
        name = base64.urlsafe_b64encode(user.name.encode()).decode().rstrip("=")
        text = f"{name}.{int(time.time() + SESSION_SECONDS)}.{secrets.token_hex(8)}"
        return f"{text}.{self._sign(text)}"

    def read_session(self, headers: Mapping[bytes, bytes]) -> Session | None:
        """The session of a cookie that this folder's key has signed and that has not expired."""
        text, _, mark = parse_cookies(headers).get(SESSION, "").rpartition(".")
        if not text or not hmac.compare_digest(mark.encode(), self._sign(text).encode()):
            return None
        name, until, id_ = text.split(".")
        plain = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
        return Session(plain, float(until), id_) if float(until) > time.time() else None

    def _sign(self, text: str) -> str:
        return hmac.digest(self._key, b"session:" + text.encode(errors="replace"), "sha256").hex()

    def compute_new_token(self, nonce: str) -> str:
        """The token that was made with a nonce: a repeated request gets it again, and it is stored nowhere."""
        digest = hmac.digest(self._key, b"token:" + nonce.encode(), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

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

"""Named tokens with roles, ended sessions, the audit log, and answers kept for repeated requests."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from podium.core.errors import ParameterError
from podium.studio.database import RecordNotFound
from podium.studio.job_queue import JobQueue

ROLES = ("viewer", "judge", "editor", "admin")  # each may do what those before it may
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
RESERVED = frozenset({"local", "operator"})  # users without a record
KEPT = 24 * 3600.0  # seconds for which the answer to a request with an idempotency key is kept
# this process: host, number, and what tells it from a later process with the same number
OWNER = f"{socket.gethostname().replace(' ', '-')} {os.getpid()} {secrets.token_hex(8)}".encode()


@dataclass(frozen=True)
class User:
    """Who sends a request, and what they may do."""

    name: str
    role: str

    def may_act_as(self, role: str) -> bool:
        """Whether this user may do what a role may.

        >>> User("ann", "editor").may_act_as("judge"), User("ann", "editor").may_act_as("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True)
class NamedToken:
    """A token without its secret, of which only a digest is stored."""

    name: str
    role: str
    made: float


@dataclass(frozen=True)
class AuditEntry:
    """One change: who asked for it, by which route, and with what status it ended."""

    id: int
    at: float
    user: str
    role: str
    method: str
    route: str
    project: str | None
    status: int
    request: str


def digest_token(token: str) -> str:
    """The digest under which a token is stored. Tokens are random and long, so that no salt is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class TokenStore(JobQueue):
    """The records about users."""

    def add_token(self, name: str, role: str, token: str | None = None) -> str:
        """Create a named token, random unless it is given; it is returned here and stored nowhere."""
        if not NAME.fullmatch(name) or name in RESERVED:
            raise ParameterError(
                f"the name is {name[:80]!r}; accepted: up to 64 letters, digits and . _ @ + -, except "
                f"{' and '.join(sorted(RESERVED))}"
            )
        if role not in ROLES:
            raise ParameterError(f"the role is {role[:80]!r}; accepted: {', '.join(ROLES)}")
        token = token or secrets.token_urlsafe(32)
        with self._write_transaction() as db:
            try:
                row = (name, role, digest_token(token), time.time())
                db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise ParameterError(
                    f"there is a token with the name {name!r}; remove it first, or choose another name"
                ) from None
        return token

    def remove_token(self, name: str) -> None:
        """Remove a token; it and its sessions are refused from then on."""
        with self._write_transaction() as db:
            if not db.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount:
                raise RecordNotFound("no such token")

    def tokens(self) -> list[NamedToken]:
        """All named tokens by name."""
        return [NamedToken(*row) for row in self._fetch("SELECT name, role, made FROM tokens ORDER BY name")]

    def end_session(self, session: str, until: float) -> None:
        """Refuse a session from now on; forgotten when it would have ended anyway."""
        with self._write_transaction() as db:
            db.execute("DELETE FROM ended_sessions WHERE until < ?", (time.time(),))
            db.execute("INSERT OR IGNORE INTO ended_sessions VALUES (?, ?)", (session, until))

    def load_users(self) -> tuple[dict[str, User], frozenset[str]]:
        """The users by the digests of their tokens, and the ids of ended sessions."""
        users = {row["digest"]: User(row["name"], row["role"]) for row in self._fetch("SELECT * FROM tokens")}
        return users, frozenset(row["id"] for row in self._fetch("SELECT id FROM ended_sessions"))

    # -- the audit log ------------------------------------------------------------------------------------------

    def add_audit_entry(
        self, user: User, method: str, route: str, project: str | None, status: int, request: str
    ) -> None:
        """Record a change."""
        new = "INSERT INTO audit (at, user, role, method, route, project, status, request)"
        row = (time.time(), user.name, user.role, method, route, project, status, request)
        with self._write_transaction() as db:
            db.execute(f"{new} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def audit_entries(self, most: int = 100, before: int | None = None) -> list[AuditEntry]:
        """Entries of the audit log, newest first; `before` is the id of an entry."""
        query = "SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?"
        return [AuditEntry(*row) for row in self._fetch(query, 2**62 if before is None else before, most)]

    # -- repeated requests --------------------------------------------------------------------------------------

    def reserve_answer(self, user: str, key: str, digest: str) -> tuple[str, Any]:
        """Reserve an idempotency key; ("new", None), ("kept", (status, answer)), ("running" or "other", None)."""
        now = time.time()
        with self._write_transaction() as db:
            db.execute("DELETE FROM kept_answers WHERE made < ?", (now - KEPT,))
            kept_row = db.execute(
                "SELECT digest, status, answer FROM kept_answers WHERE user = ? AND key = ?", (user, key)
            ).fetchone()
            if kept_row is None or (kept_row["status"] is None and _has_ended(kept_row["answer"])):
                row = (user, key, digest, None, OWNER, now)  # the owner, until there is an answer
                db.execute("INSERT OR REPLACE INTO kept_answers VALUES (?, ?, ?, ?, ?, ?)", row)
                return "new", None
        if kept_row["digest"] != digest:
            return "other", None
        if kept_row["status"] is None:
            return "running", None
        return "kept", (kept_row["status"], kept_row["answer"])

    def keep_answer(self, user: str, key: str, status: int, answer: bytes) -> None:
        """Keep the answer to a request whose key was reserved."""
        with self._write_transaction() as db:
            keep = "UPDATE kept_answers SET status = ?, answer = ? WHERE user = ? AND key = ?"
            db.execute(keep, (status, answer, user, key))

    def release_answer(self, user: str, key: str) -> None:
        """Free a key whose request failed, so that it can be sent again."""
        with self._write_transaction() as db:
            db.execute("DELETE FROM kept_answers WHERE user = ? AND key = ? AND status IS NULL", (user, key))


def _has_ended(owner: bytes | None) -> bool:
    """Whether the process that reserved a key has ended; False where that cannot be known."""
    host, pid, _ = (owner or b"  ").split(b" ")
    if os.name != "posix" or host != OWNER.split(b" ")[0] or owner == OWNER:
        return False
    if int(pid) == os.getpid():
        return True  # an earlier process with the same number
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False

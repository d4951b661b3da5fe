"""Errors as documents for programs: problem details, as in RFC 9457."""

from __future__ import annotations

import re
from typing import Any

PROBLEM = "application/problem+json"
KINDS = {
    400: "NotJson",
    401: "NoToken",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "TooSlow",
    409: "Conflict",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    421: "Misdirected",
    422: "InvalidRequest",
    429: "Busy",
    431: "TooLarge",
    500: "ServerFault",
    503: "Busy",
    504: "TooSlow",
    507: "DiskFull",
}


def problem_document(status: int, kind: str, detail: str, remedy: str = "") -> dict[str, Any]:
    """The document of every error; `type` names the kind of error, `detail` and `remedy` are for people.

    >>> problem_document(413, "TooLarge", "there are 9 lists", "send at most 3 per request")["title"]
    'Too large'
    """
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).capitalize()
    return {
        "type": f"urn:podium:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        "remedy": remedy,
    }

"""The web server (`podium serve`): an HTTP API under /v1 and the pages of the studio.

`import podium` imports nothing from here; it needs the extra `studio`.
"""

from podium.core.optional import check_extra

check_extra("studio")

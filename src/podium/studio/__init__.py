"""The web side: an HTTP service under /v1 and the studio's pages, in one server (`podium serve`).

Nothing here is imported by `import podium`; it needs the extra `studio`.
"""

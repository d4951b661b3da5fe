"""The MCP server (`podium mcp`): Podium's operations as tools of a language model, over standard input and output.

`tools.py` computes the answers, `call_worker.py` runs one call in a process of its own, `server.py` speaks the
protocol with the official SDK (extra `mcp`); files are opened only through `file_access.py`.
"""

"""The server of the Model Context Protocol (MCP), by which assistants read the service and submit jobs.

`groundskeeper mcp` starts it. `server` has the transports, `tools` what an assistant can call, and `untrusted` makes
texts of tables harmless.
"""

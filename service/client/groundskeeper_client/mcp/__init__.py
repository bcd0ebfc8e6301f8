"""The server of the Model Context Protocol (MCP), through which assistants read the service's data and submit jobs.

`groundskeeper mcp` starts the server. The module `server` has the transports, `tools` has the tools that an assistant
can call, and `untrusted` makes texts of tables harmless.
"""

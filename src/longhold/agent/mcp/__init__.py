"""MCP servers and their tools.

The extra `mcp` is imported with the first connection.
"""

from longhold.agent.mcp.mcp_tools import McpTools, ServerOffer
from longhold.agent.mcp.servers import McpServer, load_servers

__all__ = ["McpServer", "McpTools", "ServerOffer", "load_servers"]

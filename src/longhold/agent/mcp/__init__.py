"""MCP servers and their tools.

`load_servers` reads the configuration. `McpTools` connects, lists tools by name and loads
definitions on search. The extra `mcp` is imported with the first connection.
"""

from longhold.agent.mcp.catalogue import McpTools, ServerOffer
from longhold.agent.mcp.servers import McpPlan, McpServer, load_servers

__all__ = ["McpPlan", "McpServer", "McpTools", "ServerOffer", "load_servers"]

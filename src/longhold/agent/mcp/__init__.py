"""Tools of MCP servers.

`load_servers` reads which servers there are, `McpTools` connects to them, lists their tools
by name and loads definitions when they are searched for. Needs the extra `mcp`, which is
imported with the first connection.
"""

from longhold.agent.mcp.catalogue import McpTools, ServerOffer
from longhold.agent.mcp.servers import McpPlan, McpServer, load_servers

__all__ = ["McpPlan", "McpServer", "McpTools", "ServerOffer", "load_servers"]

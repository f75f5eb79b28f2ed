"""The MCP server: the tools, resources and prompts that coding agents use."""

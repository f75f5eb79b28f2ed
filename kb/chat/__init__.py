"""The chat: one engine for page, API, Slack and command line. `Chat.say` answers a message."""

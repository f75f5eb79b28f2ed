"""The HTTP API: `create_app` makes the ASGI application."""

from app.api.factory import create_app

__all__ = ["create_app"]

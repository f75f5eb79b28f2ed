"""The baseline of `bench_api`: a FastAPI endpoint that reads the body and answers nothing else."""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI, Request, Response

app = FastAPI()


@app.post("/v1/diagnose")
async def diagnose(request: Request) -> Response:
    """Read the body, do nothing."""
    await request.body()
    return Response(b"{}", media_type="application/json")


if __name__ == "__main__":
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:  # named: no delay by Nagle
        listening.bind(("127.0.0.1", 0))
        print(f"answers on http://127.0.0.1:{listening.getsockname()[1]} ", flush=True)
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])

"""The jobs' names, read off the scripts without importing torch."""

from __future__ import annotations

import ast
from pathlib import Path


def job_names(script: str = "jobs.py") -> set[str]:
    """Functions of a script that its table JOBS lists."""
    tree = ast.parse((Path(__file__).parent / script).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    tables = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "JOBS"
        and node.value is not None
    ]
    listed = {node.id for table in tables for node in ast.walk(table) if isinstance(node, ast.Name)}
    return functions & listed

"""Which files of this machine a tool may read: those below the allowed folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kb.errors import InputError
from kb.files.paths import files_under, legible, refused

SEPARATOR = os.pathsep  # between the folders of TIMEOUT_KB_MCP_ROOTS


class AllowedFolders:
    """Folders below which files may be read; symbolic links lead nowhere else."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        """Allow `folders` with all that is below them; none: no file may be read.

        Raises:
            InputError: one of them is no folder.
        """
        for folder in folders:
            if not folder.is_dir():
                raise refused("no_folder", folder, "is no folder", todo="name a folder that exists")
        self.folders = tuple(folder.resolve() for folder in folders)

    def paths(self, names: Sequence[str]) -> list[Path]:
        """The real paths behind `names`; relative ones are looked for in each allowed folder.

        Raises:
            InputError: no folder is allowed, a name leads elsewhere or to nothing, or is no file.
        """
        if names and not self.folders:
            raise InputError(
                "this server may read no files",
                todo="pass the text itself, or start the server with --root FOLDER",
                reason="no_roots",
            )
        return [self._path(name) for name in names]

    def _path(self, name: str) -> Path:
        inside = [path for path in self._candidates(name) if self._allows(path)]
        if not inside:
            raise self._outside(name)
        path = next((path for path in inside if path.exists()), inside[0])
        if path.exists() and not (path.is_dir() or path.is_file()):
            raise refused("no_regular_file", name, "is no file", todo="name a file or a folder")
        for file in files_under([path]):  # tells what is missing, too
            if not self._allows(file.resolve()):
                raise self._outside(legible(str(file.relative_to(path))))
        return path

    def _candidates(self, name: str) -> list[Path]:
        if "\0" in name:
            return []
        path = Path(name).expanduser()
        return (
            [path.resolve()]
            if path.is_absolute()
            else [(folder / path).resolve() for folder in self.folders]
        )

    def _allows(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _outside(self, name: str) -> InputError:
        folders = ", ".join(map(str, self.folders))
        return InputError(
            f"{name!r} is not below a folder that this server may read",
            todo=f"name a file below {folders}, or start the server with another --root",
            reason="outside_roots",
            values={"path": name, "folders": folders},
        )


def roots_of(setting: str) -> tuple[Path, ...]:
    """The folders that TIMEOUT_KB_MCP_ROOTS names."""
    return tuple(Path(part).expanduser() for part in setting.split(SEPARATOR) if part)

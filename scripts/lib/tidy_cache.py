"""Which sources clang-tidy found clean, by everything that its answer depends on.

A key is a digest of the source, of each header that it includes, of its compiler call, and of the
`settings` (tool and configuration). Kept outside the build, so that a fresh clone finds them too.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

UNUSED_DAYS = 30
_OBJECT = re.compile(r"(?P<object>\S+): #deps \d+, deps mtime \d+ \((?P<state>VALID|STALE)\)")


def default_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "tp-clang-tidy"


def parse_dependencies(listing: str) -> dict[str, list[str]]:
    """Files that each object was built from, of what `ninja -t deps` prints; without the stale ones."""
    dependencies: dict[str, list[str]] = {}
    files: list[str] = []
    for line in listing.splitlines():
        if match := _OBJECT.fullmatch(line):
            files = []
            if match["state"] == "VALID":
                dependencies[match["object"]] = files
        elif line.strip():
            files.append(line.strip())
    return dependencies


def ninja_dependencies(build: Path) -> dict[str, list[str]]:
    """Nothing where the build is another tool's: then nothing is remembered."""
    listed = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=False
    )
    return parse_dependencies(listed.stdout) if listed.returncode == 0 else {}


def _object_of(command: list[str]) -> str | None:
    return command[command.index("-o") + 1] if "-o" in command[:-1] else None


class CleanResults:
    def __init__(self, folder: Path, root: Path, settings: Iterable[str]) -> None:
        self._folder = folder
        self._root = root
        self._settings = list(settings)
        self._digests: dict[Path, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def key(self, entry: dict[str, str], dependencies: dict[str, list[str]]) -> str | None:
        """Of an entry of compile_commands.json. None: what it includes is not known, or has changed since."""
        directory = Path(entry["directory"])
        command = shlex.split(entry["command"])
        built = _object_of(command)
        if built is None or built not in dependencies:
            return None
        files = sorted({directory / entry["file"], *(directory / file for file in dependencies[built])})
        parts = [*self._settings, *(self._portable(word) for word in command)]
        try:
            if any(file.stat().st_mtime > (directory / built).stat().st_mtime for file in files):
                return None
            parts += [f"{self._portable(str(file))} {self._digest(file)}" for file in files]
        except OSError:
            return None
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def knows(self, key: str) -> bool:
        try:
            os.utime(self._folder / key)
        except OSError:
            return False
        return True

    def remember(self, key: str) -> None:
        (self._folder / key).touch()

    def forget_unused(self) -> None:
        oldest_s = time.time() - UNUSED_DAYS * 24 * 3600
        for file in self._folder.iterdir():
            if file.stat().st_mtime < oldest_s:
                file.unlink(missing_ok=True)

    def _portable(self, text: str) -> str:
        return text.replace(str(self._root), ".")

    def _digest(self, file: Path) -> str:
        if file not in self._digests:
            # A batch names its sources by their whole path.
            text = file.read_bytes().replace(str(self._root).encode(), b".")
            self._digests[file] = hashlib.sha256(text).hexdigest()
        return self._digests[file]

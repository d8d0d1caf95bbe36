"""Files that are there whole or not at all, also after a crash of the machine."""

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """One writer per path: the temporary name is fixed, so that a crash leaves at most one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

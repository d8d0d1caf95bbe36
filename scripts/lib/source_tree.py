"""The files of the repository and their text without comments or literals."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')""",
    re.VERBOSE | re.DOTALL,
)


def source_files(root: Path) -> list[str]:
    """Paths relative to root: what git tracks or would track, or all files where there is no git."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            check=True, capture_output=True, text=True,
        ).stdout.split("\0")
        return sorted(path for path in set(listed) if path and (root / path).is_file())
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def without_comments(text: str) -> str:
    """Same lines and columns, comments blanked."""
    return _TOKEN.sub(lambda m: _blank(m.group()) if m.group("comment") else m.group(), text)


def without_comments_and_literals(text: str) -> str:
    """Same lines and columns, comments and the insides of literals blanked."""
    return _TOKEN.sub(lambda m: _blank(m.group()), text)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Line number and match of every occurrence."""
    for match in pattern.finditer(text):
        yield line_of(text, match.start()), match

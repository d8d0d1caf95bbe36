#!/usr/bin/env python3
"""Checks the text of every tracked file: white space, length, machine paths.

usage: style.py [ROOT]

Prints one line a violation, "path:line: sentence", and exits 1 if there is any.
"""

import re
import sys
from pathlib import Path

import source_tree

MAX_LINES = 900
COUNTED_SUFFIXES = (".cc", ".h", ".c", ".py", ".sh")

# Text that others wrote, or where white space at the end of a line has a meaning.
UNCHECKED = re.compile(r"LICENSE|.*/package-lock\.json|tests/fixtures/.*|.*\.(png|svg|gz|zst|db)")

# Folders of one developer's machine; split so that this file passes its own check.
MACHINE_PATH = re.compile(
    "|".join([r"/wo" r"rk/(main|shared|\.lib)", r"/ho" r"me/[a-z]", r"/Us" r"ers/[A-Za-z]", r"/tmp/bu" r"ild-"])
)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def check_lines(path: str, text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            found.append(f"{path}:{number}: white space at the end of the line")
        if "\t" in line and not path.endswith((".mk", "Makefile")):
            found.append(f"{path}:{number}: tab; indent with spaces, write \\t in literals")
        if match := MACHINE_PATH.search(line):
            found.append(f"{path}:{number}: {match.group()}: a path of one machine")
        if match := UNFINISHED.search(line):
            found.append(f"{path}:{number}: {match.group()}: finish it or file an issue")
    return found


def check_file(path: str, text: str) -> list[str]:
    found = check_lines(path, text)
    if text and not text.endswith("\n"):
        found.append(f"{path}:{text.count(chr(10)) + 1}: no newline at the end of the file")
    if text.endswith("\n\n"):
        found.append(f"{path}:{text.count(chr(10))}: empty line at the end of the file")
    length = text.count("\n")
    if path.endswith(COUNTED_SUFFIXES) and length > MAX_LINES:
        found.append(f"{path}:{MAX_LINES}: {length} lines; split files above {MAX_LINES} by concern")
    return found


def check_tree(root: Path) -> list[str]:
    found = []
    for path in source_tree.source_files(root):
        if UNCHECKED.fullmatch(path):
            continue
        try:
            text = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            found.append(f"{path}:1: not UTF-8 text; binary fixtures belong under tests/fixtures")
            continue
        found += check_file(path, text)
    return found


def main(arguments: list[str]) -> int:
    if arguments and arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    root = Path(arguments[0]) if arguments else source_tree.ROOT
    found = check_tree(root)
    for violation in found:
        print(violation)
    print(f"style: {len(found)} violations", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
"""Runs clang-tidy-19 on src/core and src/base, and on what changed lately.

usage: tidy.py --build DIR [--jobs N] [--budget SECONDS] [--all]

Changed lately: since TP_CHECK_BASE, else in the commits of the day up to HEAD,
and in the work tree. src/core and src/base are always checked whole; others until
the budget is used up, each commit beginning elsewhere, so that none is left out
for long. What it did not reach is said.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import source_tree

ALWAYS = ("src/core/", "src/base/")
CHECKED = ("src/", "cli/")


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(source_tree.ROOT), *arguments], check=True, capture_output=True, text=True
    ).stdout


def changed_paths() -> set[str]:
    base = os.environ.get("TP_CHECK_BASE")
    if base:
        committed = git("diff", "--name-only", base, "HEAD")
    else:
        head_time = int(git("log", "-1", "--format=%ct"))
        committed = git("log", f"--since=@{head_time - 24 * 3600}", "--name-only", "--format=")
    return set(committed.split()) | set(git("diff", "--name-only", "HEAD").split())


def compiled_paths(build: Path) -> list[str]:
    """Our sources that this build compiles, relative to the root."""
    entries = json.loads((build / "compile_commands.json").read_text())
    paths = {os.path.relpath(Path(entry["directory"]) / entry["file"], source_tree.ROOT) for entry in entries}
    return sorted(path for path in paths if path.startswith(CHECKED))


def selected(compiled: list[str], everything: bool) -> list[str]:
    """What to check, the most important first. A changed header selects its own .cc."""
    changed = {path.rsplit(".", 1)[0] for path in changed_paths()}
    always = [path for path in compiled if path.startswith(ALWAYS)]
    others = [
        path for path in compiled
        if not path.startswith(ALWAYS) and (everything or path.rsplit(".", 1)[0] in changed)
    ]
    first = int(git("rev-parse", "--short=8", "HEAD"), 16) % max(1, len(others))
    return always + others[first:] + others[:first]


def tidy(build: Path, path: str, deadline_s: float) -> str | None:
    """Empty: clean. None: there was no time left."""
    if not path.startswith(ALWAYS) and time.monotonic() > deadline_s:
        return None
    result = subprocess.run(
        ["clang-tidy-19", "--quiet", f"-p={build}", "--extra-arg=-Wno-unknown-warning-option", path],
        cwd=source_tree.ROOT, capture_output=True, text=True, check=False,
    )
    if result.returncode == 0:
        return ""
    return result.stdout + result.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="folder with compile_commands.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--budget", type=int, default=900, help="seconds after which no other file is begun")
    parser.add_argument("--all", action="store_true", help="not only what changed")
    options = parser.parse_args()

    paths = selected(compiled_paths(options.build), options.all)
    deadline_s = time.monotonic() + options.budget
    with ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(paths, pool.map(lambda path: tidy(options.build, path, deadline_s), paths)))

    red = [path for path, output in results.items() if output]
    unreached = [path for path, output in results.items() if output is None]
    for path in red:
        print(results[path])
    if unreached:
        print(f"NOTICE clang-tidy did not reach {len(unreached)} changed files: {' '.join(unreached)}")
    print(f"clang-tidy: {len(paths) - len(unreached)} files checked, {len(red)} with findings")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())

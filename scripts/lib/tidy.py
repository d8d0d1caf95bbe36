#!/usr/bin/env python3
"""Runs clang-tidy-19 on src/core and src/base, and on what changed lately.

usage: tidy.py --build DIR [--jobs N] [--budget SECONDS] [--all]

Changed lately: since TP_CHECK_BASE, else in the commits of the day up to HEAD,
and in the work tree. What was found clean before, in a build that is up to date,
is not looked at again until something that it includes changes. src/core and
src/base are always checked whole; others until the budget is used up, each commit
beginning elsewhere, so that none is left out for long. What it did not reach is
said.
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
import tidy_cache

ALWAYS = ("src/core/", "src/base/")
CHECKED = ("src/", "cli/")

COMPILER_ARGUMENTS = (
    "-Wno-unknown-warning-option",
    # tp-rank is compiled with -specs= of musl, which is gcc's alone.
    "-Wno-unused-command-line-argument",
    # std::stable_sort of libstdc++ 12 calls what it deprecates. What ours calls, g++ tells in every build.
    "-Wno-deprecated-declarations",
)
# The analyzer follows calls into our functions, but not into templates: nearly all are the libraries', where it
# spent three quarters of its time to report about absl's own casts. Nodes: as in its mode "shallow", a third of
# what it takes else, since few functions need more.
ANALYZER_SETTINGS = ("c++-template-inlining=false", "max-nodes=75000")


def extra_arguments() -> list[str]:
    words = list(COMPILER_ARGUMENTS)
    for setting in ANALYZER_SETTINGS:
        words += ["-Xclang", "-analyzer-config", "-Xclang", setting]
    return [f"--extra-arg={word}" for word in words]


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


def compiled(build: Path) -> dict[str, dict[str, str]]:
    """Our sources that this build compiles, relative to the root, with how it does."""
    entries = json.loads((build / "compile_commands.json").read_text())
    of_path = {os.path.relpath(Path(entry["directory"]) / entry["file"], source_tree.ROOT): entry for entry in entries}
    return {path: of_path[path] for path in sorted(of_path) if path.startswith(CHECKED)}


def selected(paths: list[str], everything: bool) -> list[str]:
    """What to check, the most important first. A changed header selects its own .cc."""
    changed = {path.rsplit(".", 1)[0] for path in changed_paths()}
    always = [path for path in paths if path.startswith(ALWAYS)]
    others = [
        path for path in paths
        if not path.startswith(ALWAYS) and (everything or path.rsplit(".", 1)[0] in changed)
    ]
    first = int(git("rev-parse", "--short=8", "HEAD"), 16) % max(1, len(others))
    return always + others[first:] + others[:first]


def clean_results() -> tidy_cache.CleanResults:
    version = subprocess.run(["clang-tidy-19", "--version"], check=True, capture_output=True, text=True).stdout
    configuration = (source_tree.ROOT / ".clang-tidy").read_text()
    results = tidy_cache.CleanResults(
        tidy_cache.default_folder(), source_tree.ROOT, [version, configuration, *extra_arguments()]
    )
    results.forget_unused()
    return results


def tidy(build: Path, path: str, deadline_s: float) -> str | None:
    """Empty: clean. None: there was no time left."""
    if not path.startswith(ALWAYS) and time.monotonic() > deadline_s:
        return None
    result = subprocess.run(
        ["clang-tidy-19", "--quiet", f"-p={build}", *extra_arguments(), path],
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

    entries = compiled(options.build)
    known = clean_results()
    dependencies = tidy_cache.ninja_dependencies(options.build)
    keys = {path: known.key(entries[path], dependencies) for path in selected(list(entries), options.all)}
    paths = [path for path, key in keys.items() if key is None or not known.knows(key)]

    deadline_s = time.monotonic() + options.budget

    def check(path: str) -> str | None:
        output = tidy(options.build, path, deadline_s)
        key = keys[path]
        if output == "" and key is not None:
            known.remember(key)
        return output

    with ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(paths, pool.map(check, paths)))

    red = [path for path, output in results.items() if output]
    unreached = [path for path, output in results.items() if output is None]
    for path in red:
        print(results[path])
    if unreached:
        print(f"NOTICE clang-tidy did not reach {len(unreached)} changed files: {' '.join(unreached)}")
    print(f"clang-tidy: {len(keys) - len(paths)} files clean as before, {len(paths) - len(unreached)} checked, "
          f"{len(red)} with findings")
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs clang-tidy-19 on all of src and cli.

usage: tidy.py --build DIR [--jobs N]

It reads the batches of sources that DIR compiles: nearly all of its time goes into the headers of
libraries, which a batch reads once. What was found clean before, in a build that is up to date, is
not looked at again until something that it includes changes.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import source_tree
import tidy_cache

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


def compiled(build: Path) -> dict[str, dict[str, str]]:
    """What this build compiles of ours, batches and single sources, with how it does."""
    entries = json.loads((build / "compile_commands.json").read_text())
    of_path = {}
    for entry in entries:
        path = Path(entry["directory"]) / entry["file"]
        place = os.path.relpath(path, build if path.is_relative_to(build) else source_tree.ROOT)
        if place.startswith(CHECKED):
            of_path[str(path)] = entry
    return dict(sorted(of_path.items()))


def clean_results() -> tidy_cache.CleanResults:
    version = subprocess.run(["clang-tidy-19", "--version"], check=True, capture_output=True, text=True).stdout
    configuration = (source_tree.ROOT / ".clang-tidy").read_text()
    results = tidy_cache.CleanResults(
        tidy_cache.default_folder(), source_tree.ROOT, [version, configuration, *extra_arguments()]
    )
    results.forget_unused()
    return results


def tidy(build: Path, path: str) -> str:
    """Empty: clean."""
    result = subprocess.run(
        ["clang-tidy-19", "--quiet", f"-p={build}", *extra_arguments(), path],
        cwd=source_tree.ROOT, capture_output=True, text=True, check=False,
    )
    return result.stdout + result.stderr if result.returncode != 0 else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True, help="folder with compile_commands.json")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    build = options.build.resolve()

    entries = compiled(build)
    known = clean_results()
    dependencies = tidy_cache.ninja_dependencies(build)
    keys = {path: known.key(entry, dependencies) for path, entry in entries.items()}
    paths = [path for path, key in keys.items() if key is None or not known.knows(key)]

    def check(path: str) -> str:
        output = tidy(build, path)
        key = keys[path]
        if output == "" and key is not None:
            known.remember(key)
        return output

    with ThreadPoolExecutor(options.jobs) as pool:
        findings = [output for output in pool.map(check, paths) if output]

    for output in findings:
        print(output)
    print(f"clang-tidy: {len(keys) - len(paths)} compilations clean as before, {len(paths)} checked, "
          f"{len(findings)} with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

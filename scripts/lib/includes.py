#!/usr/bin/env python3
"""Checks which folder may include what, and which names may not appear where.

usage: includes.py [ROOT]

Prints one line a violation, "path:line: sentence", and exits 1 if there is any.
The rules are the two tables below; a source folder without a row is an error.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import source_tree

# What an include points to: the first pattern that matches, else the folder that holds it.
TARGETS = [
    ("grpc", r"tp/v1/.*\.grpc\.pb\.h|grpcpp/.*|grpc/.*"),
    ("proto", r"tp/v1/.*\.pb\.h|google/protobuf/.*"),
    ("tp/backend.h", r"tp/backend\.h"),
    ("public", r"tp/[a-z_]+\.h"),
    ("store_interface", r"store/(store|rows|chain)\.h"),
    ("snapshot_manifest", r"snapshot/manifest\.h"),
    ("absl", r"absl/.*"),
    ("fmt", r"fmt/.*"),
    ("spdlog", r"spdlog/.*"),
    ("sqlite", r"sqlite3\.h"),
    ("yaml", r"yaml-cpp/.*"),
    ("json", r"nlohmann/.*"),
    ("openssl", r"openssl/.*"),
    ("curl", r"curl/.*"),
    ("cli11", r"CLI/.*"),
    ("gtest", r"(gtest|gmock|rapidcheck|benchmark)(/.*|\.h)"),
    ("std", r"[a-z_]+"),
    ("posix", r"((sys|linux|arpa|net|netinet|asm|bits)/)?[a-z0-9_]+\.h"),
]


@dataclass(frozen=True)
class Folder:
    """May include its own headers, the standard library, and what `may` names.

    Others name the folder by its path without a leading "src/".
    """

    path: str
    may: frozenset[str]

    @property
    def name(self) -> str:
        return self.path.removeprefix("src/")


def _folder(path: str, *may: str) -> Folder:
    return Folder(path, frozenset(" ".join(may).split()))


LIBS = "absl fmt"
BACKENDS = "backends/docker backends/driver backends/fake backends/local backends/node"
TESTED = f"tests base decode core plan config store snapshot snapshot_manifest loop launch sim simulate auth notify rank public tp/backend.h {BACKENDS}"
TEST_LIBS = "gtest absl fmt json yaml sqlite openssl posix"
RPC = "proto grpc"

# The longest path that holds a file decides. A new folder is one row.
FOLDERS = [
    _folder("include/tp", "public tp/backend.h absl"),
    _folder("src/rank", "posix"),
    _folder("src/base", LIBS, "spdlog json yaml openssl posix"),
    _folder("src/decode", LIBS, "base yaml json"),
    _folder("src/core", LIBS, "base public"),
    _folder("src/config", LIBS, "base decode core json posix"),
    _folder("src/store", LIBS, "base core public sqlite openssl json posix"),
    _folder("src/plan", LIBS, "base core public"),
    _folder("src/loop", LIBS, "base core plan store_interface public tp/backend.h posix"),
    _folder("src/snapshot", LIBS, "base snapshot_manifest posix"),
    _folder("src/launch", LIBS, "base core snapshot public tp/backend.h json posix"),
    _folder("src/backends/docker", LIBS, "base core launch public tp/backend.h curl json posix"),
    _folder("src/backends/driver", LIBS, "base core launch loop public tp/backend.h posix"),
    _folder("src/backends/fake", LIBS, "base core launch public tp/backend.h"),
    _folder("src/backends/local", LIBS, "base core launch public tp/backend.h json posix"),
    _folder("src/backends/node", LIBS, "base core launch public tp/backend.h json posix"),
    _folder("src/sim", LIBS, "base core plan store loop launch backends/fake public tp/backend.h"),
    _folder("src/simulate", LIBS, "base decode core plan config json"),
    _folder("src/auth", LIBS, "base core store_interface openssl posix"),
    _folder("src/notify", LIBS, "base core store store_interface auth spdlog json curl posix"),
    _folder("src/api", LIBS, RPC, "base core plan loop store snapshot snapshot_manifest auth config notify public json posix"),
    _folder("src/tpd", LIBS, RPC, BACKENDS,
            "base decode core config store snapshot snapshot_manifest loop launch sim simulate auth notify api public tp/backend.h spdlog json cli11 posix"),
    _folder("cli", LIBS, RPC, "base decode snapshot_manifest public json cli11 posix"),
    _folder("tests", TESTED, TEST_LIBS),
    _folder("tests/api", TESTED, TEST_LIBS, RPC, "api cli"),
    _folder("tests/bench", "core plan loop store_interface store api public tp/backend.h", TEST_LIBS,
            RPC),
    _folder("tests/cli", TESTED, TEST_LIBS, RPC, "api cli cli11"),
    _folder("tests/e2e", TESTED, TEST_LIBS, RPC, "cli tests/bench"),
    _folder("tests/fuzz", "base config cli"),
    _folder("tests/tpd", TESTED, TEST_LIBS, RPC, "api tpd"),
]


@dataclass(frozen=True)
class Ban:
    """`pattern` may not appear in the code of files that match `where` and none of `but_not`."""

    pattern: re.Pattern[str]
    where: tuple[str, ...]
    but_not: tuple[str, ...]
    why: str


DETERMINISTIC = ("src/core/*", "src/plan/*", "src/loop/*", "src/sim/*", "src/simulate/*")
# Drives the loop with real threads and clocks.
LOOP_SHELL = ("src/loop/loop_thread.*",)

BANS = [
    Ban(re.compile(r"\babsl::string_view\b"), ("src/*", "cli/*", "include/*"), ("src/base/*",),
        "use std::string_view (Debian's absl::string_view is another type; converters are in base/strings.h)"),
    Ban(re.compile(r"\babsl::Now\b|\b\w+_clock::now\b|\bGetCurrentTimeNanos\b|\bclock_gettime\b"
                   r"|\bgettimeofday\b|\btime\s*\(\s*(nullptr|NULL|0|&)"), DETERMINISTIC, LOOP_SHELL,
        "time comes in as a value or from the Clock that was passed in"),
    Ban(re.compile(r"\bstd::(thread|jthread|async|this_thread)\b|\bpthread_create\b"), DETERMINISTIC, LOOP_SHELL,
        "no threads here: post to the Executor that was passed in"),
    Ban(re.compile(r"\brandom_device\b|\bs?rand\s*\(|\bgetrandom\b|\bgetentropy\b"), DETERMINISTIC, (),
        "randomness comes from the seeded source that was passed in"),
    Ban(re.compile(r"\bstd::unordered_(multi)?(map|set)\b"), DETERMINISTIC, (),
        "its order differs from run to run: use std::map, absl::btree_map, or flat_hash_map without iterating"),
    Ban(re.compile(r"\b(getenv|fopen|ifstream|ofstream)\b"), ("src/core/*",), (),
        "the core does no I/O"),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
HASH_CONTAINER = re.compile(r"\b(?:flat|node)_hash_(?:map|set)\s*<[^;{}()]*>\s*&?\s*(\w+)\s*[;={,)]")
SOURCE_SUFFIXES = (".cc", ".h", ".c")
SOURCE_TOPS = ("src/", "cli/", "include/", "tests/", "examples/")


def longest(rows: list[Folder], path_of: Callable[[Folder], str], file: str) -> Folder | None:
    holding = [row for row in rows if file.startswith(path_of(row) + "/")]
    return max(holding, key=lambda row: len(row.path), default=None)


def folder_of(path: str) -> Folder | None:
    return longest(FOLDERS, lambda row: row.path, path)


def target_of(include: str) -> str | None:
    """The name under which FOLDERS allow this include."""
    for name, pattern in TARGETS:
        if re.fullmatch(pattern, include):
            return name
    row = longest(FOLDERS, lambda row: row.name, include)
    return row.name if row else None


def allowed_targets(folder: Folder) -> frozenset[str]:
    allowed = folder.may | {folder.name, "std"}
    return allowed | {"store_interface"} if "store" in allowed else allowed


def check_includes(path: str, code: str, folder: Folder) -> list[str]:
    found = []
    for line, match in source_tree.matches(INCLUDE, code):
        include = match.group(1) or match.group(2)
        target = target_of(include)
        if include.endswith((".cc", ".c")):
            found.append(f"{path}:{line}: include of {include}: a source is compiled by itself")
        elif target is None:
            found.append(f'{path}:{line}: include of "{include}": no such folder, or no row for it in includes.py')
        elif target not in allowed_targets(folder):
            found.append(f"{path}:{line}: {folder.path} may not include {include} ({target})")
    return found


def check_bans(path: str, code: str) -> list[str]:
    found = []
    for ban in BANS:
        if not any(fnmatch(path, p) for p in ban.where) or any(fnmatch(path, p) for p in ban.but_not):
            continue
        for line, match in source_tree.matches(ban.pattern, code):
            found.append(f"{path}:{line}: {match.group().strip()}: {ban.why}")
    return found


def hash_container_names(codes: dict[str, str], path: str) -> set[str]:
    """Names declared as hash containers in the file or in its own header."""
    stem = path.rsplit(".", 1)[0]
    return {
        match.group(1)
        for suffix in SOURCE_SUFFIXES
        for match in HASH_CONTAINER.finditer(codes.get(stem + suffix, ""))
    }


def check_hash_iteration(path: str, code: str, names: set[str]) -> list[str]:
    """Hash order differs from run to run; a decision that follows it does not replay."""
    if not names or not any(fnmatch(path, p) for p in DETERMINISTIC):
        return []
    name = "|".join(sorted(map(re.escape, names)))
    loop = re.compile(rf"\bfor\s*\([^;()]*[^:]:\s*(?:\w+(?:\.|->))*({name})\s*\)|\b({name})(?:\.|->)c?begin\s*\(")
    return [
        f"{path}:{line}: iterates over the hash container {match.group(1) or match.group(2)}: sort first or use a btree"
        for line, match in source_tree.matches(loop, code)
    ]


def check_tree(root: Path) -> list[str]:
    paths = [
        path for path in source_tree.source_files(root)
        if path.endswith(SOURCE_SUFFIXES) and path.startswith(SOURCE_TOPS)
    ]
    texts = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    codes = {path: source_tree.without_comments_and_literals(text) for path, text in texts.items()}
    found = []
    for path, text in texts.items():
        folder = folder_of(path)
        if folder is None:
            found.append(f"{path}:1: its folder has no row in scripts/lib/includes.py; add one")
            continue
        found += check_includes(path, source_tree.without_comments(text), folder)
        found += check_bans(path, codes[path])
        found += check_hash_iteration(path, codes[path], hash_container_names(codes, path))
    return found


def main(arguments: list[str]) -> int:
    if arguments and arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    root = Path(arguments[0]) if arguments else source_tree.ROOT
    found = check_tree(root)
    for violation in found:
        print(violation)
    print(f"includes: {len(found)} violations", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

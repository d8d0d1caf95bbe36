#!/usr/bin/env python3
"""Counts what the test runs really executed, so that nothing is skipped unseen.

usage: scenarios.py DIR RUN...

For each RUN reads DIR/RUN.tests.json (ctest --show-only=json-v1) and
DIR/RUN.junit.xml (ctest --output-junit), prints executed scenarios per suite
beside the minimum committed in tests/minimums.json, and writes
DIR/scenarios.count: how many tests passed, how many complaints there are.

One ctest entry is one scenario. A test that runs many of them prints lines
"SCENARIOS <suite> <count>", which count instead of the entry.

Exits 1 when a test failed, a suite stayed under its minimum, a test was
skipped that tests/allowed_skips.json does not list, or carries no suite label.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN_FAILURES = 10
SHOWN_LINES = 25
SCENARIOS_LINE = re.compile(r"^SCENARIOS (\S+) (\d+)\s*$", re.MULTILINE)


@dataclass
class RunResult:
    """What one ctest run executed."""

    executed: Counter = field(default_factory=Counter)
    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # name -> output
    skipped: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AllowedSkip:
    """One entry of tests/allowed_skips.json."""

    test: re.Pattern[str]
    runs: frozenset[str]
    reason: str

    def covers(self, run: str, test: str) -> bool:
        return run in self.runs and self.test.fullmatch(test) is not None


def load_allowed_skips(path: Path) -> list[AllowedSkip]:
    entries = json.loads(path.read_text())["skips"]
    allowed = []
    for entry in entries:
        if not entry.get("reason", "").strip():
            raise ValueError(f"{path}: the skip of {entry.get('test')} gives no reason")
        allowed.append(AllowedSkip(re.compile(entry["test"]), frozenset(entry["runs"]), entry["reason"]))
    return allowed


def load_labels(path: Path) -> dict[str, list[str]]:
    """Test name -> its ctest labels."""
    labels = {}
    for test in json.loads(path.read_text())["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels[test["name"]] = properties.get("LABELS", [])
    return labels


def suite_of(test: str, labels: list[str], suites: list[str], result: RunResult) -> str:
    found = [label for label in labels if label in suites]
    if len(found) == 1:
        return found[0]
    result.problems.append(f"{test}: needs exactly one suite label, has {labels or 'none'}")
    return found[0] if found else "?"


def count_executed(suite: str, output: str) -> Counter:
    printed: Counter = Counter()
    for name, count in SCENARIOS_LINE.findall(output):
        printed[name] += int(count)
    return printed or Counter({suite: 1})


def read_run(labels: dict[str, list[str]], junit: ElementTree.Element, suites: list[str]) -> RunResult:
    result = RunResult()
    seen = set()
    for case in junit.iter("testcase"):
        name = case.get("name", "")
        seen.add(name)
        suite = suite_of(name, labels.get(name, []), suites, result)
        status = case.get("status")
        skip = case.find("skipped")
        if status == "run":
            result.passed += 1
            result.executed += count_executed(suite, case.findtext("system-out", ""))
        elif status == "disabled" or (skip is not None and skip.get("message", "").startswith("SKIP_")):
            result.skipped.append(name)
        else:
            result.failed[name] = case.findtext("system-out", "")
    for name in sorted(set(labels) - seen):
        result.problems.append(f"{name}: listed by ctest but not in its report")
    return result


def unexplained_skips(run: str, result: RunResult, allowed: list[AllowedSkip]) -> list[str]:
    return [name for name in result.skipped if not any(entry.covers(run, name) for entry in allowed)]


def under_minimum(run: str, result: RunResult, minimums: dict[str, int]) -> list[str]:
    return [
        f"{run}: suite {suite} executed {result.executed[suite]} scenarios, the minimum is {minimum}"
        for suite, minimum in minimums.items()
        if result.executed[suite] < minimum
    ]


def table(results: dict[str, RunResult], suites: list[str], minimums: dict[str, dict[str, int]]) -> str:
    extra = {suite for result in results.values() for suite in result.executed} - set(suites)
    rows = [["suite", *(f"{run} (minimum)" for run in results)]]
    for suite in [*suites, *sorted(extra)]:
        cells = []
        for run, result in results.items():
            minimum = minimums.get(run, {}).get(suite, 0)
            cells.append(f"{result.executed[suite]} ({minimum})" if result.executed[suite] or minimum else "-")
        if set(cells) != {"-"}:
            rows.append([suite, *cells])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    )


def print_failures(run: str, result: RunResult) -> None:
    """The end of the output of the first few; all of it is in the log."""
    for name, output in list(result.failed.items())[:SHOWN_FAILURES]:
        print(f"--- {run}: {name}")
        print("\n".join(f"  | {line}" for line in output.rstrip().split("\n")[-SHOWN_LINES:]))


def judge(run: str, result: RunResult, allowed: list[AllowedSkip], minimums: dict[str, int]) -> list[str]:
    """Everything that makes this run red, one sentence each."""
    complaints = [f"{run}: {name} failed" for name in result.failed]
    complaints += [
        f"{run}: {name} was skipped and tests/allowed_skips.json does not list it"
        for name in unexplained_skips(run, result, allowed)
    ]
    complaints += [f"{run}: {problem}" for problem in result.problems]
    return complaints + under_minimum(run, result, minimums)


def main(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    directory, runs = Path(arguments[0]), arguments[1:]
    config = json.loads((ROOT / "tests/minimums.json").read_text())
    suites, minimums = config["suites"], config["minimums"]
    allowed = load_allowed_skips(ROOT / "tests/allowed_skips.json")

    results = {}
    for run in runs:
        labels = load_labels(directory / f"{run}.tests.json")
        junit = ElementTree.parse(directory / f"{run}.junit.xml").getroot()
        results[run] = read_run(labels, junit, suites)
    complaints = [
        complaint
        for run, result in results.items()
        for complaint in judge(run, result, allowed, minimums.get(run, {}))
    ]

    for run, result in results.items():
        print_failures(run, result)
    print("\nExecuted scenarios per suite")
    print(table(results, suites, minimums))
    for run, result in results.items():
        for name in result.skipped:
            reasons = [entry.reason for entry in allowed if entry.covers(run, name)]
            print(f"skipped in {run}: {name}: {reasons[0] if reasons else 'no reason committed'}")
    for complaint in complaints:
        print(f"FAIL {complaint}")
    passed = sum(result.passed for result in results.values())
    (directory / "scenarios.count").write_text(f"{passed} {len(complaints)}\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

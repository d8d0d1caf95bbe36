"""The shipped scenario runs, prints the same twice, and docs/simulate.md shows what it prints.

usage: example_test.py SOURCE_DIR TPD
"""

import json
import subprocess
import sys
from pathlib import Path


def run(tpd: str, root: Path, *arguments: str) -> str:
    command = [tpd, "simulate", "examples/simulate/two-policies.yaml", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=60).stdout


def main(source: str, tpd: str) -> None:
    root = Path(source)
    printed = run(tpd, root)
    assert printed == run(tpd, root), "two runs differ"
    page = (root / "docs/simulate.md").read_text(encoding="utf-8")
    assert f"```\n{printed}```\n" in page, f"docs/simulate.md does not show what is printed:\n{printed}"
    policies = json.loads(run(tpd, root, "-o", "json"))["policies"]
    assert [policy["policy"] for policy in policies] == ["today", "fair"], policies
    missing = subprocess.run([tpd, "simulate", "gone.yaml"], cwd=root, capture_output=True, text=True, timeout=60)
    assert missing.returncode == 2, missing
    assert missing.stderr == "there is no file gone.yaml\n", missing


if __name__ == "__main__":
    main(*sys.argv[1:])

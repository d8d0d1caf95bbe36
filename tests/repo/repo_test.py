"""What the repository tests share: a scratch tree and a way to report how many cases ran."""

import shutil
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/lib"))
sys.dont_write_bytecode = True


class TreeTest(unittest.TestCase):
    """Gives each test an empty tree of its own."""

    def setUp(self) -> None:
        self.tree = Path(tempfile.mkdtemp(prefix="tp-repo-test-"))
        self.addCleanup(shutil.rmtree, self.tree)

    def plant(self, path: str, text: str) -> None:
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def main() -> None:
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    print(f"SCENARIOS repo {program.result.testsRun}")
    sys.exit(0 if program.result.wasSuccessful() else 1)

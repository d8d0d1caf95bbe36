"""The scripts are sound shell, tell what they do, and read their own data files."""

import json
import subprocess
from pathlib import Path

import repo_test
import source_tree
from repo_test import ROOT


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def first_line(path: str) -> str:
    with (ROOT / path).open(encoding="utf-8", errors="replace") as file:
        return file.readline()


def shell_scripts() -> list[str]:
    return [path for path in source_tree.source_files(ROOT)
            if first_line(path).startswith(("#!/bin/bash", "#!/bin/sh", "# shellcheck shell="))]


def commands() -> list[str]:
    """What a person runs: the executables right in scripts/."""
    return [str(path) for path in sorted((ROOT / "scripts").iterdir()) if path.is_file()]


class Shell(repo_test.unittest.TestCase):
    def test_shellcheck_is_silent(self) -> None:
        scripts = shell_scripts()
        self.assertGreater(len(scripts), 3)
        result = run("shellcheck", *scripts)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_every_command_explains_itself(self) -> None:
        for command in commands():
            with self.subTest(Path(command).name):
                result = run(command, "--help")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("Usage: scripts/", result.stdout)

    def test_unknown_options_are_usage_errors(self) -> None:
        for command in commands():
            with self.subTest(Path(command).name):
                self.assertEqual(run(command, "--no-such-option").returncode, 2)


class Packages(repo_test.unittest.TestCase):
    def test_every_section_lists_packages_once(self) -> None:
        seen: list[str] = []
        for section in ("runtime", "build", "example", "test", "dev"):
            result = run("scripts/install-deps", "--list", section)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(result.stdout.split(), section)
            seen += result.stdout.split()
        self.assertEqual(sorted(seen), sorted(set(seen)))

    def test_unknown_section_is_refused_and_names_the_known(self) -> None:
        result = run("scripts/install-deps", "--list", "kitchen")
        self.assertEqual(result.returncode, 2)
        self.assertIn("runtime", result.stderr)


class DataFiles(repo_test.unittest.TestCase):
    def test_presets(self) -> None:
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        for kind in ("configurePresets", "buildPresets", "testPresets"):
            names = {preset["name"] for preset in presets[kind] if not preset.get("hidden")}
            self.assertEqual(names, {"release", "debug", "asan", "asan-core", "tsan", "coverage"}, kind)

    def test_minimums_name_known_suites_and_runs(self) -> None:
        config = json.loads((ROOT / "tests/minimums.json").read_text())
        self.assertLessEqual(set(config["minimums"]), {"release", "engines", "asan", "tsan"})
        for run_name, minimums in config["minimums"].items():
            self.assertLessEqual(set(minimums), set(config["suites"]), run_name)

    def test_buf_lock_names_no_registry(self) -> None:
        self.assertNotIn("resolved", (ROOT / "scripts/buf/package-lock.json").read_text())


if __name__ == "__main__":
    repo_test.main()

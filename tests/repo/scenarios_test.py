"""The scenario counter lets nothing be skipped, forgotten or uncounted."""

import ast
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

import repo_test
import scenarios

SUITES = ["core", "sim"]


def read(labels: dict[str, list[str]], cases: str) -> scenarios.RunResult:
    return scenarios.read_run(labels, ElementTree.fromstring(f"<testsuite>{cases}</testsuite>"), SUITES)


def judge(result: scenarios.RunResult, minimums: dict[str, int] | None = None,
          allowed: list[scenarios.AllowedSkip] | None = None) -> list[str]:
    return scenarios.judge("asan", result, allowed or [], minimums or {})


class Counting(repo_test.unittest.TestCase):
    def test_an_entry_is_one_scenario(self) -> None:
        result = read({"A.B": ["core"]}, '<testcase name="A.B" status="run"><system-out>ok</system-out></testcase>')
        self.assertEqual(result.executed, {"core": 1})
        self.assertEqual(judge(result, {"core": 1}), [])

    def test_printed_counts_stand_instead_of_the_entry(self) -> None:
        result = read({"S": ["sim", "slow"]},
                      '<testcase name="S" status="run"><system-out>SCENARIOS sim 1500\nSCENARIOS core 2\n'
                      'SCENARIOS sim 500\n</system-out></testcase>')
        self.assertEqual(result.executed, {"sim": 2000, "core": 2})
        self.assertEqual(result.passed, 1)

    def test_under_the_minimum(self) -> None:
        result = read({"A.B": ["core"]}, '<testcase name="A.B" status="run"/>')
        self.assertIn("the minimum is 2", judge(result, {"core": 2})[0])

    def test_a_suite_that_vanished(self) -> None:
        self.assertIn("suite sim executed 0", judge(read({}, ""), {"sim": 1})[0])


def classes_with_tests(path: pathlib.Path) -> set[str]:
    """Those that a class inherits count too, where the base is in the same file."""
    tree = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    own = {node.name for node in tree
           if any(isinstance(part, ast.FunctionDef) and part.name.startswith("test_") for part in node.body)}
    for node in tree:
        if any(isinstance(base, ast.Name) and base.id in own for base in node.bases):
            own.add(node.name)
    return own


class EndToEnd(repo_test.unittest.TestCase):
    def test_every_class_is_run(self) -> None:
        directory = pathlib.Path(__file__).resolve().parent.parent / "e2e"
        run = set(re.findall(r"\b[a-z_]+\.[A-Z]\w+\b", (directory / "CMakeLists.txt").read_text()))
        written = {f"{path.stem.removesuffix('_test')}.{name}"
                   for path in directory.glob("*_test.py") for name in classes_with_tests(path)}
        self.assertEqual(written - run, set(), "not listed in tests/e2e/CMakeLists.txt")


class RedResults(repo_test.unittest.TestCase):
    def test_failure(self) -> None:
        result = read({"A.B": ["core"]}, '<testcase name="A.B" status="fail"><failure/></testcase>')
        self.assertEqual(judge(result), ["asan: A.B failed"])
        self.assertEqual(result.executed["core"], 0)

    def test_missing_executable_is_a_failure(self) -> None:
        result = read({"A.B": ["core"]},
                      '<testcase name="A.B" status="notrun"><skipped message="Unable to find executable"/></testcase>')
        self.assertEqual(judge(result), ["asan: A.B failed"])

    def test_listed_but_not_reported(self) -> None:
        self.assertIn("not in its report", judge(read({"A.B": ["core"]}, ""))[0])

    def test_no_suite_label(self) -> None:
        result = read({"A.B": ["slow"]}, '<testcase name="A.B" status="run"/>')
        self.assertIn("exactly one suite label", judge(result)[0])

    def test_two_suite_labels(self) -> None:
        result = read({"A.B": ["core", "sim"]}, '<testcase name="A.B" status="run"/>')
        self.assertIn("exactly one suite label", judge(result)[0])


class Skips(repo_test.TreeTest):
    SKIPPED = '<testcase name="A.B" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
    DISABLED = '<testcase name="A.B" status="disabled"/>'

    def allowed(self, **entry: object) -> list[scenarios.AllowedSkip]:
        self.plant("allowed.json", json.dumps({"skips": [entry]}))
        return scenarios.load_allowed_skips(self.tree / "allowed.json")

    def test_skipped_and_disabled_are_red(self) -> None:
        for case in (self.SKIPPED, self.DISABLED):
            with self.subTest(case):
                self.assertIn("was skipped", judge(read({"A.B": ["core"]}, case))[0])

    def test_listed_skip_is_green_in_its_run_only(self) -> None:
        allowed = self.allowed(test="A\\..*", runs=["asan"], reason="needs a card")
        result = read({"A.B": ["core"]}, self.SKIPPED)
        self.assertEqual(judge(result, allowed=allowed), [])
        self.assertEqual(len(scenarios.judge("tsan", result, allowed, {})), 1)

    def test_a_skip_needs_a_reason(self) -> None:
        with self.assertRaises(ValueError):
            self.allowed(test="A.B", runs=["asan"], reason=" ")


if __name__ == "__main__":
    repo_test.main()

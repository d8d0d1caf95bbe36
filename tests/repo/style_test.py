"""The style check holds for this tree, and finds what is planted in another."""

import repo_test
import style


class ThisTree(repo_test.unittest.TestCase):
    def test_has_no_violation(self) -> None:
        self.assertEqual(style.check_tree(repo_test.ROOT), [])


class PlantedViolations(repo_test.TreeTest):
    def assert_found(self, text: str, expected: str, path: str = "src/base/a.cc") -> None:
        self.plant(path, text)
        found = style.check_tree(self.tree)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_white_space_at_the_end_of_a_line(self) -> None:
        self.assert_found("int a; \n", "a.cc:1: white space")

    def test_tab(self) -> None:
        self.assert_found("int a;\n\tint b;\n", "a.cc:2: tab")

    def test_no_newline_at_the_end(self) -> None:
        self.assert_found("int a;", "no newline")

    def test_empty_line_at_the_end(self) -> None:
        self.assert_found("int a;\n\n", "empty line")

    def test_long_file(self) -> None:
        self.plant("src/base/b.cc", "int a;\n" * style.MAX_LINES)
        self.assert_found("int a;\n" * (style.MAX_LINES + 1), "split files")

    def test_machine_path(self) -> None:
        self.assert_found("// see /ho" "me/someone/tp\n", "a path of one machine")

    def test_unfinished_work(self) -> None:
        self.assert_found("// TO" "DO: more\n", "finish it")

    def test_binary_outside_fixtures(self) -> None:
        (self.tree / "src").mkdir()
        (self.tree / "src/blob").write_bytes(b"\xff\xfe\x00")
        self.assertEqual(len(style.check_tree(self.tree)), 1)


if __name__ == "__main__":
    repo_test.main()

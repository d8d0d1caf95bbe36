"""A clean answer of clang-tidy is reused only while nothing that it depends on changed."""

import os

import repo_test
from tidy_cache import CleanResults, parse_dependencies

OBJECT = "CMakeFiles/a.dir/a.cc.o"
BUILT_AT_S = 2_000_000_000


class Cache(repo_test.TreeTest):
    def setUp(self) -> None:
        super().setUp()
        self.write("src/a.cc", "int a();")
        self.write("src/a.h", "int b();")
        self.write(f"build/{OBJECT}", "")
        self.entry = {
            "directory": str(self.tree / "build"),
            "command": f"c++ -O2 -o {OBJECT} -c {self.tree}/src/a.cc",
            "file": str(self.tree / "src/a.cc"),
        }
        self.dependencies = {OBJECT: ["../src/a.cc", str(self.tree / "src/a.h")]}

    def write(self, path: str, text: str, at_s: int = BUILT_AT_S) -> None:
        self.plant(path, text)
        os.utime(self.tree / path, (at_s, at_s))

    def results(self, settings: str = "checks") -> CleanResults:
        return CleanResults(self.tree / "cache", self.tree, [settings])

    def key(self, settings: str = "checks") -> str | None:
        return self.results(settings).key(self.entry, self.dependencies)

    def test_knows_what_it_was_told_and_nothing_else(self) -> None:
        key = self.key() or ""
        self.assertFalse(self.results().knows(key))
        self.results().remember(key)
        self.assertTrue(self.results().knows(key))
        self.assertFalse(self.results().knows("0" * 64))

    def test_a_change_of_any_input_is_another_key(self) -> None:
        keys = {self.key(), self.key("other checks")}
        self.write("src/a.h", "int c();")
        keys.add(self.key())
        self.write("src/a.cc", "int a();  // NOLINT")
        keys.add(self.key())
        self.entry["command"] += " -DX"
        keys.add(self.key())
        self.assertEqual(len(keys), 5)
        self.assertNotIn(None, keys)

    def test_another_clone_has_the_same_key(self) -> None:
        here = self.key()
        elsewhere = self.tree.with_name(self.tree.name + "-clone")
        self.addCleanup(repo_test.shutil.rmtree, elsewhere)
        repo_test.shutil.copytree(self.tree, elsewhere)
        self.tree, first = elsewhere, self.tree
        self.entry = {name: value.replace(str(first), str(elsewhere)) for name, value in self.entry.items()}
        self.dependencies = {OBJECT: ["../src/a.cc", str(elsewhere / "src/a.h")]}
        self.assertEqual(self.key(), here)

    def test_no_key_where_the_includes_may_have_changed(self) -> None:
        self.write("src/a.h", "#include <new>", BUILT_AT_S + 1)
        self.assertIsNone(self.key(), "changed after the build")
        (self.tree / "src/a.h").unlink()
        self.assertIsNone(self.key(), "gone")
        self.dependencies = {}
        self.assertIsNone(self.key(), "not built")

    def test_what_is_unused_for_long_is_forgotten(self) -> None:
        self.results().remember("old")
        self.results().remember("new")
        os.utime(self.tree / "cache/old", (0, 0))
        self.results().forget_unused()
        self.assertEqual([self.results().knows(key) for key in ("old", "new")], [False, True])


class Dependencies(repo_test.unittest.TestCase):
    def test_reads_what_ninja_prints_but_for_stale_entries(self) -> None:
        listing = (
            "a.cc.o: #deps 2, deps mtime 17 (VALID)\n    ../a.cc\n    /usr/include/x.h\n\n"
            "b.cc.o: #deps 1, deps mtime 18 (STALE)\n    ../b.cc\n\n"
        )
        self.assertEqual(parse_dependencies(listing), {"a.cc.o": ["../a.cc", "/usr/include/x.h"]})


if __name__ == "__main__":
    repo_test.main()

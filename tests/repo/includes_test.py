"""The include check holds for this tree, and finds what is planted in another."""

import repo_test
import includes
import source_tree


class ThisTree(repo_test.unittest.TestCase):
    def test_has_no_violation(self) -> None:
        self.assertEqual(includes.check_tree(repo_test.ROOT), [])


class PlantedViolations(repo_test.TreeTest):
    def assert_found(self, path: str, text: str, expected: str) -> None:
        self.plant(path, text)
        found = includes.check_tree(self.tree)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"{path}:", found[0])
        self.assertIn(expected, found[0])

    def assert_clean(self, path: str, text: str) -> None:
        self.plant(path, text)
        self.assertEqual(includes.check_tree(self.tree), [])

    def test_core_sees_neither_store_nor_loop_nor_backends_nor_api(self) -> None:
        for header in ("store/store.h", "loop/loop.h", "backends/local/local.h", "api/run_service.h",
                       "tp/backend.h"):
            with self.subTest(header):
                self.assert_found("src/core/a.cc", f'#include "{header}"\n', "src/core may not include")

    def test_core_sees_no_system_header(self) -> None:
        self.assert_found("src/core/a.cc", "#include <unistd.h>\n", "unistd.h (posix)")

    def test_core_sees_base_and_values(self) -> None:
        self.assert_clean(
            "src/core/a.cc",
            '#include <map>\n#include "absl/time/time.h"\n#include "base/strings.h"\n#include "tp/observation.h"\n')

    def test_base_sees_nothing_of_ours(self) -> None:
        self.assert_found("src/base/a.h", '#include "core/state.h"\n', "src/base may not include")

    def test_loop_sees_the_store_interface_only(self) -> None:
        self.assert_clean("src/loop/a.cc", '#include "store/store.h"\n#include "tp/backend.h"\n')
        self.assert_found("src/loop/a.cc", '#include "store/sqlite_store.h"\n', "src/loop may not include")

    def test_loop_sees_no_concrete_backend(self) -> None:
        self.assert_found("src/loop/a.cc", '#include "backends/local/local.h"\n', "src/loop may not include")

    def test_backends_do_not_see_one_another(self) -> None:
        self.assert_clean("src/backends/local/a.cc", '#include "backends/local/b.h"\n#include "launch/plan.h"\n')
        self.assert_found("src/backends/local/a.cc", '#include "backends/fake/fake.h"\n', "may not include")

    def test_api_sees_no_backend(self) -> None:
        self.assert_found("src/api/a.cc", '#include "tp/backend.h"\n', "src/api may not include")

    def test_cli_sees_base_and_proto_only(self) -> None:
        self.assert_clean("cli/a.cc", '#include "base/strings.h"\n#include "tp/v1/run.grpc.pb.h"\n')
        self.assert_found("cli/a.cc", '#include "core/state.h"\n', "cli may not include")

    def test_grpc_stays_in_api_cli_and_tpd(self) -> None:
        for header in ("grpcpp/grpcpp.h", "tp/v1/run.grpc.pb.h"):
            with self.subTest(header):
                self.assert_found("src/loop/a.cc", f"#include <{header}>\n", "(grpc)")

    def test_a_folder_without_a_row(self) -> None:
        self.assert_found("src/teleport/a.cc", "\n", "has no row")

    def test_an_include_without_a_row(self) -> None:
        self.assert_found("src/base/a.cc", '#include "teleport/a.h"\n', "no such folder")

    def test_a_source_is_no_header(self) -> None:
        self.assert_found("src/core/a.cc", '#include "core/b.cc"\n', "core/b.cc: a source is compiled by itself")

    def test_absl_string_view_stays_in_base(self) -> None:
        self.assert_clean("src/base/a.h", "absl::string_view s;\n")
        self.assert_found("src/store/a.h", "absl::string_view s;\n", "use std::string_view")

    def test_core_and_loop_know_no_clock_thread_or_chance(self) -> None:
        for code in ("auto t = absl::Now();", "auto t = std::chrono::system_clock::now();", "std::thread t;",
                     "std::random_device d;", "std::unordered_map<int, int> m;"):
            for folder in ("core", "loop"):
                with self.subTest(code + folder):
                    self.assert_found(f"src/{folder}/a.cc", code + "\n", code.split("::")[-1].split("(")[0][:3])
                    (self.tree / f"src/{folder}/a.cc").unlink()

    def test_hash_containers_are_not_iterated(self) -> None:
        self.plant("src/loop/a.h", "struct A { absl::flat_hash_map<std::string, int> by_name_; };\n")
        self.assert_found("src/loop/a.cc", "void F() { for (const auto& [k, v] : by_name_) Use(k); }\n", "by_name_")

    def test_hash_containers_may_be_looked_up(self) -> None:
        self.plant("src/loop/a.h", "struct A { absl::flat_hash_map<std::string, int> by_name_; };\n")
        self.assert_clean("src/loop/a.cc", "void F() { Use(by_name_.find(k)); for (int i : sorted_) Use(i); }\n")

    def test_comments_and_literals_do_not_count(self) -> None:
        self.assert_clean(
            "src/core/a.cc",
            '// absl::Now() is not allowed\n/* #include "store/store.h" */\nauto s = "std::thread";\n'
            'auto r = R"x(absl::Now())x";\n')


class SourceText(repo_test.unittest.TestCase):
    def test_blanking_keeps_lines_and_columns(self) -> None:
        text = "int a = 1'000; // x\n/* y\n z */ char c = '\"'; f(\"a\\\"b\");\n"
        blanked = source_tree.without_comments_and_literals(text)
        self.assertEqual([len(line) for line in blanked.split("\n")], [len(line) for line in text.split("\n")])
        self.assertIn("int a = 1'000;", blanked)
        self.assertIn("char c =", blanked)
        self.assertNotIn("y", blanked)
        self.assertNotIn("b", blanked.split("f(")[1])


if __name__ == "__main__":
    repo_test.main()

"""Links between the documents lead somewhere. Generated pages are compared by the suites that generate them."""

import re

import repo_test
import source_tree

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def broken_links(root: repo_test.Path) -> list[str]:
    broken = []
    for path in source_tree.source_files(root):
        if not path.endswith(".md"):
            continue
        text = CODE_BLOCK.sub("", (root / path).read_text(encoding="utf-8"))
        for link in LINK.findall(text):
            if "://" not in link and not ((root / path).parent / link).exists():
                broken.append(f"{path}: {link}")
    return broken


class Links(repo_test.TreeTest):
    def test_all_lead_somewhere(self) -> None:
        self.assertEqual(broken_links(repo_test.ROOT), [])

    def test_a_broken_one_is_found(self) -> None:
        self.plant("docs/a.md", "[b](b.md) [c](../c.md#part) [d](https://example.org)\n```\n[e](e.md)\n```\n")
        self.plant("c.md", "\n")
        self.assertEqual(broken_links(self.tree), ["docs/a.md: b.md"])


if __name__ == "__main__":
    repo_test.main()

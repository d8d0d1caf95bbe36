#include "cli/ignore_rules.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_dir.h"

namespace tp::cli {
namespace {

namespace fs = std::filesystem;

bool Matches(std::string_view line, std::string_view path, bool is_directory = false) {
  const auto pattern = IgnorePattern::Parse(line);
  return pattern && pattern->Matches(path, is_directory);
}

TEST(IgnorePatternTest, LinesThatSayNothing) {
  for (const char* line : {"", "# comment", "#", "   ", "!", "/", "\r", "//"}) EXPECT_FALSE(Matches(line, "a")) << line;
  EXPECT_TRUE(Matches("\\#a", "#a"));
  EXPECT_TRUE(Matches("\\!a", "!a"));
}

TEST(IgnorePatternTest, NamesMatchAtAnyDepthPathsOnlyWhereTheyStand) {
  EXPECT_TRUE(Matches("a", "x/y/a"));
  EXPECT_FALSE(Matches("/a", "x/a"));
  EXPECT_TRUE(Matches("/a", "a"));
  EXPECT_TRUE(Matches("x/a", "x/a"));
  EXPECT_FALSE(Matches("x/a", "y/x/a"));
  EXPECT_TRUE(Matches("**/x/a", "y/x/a"));
  EXPECT_FALSE(Matches("a/", "a"));
  EXPECT_TRUE(Matches("a/", "x/a", true));
}

TEST(IgnorePatternTest, Wildcards) {
  EXPECT_TRUE(Matches("*.log", "x/.log"));
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("x/*", "x/y/z"));
  EXPECT_TRUE(Matches("x/**", "x/y/z"));
  EXPECT_FALSE(Matches("x/**", "x", true));
  EXPECT_TRUE(Matches("x/**/z", "x/z"));
  EXPECT_TRUE(Matches("x/**/z", "x/1/2/z"));
  EXPECT_FALSE(Matches("x/**/z", "xz"));
  EXPECT_TRUE(Matches("[a-c]", "b"));
  EXPECT_TRUE(Matches("[!a-c]", "d"));
  EXPECT_TRUE(Matches("[^a-c]", "d"));
  EXPECT_TRUE(Matches("[]-]", "]"));
  EXPECT_TRUE(Matches("[[:digit:][:upper:]]", "7"));
  EXPECT_FALSE(Matches("[[:nonsense:]]", "n"));
  EXPECT_FALSE(Matches("[a", "[a"));
  EXPECT_FALSE(Matches("a\\", "a\\"));
  EXPECT_TRUE(Matches("a\\*", "a*"));
}

TEST(IgnorePatternTest, SpacesAtTheEnd) {
  EXPECT_TRUE(Matches("a  ", "a"));
  EXPECT_TRUE(Matches("a\\ ", "a "));
  EXPECT_TRUE(Matches("a\\  ", "a "));
  EXPECT_TRUE(Matches("a\t", "a\t"));
  EXPECT_TRUE(Matches("a\r", "a"));
  EXPECT_TRUE(Matches(" a", " a"));
}

TEST(IgnorePatternTest, ManyStarsCostLittle) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  EXPECT_FALSE(Matches(pattern + "b", std::string(250, 'a')));
}

// --- Against git ----------------------------------------------------------------------------------

// Trees and rules that meet in the same few names.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  // Files by path relative to `root`, and an ignore file in some directories.
  void MakeTree(const fs::path& root) {
    MakeDirectory(root, 0);
    std::ofstream(root / ".gitignore", std::ios::binary) << Rules();
  }

 private:
  size_t Pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  bool Chance(size_t percent) { return Pick(100) < percent; }
  template <size_t N>
  std::string OneOf(const char* const (&choices)[N]) {
    return choices[Pick(N)];
  }

  std::string Name() {
    return OneOf({"a", "b",   "ab", "abc", "foo", "bar",  "foo.o", "a.log", ".log", "x y",       "b ",
                  "A", "[a]", "a*", "-",   "]",   "a\\b", "!a",    "#a",    "7",    "f\xc3\xb6", "\xff"});
  }

  void MakeDirectory(const fs::path& directory, int depth) {
    fs::create_directories(directory);
    for (size_t i = 0, count = 2 + Pick(4); i < count; ++i) {
      const fs::path path = directory / Name();
      if (fs::symlink_status(path).type() != fs::file_type::not_found) continue;
      if (depth < 3 && Chance(45)) {
        MakeDirectory(path, depth + 1);
      } else if (Chance(8)) {
        fs::create_symlink("nowhere", path);
      } else {
        std::ofstream(path, std::ios::binary).put('x');
      }
    }
    if (Chance(25)) std::ofstream(directory / ".gitignore", std::ios::binary) << Rules();
  }

  std::string Rules() {
    std::string rules = Chance(3) ? "\xEF\xBB\xBF" : "";
    for (size_t i = 0, count = 1 + Pick(5); i < count; ++i) rules += Line() + (Chance(5) ? "\r\n" : "\n");
    if (Chance(10)) rules.pop_back();
    return rules;
  }

  std::string Line() {
    std::string line = Chance(25) ? "!" : "";
    if (Chance(20)) line += "/";
    line += Part();
    while (Chance(35)) line += (Chance(90) ? "/" : "\\/") + Part();
    if (Chance(20)) line += "/";
    if (Chance(8)) line += OneOf({" ", "  ", "\\ ", "\\", "\t"});
    if (Chance(3)) line = OneOf({"", "#a", "# foo", "!", "/", "**", "*", "//", "**/", "/**", "!/", "\\!a", "\\#a"});
    return line;
  }

  std::string Part() {
    if (Chance(30)) return Name();
    if (Chance(20)) return OneOf({"**", "*", "***", "a**", "**a", "?", "??"});
    std::string part;
    for (size_t i = 0, count = 1 + Pick(3); i < count; ++i) part += Token();
    return part;
  }

  std::string Token() {
    return OneOf(
        {"a",         "b",         "c",     "foo",   ".",        "log",         "*",     "*",           "?",
         "[ab]",      "[!a]",      "[^b]",  "[a-c]", "[]]",      "[]-a]",       "[a-]",  "[[:alpha:]]", "[[:digit:]x]",
         "[[:bad:]]", "[[:alpha]", "[",     "]",     "\\a",      "\\*",         "\\[",   "\\\\",        "[\\]]",
         "[\\a-c]",   "[!]a-]",    "[a/b]", " ",     "\xc3\xb6", "[\xc3-\xff]", "[c-a]", "[[a]",        "[--/]"});
  }

  std::mt19937 random_;
};

std::string ReadWhole(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// What stays out, as our rules see it, and every path that was asked about.
class Walk {
 public:
  explicit Walk(const fs::path& root) : root_(root) { Enter("", false); }

  const std::vector<std::string>& all() const { return all_; }
  const std::set<std::string>& left_out() const { return left_out_; }

 private:
  // In a directory that is left out everything is.
  void Enter(const std::string& prefix, bool parent_left_out) {
    const fs::path rules_file = root_ / prefix / ".gitignore";
    rules_.Enter(prefix, fs::exists(rules_file) ? ReadWhole(rules_file) : "");
    for (const auto& entry : fs::directory_iterator(root_ / prefix)) {
      const std::string path = prefix + entry.path().filename().string();
      const bool is_directory = entry.is_directory() && !entry.is_symlink();
      const bool left_out = parent_left_out || rules_.LeftOutBy(path, is_directory);
      all_.push_back(path);
      if (left_out) left_out_.insert(path);
      if (is_directory) Enter(path + "/", left_out);
    }
    rules_.Leave();
  }

  const fs::path root_;
  IgnoreRules rules_{{}};
  std::vector<std::string> all_;
  std::set<std::string> left_out_;
};

std::set<std::string> LeftOutByGit(const std::string& repository, const std::vector<std::string>& paths) {
  const std::string in = repository + "/.git/paths";
  const std::string out = repository + "/.git/ignored";
  {
    std::ofstream file(in, std::ios::binary);
    for (const std::string& path : paths) file << path << '\0';
  }
  const std::string command = fmt::format(
      "cd {} && GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent git -c core.excludesFile=/dev/null check-ignore "
      "--no-index -z --stdin <.git/paths >.git/ignored",
      repository);
  const int result = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) <= 1) << "git check-ignore: " << result;
  std::set<std::string> ignored;
  std::istringstream text(ReadWhole(out));
  for (std::string path; std::getline(text, path, '\0');) ignored.insert(path);
  return ignored;
}

// 400 trees of some 30 paths each, with rules at several depths.
TEST(IgnoreRulesTest, AgreesWithGitOnGeneratedTrees) {
  ASSERT_EQ(std::system("git --version >/dev/null"), 0) << "this test asks git";
  const TempDir repository;
  ASSERT_EQ(std::system(fmt::format("git init -q {}", repository.path()).c_str()), 0);
  constexpr unsigned kTrees = 400;
  std::vector<std::string> paths;
  std::set<std::string> ours;
  for (unsigned seed = 1; seed <= kTrees; ++seed) {
    const std::string tree = fmt::format("tree{}", seed);
    Generator(seed).MakeTree(repository / tree);
    const Walk walk(repository / tree);
    for (const std::string& path : walk.all()) paths.push_back(tree + "/" + path);
    for (const std::string& path : walk.left_out()) ours.insert(tree + "/" + path);
  }
  const std::set<std::string> gits = LeftOutByGit(repository.path(), paths);
  EXPECT_GT(paths.size(), 5000u);
  EXPECT_GT(gits.size(), paths.size() / 10) << "the rules should matter";
  EXPECT_LT(gits.size(), paths.size() * 9 / 10);
  int shown = 0;
  for (const std::string& path : paths) {
    if (ours.contains(path) == gits.contains(path) || ++shown > 10) continue;
    const std::string tree = path.substr(0, path.find('/'));
    ADD_FAILURE() << path << ": git " << (gits.contains(path) ? "leaves it out" : "keeps it") << "; rules:\n"
                  << ReadWhole(fs::path(repository / tree) / ".gitignore");
  }
}

}  // namespace
}  // namespace tp::cli

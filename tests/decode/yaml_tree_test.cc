#include "decode/yaml_tree.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/json_type.h"
#include "decode/scalar.h"

namespace tp::decode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> ProblemsOf(std::string_view text) {
  Problems problems("f");
  ParseYaml(text, problems);
  return problems.Lines();
}

nlohmann::json JsonOf(std::string_view text) {
  Problems problems("f");
  const auto root = ParseYaml(text, problems);
  nlohmann::json json;
  EXPECT_TRUE(root && JsonAny().decode(*root, problems, json)) << text;
  EXPECT_THAT(problems.Lines(), IsEmpty());
  return json;
}

TEST(YamlTree, EmptyFilesAreEmptyMappings) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "---\n# x\n...\n", "~", "\xEF\xBB\xBF"}) {
    EXPECT_EQ(JsonOf(text), nlohmann::json::object()) << text;
  }
}

TEST(YamlTree, ReadsTheYamlThatPeopleWrite) {
  EXPECT_EQ(
      JsonOf(
          "a: 1\nb: [x, \"y\", 'it''s', 2.5]\nc:\n  - d: true\n    e: null\n  - ~\nf: |\n  two\n  lines\ng: {h: -3}\n"),
      nlohmann::json::parse(
          R"({"a":1,"b":["x","y","it's",2.5],"c":[{"d":true,"e":null},null],"f":"two\nlines\n","g":{"h":-3}})"));
  EXPECT_EQ(JsonOf("a: 1\r\nb: x\r\n"), nlohmann::json::parse(R"({"a":1,"b":"x"})"));
  EXPECT_EQ(JsonOf("\xEF\xBB\xBF"
                   "a: gr\xc3\xbc\xc3\x9f\n"),
            nlohmann::json::parse("{\"a\":\"gr\xc3\xbc\xc3\x9f\"}"));
  EXPECT_EQ(JsonOf("a: 1\n...\n"), nlohmann::json::parse(R"({"a":1})"));
}

TEST(YamlTree, ScalarsAreWhatTheyLookLike) {
  const auto kind = [](const char* text, bool quoted = false) {
    YamlValue value;
    value.kind = YamlValue::Kind::kScalar;
    value.text = text;
    value.quoted = quoted;
    return ScalarKindOf(value);
  };
  for (const char* text : {"0", "8", "-3", "9223372036854775807", "99999999999999999999"}) {
    EXPECT_EQ(kind(text), ScalarKind::kInteger) << text;
  }
  for (const char* text : {"0.5", "1.", ".5", "1e3", "-1.5E-7", "1.20"})
    EXPECT_EQ(kind(text), ScalarKind::kFloat) << text;
  for (const char* text :
       {"yes", "No", "ON", "off", "y", "N", "True", "FALSE", "0x1F", "0o17", "007", "+1", ".inf", "-.INF", ".nan"}) {
    EXPECT_EQ(kind(text), ScalarKind::kAmbiguous) << text;
  }
  for (const char* text : {"", "x", "-", ".", "1e", "1.2.3", "10.0.0.1", "12h", "0xyz", "nan", "1_000", "--1", "e3"}) {
    EXPECT_EQ(kind(text), ScalarKind::kText) << text;
  }
  EXPECT_EQ(kind("true"), ScalarKind::kBoolean);
  EXPECT_EQ(kind("true", true), ScalarKind::kText);
  EXPECT_EQ(kind("8", true), ScalarKind::kText);
}

TEST(YamlTree, FreeTextIsRefusedWhereReadersDisagree) {
  Problems problems("f");
  const auto root = ParseYaml("a: yes\nb: 007\nc: 99999999999999999999\nd: 1e999\n", problems);
  nlohmann::json json;
  EXPECT_FALSE(JsonAny().decode(*root, problems, json));
  EXPECT_THAT(
      problems.Lines(),
      ElementsAre("f:1:4: 'yes' means different things to different readers; write true, false or a plain decimal "
                  "number, or put it in quotes",
                  "f:2:4: '007' means different things to different readers; write true, false or a plain decimal "
                  "number, or put it in quotes",
                  "f:3:4: the number 99999999999999999999 is too large for 64 bits; put it in quotes",
                  "f:4:4: the number 1e999 is too large; put it in quotes"));
}

TEST(YamlTree, MergesDeeplyAndReplacesLists) {
  const auto base = nlohmann::json::parse(R"({"a":{"b":1,"c":[1,2]},"d":1})");
  const auto layer = nlohmann::json::parse(R"({"a":{"c":[3],"e":{"f":2}},"d":{"g":1}})");
  EXPECT_EQ(DeepMerge(base, layer), nlohmann::json::parse(R"({"a":{"b":1,"c":[3],"e":{"f":2}},"d":{"g":1}})"));
}

TEST(YamlTree, OnlyTheFirstProblemsAreShown) {
  std::string text = "a: 1\n";
  for (int i = 0; i < 110; ++i) text += "a: 1\n";
  const auto lines = ProblemsOf(text);
  ASSERT_EQ(lines.size(), 101u);
  EXPECT_EQ(lines.front(), "f:2:1: key 'a' is here twice; first on line 1");
  EXPECT_EQ(lines.back(), "f: and 10 more");
}

// --- Limits: none of these may take long or run out of stack ------------------------------------------

std::string Repeated(std::string_view piece, size_t bytes) {
  std::string out;
  while (out.size() + piece.size() <= bytes) out += piece;
  return out;
}

TEST(YamlTree, HugeAndDeepFilesAreRefusedQuickly) {
  constexpr size_t kFull = size_t{1} << 20;
  EXPECT_THAT(ProblemsOf(std::string(kFull + 1, '#')),
              ElementsAre("f:1:1: a file of more than 1048576 bytes is refused"));
  EXPECT_THAT(ProblemsOf(Repeated("[", kFull)), SizeIs(1));
  EXPECT_THAT(ProblemsOf(Repeated("{a: ", kFull)), SizeIs(1));
  EXPECT_THAT(ProblemsOf(Repeated("[", 33) + Repeated("]", 33)),
              ElementsAre("f:1:33: nested more than 32 levels deep"));
  EXPECT_THAT(ProblemsOf(Repeated("[", 32) + Repeated("]", 32)), IsEmpty());
  EXPECT_THAT(ProblemsOf(Repeated("- ", kFull)), ElementsAre("f:1:65: nested more than 32 levels deep"));
  EXPECT_THAT(ProblemsOf("[" + Repeated("\"\",", kFull - 2) + "]"), IsEmpty());
  std::string keys;
  for (int i = 0; keys.size() < kFull - 16; ++i) keys += fmt::format("k{}: 1\n", i);
  EXPECT_THAT(ProblemsOf(keys), IsEmpty());
}

TEST(YamlTree, SurvivesDamagedFiles) {
  const std::string good =
      "# c\nseries:\n  h200: {gpus_per_node: 8, env: {A: \"x\\n\", B: 'y'}}\n  \"q\":\n    - |\n      block\n    - "
      ">-\n      f\n";
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (size_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() & 0xFFu);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, "{}[]:,-?&*!|>'\"%@`#\t\n "[random() % 23]);
          break;
      }
      if (text.empty()) break;
    }
    for (const std::string& line : ProblemsOf(text)) ASSERT_THAT(line, HasSubstr("f:")) << text;
  }
}

}  // namespace
}  // namespace tp::decode

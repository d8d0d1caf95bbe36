// The corpus of faulty files: for each NAME.yaml exactly what is said about it, in NAME.expected.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "config/load.h"

namespace tp::config {
namespace {

const std::filesystem::path kCorpus = TP_SOURCE_DIR "/tests/config/faulty";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> CasesOf(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / kind)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string CaseName(const testing::TestParamInfo<std::string>& name) { return name.param; }

void ExpectRefusal(const Sources& sources, const std::filesystem::path& expected) {
  const auto loaded = Load(sources);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(Message(loaded.status())) + "\n", ReadFile(expected));
}

class FaultyServerFile : public testing::TestWithParam<std::string> {};

TEST_P(FaultyServerFile, IsRefused) {
  const std::filesystem::path stem = kCorpus / "server" / GetParam();
  ExpectRefusal({.server = {"tpd.yaml", ReadFile(stem.string() + ".yaml")},
                 .registry = {"registry.yaml", std::string(kEmbeddedRegistryFile)}},
                stem.string() + ".expected");
}

INSTANTIATE_TEST_SUITE_P(Corpus, FaultyServerFile, testing::ValuesIn(CasesOf("server")), CaseName);

class FaultyRegistryFile : public testing::TestWithParam<std::string> {};

TEST_P(FaultyRegistryFile, IsRefused) {
  const std::filesystem::path stem = kCorpus / "registry" / GetParam();
  ExpectRefusal({.server = {"tpd.yaml", ReadFile(kCorpus / "executors.yaml")},
                 .registry = {"registry.yaml", ReadFile(stem.string() + ".yaml")}},
                stem.string() + ".expected");
}

INSTANTIATE_TEST_SUITE_P(Corpus, FaultyRegistryFile, testing::ValuesIn(CasesOf("registry")), CaseName);

TEST(FaultyFiles, AreAtLeastSixty) { EXPECT_GE(CasesOf("server").size() + CasesOf("registry").size(), 60u); }

// What a text file of the corpus cannot hold.
TEST(FaultyFiles, OddBytesAreRefused) {
  const auto said = [](const std::string& text) {
    const auto loaded = Load({.server = {"tpd.yaml", text}, .registry = {"registry.yaml", ""}});
    return std::string(Message(loaded.status()));
  };
  EXPECT_EQ(said("server:\n\tdeployment: tp\n"), "tpd.yaml:2:12: this line is indented with a tab; use spaces");
  EXPECT_EQ(said("server:\n  deployment: \"\xff\"\n"), "tpd.yaml:2:16: a byte that is not UTF-8 text");
  EXPECT_EQ(said(std::string("server:\n  a\0b: c\n", 17)), "tpd.yaml:2:4: a byte that is not UTF-8 text");
}

}  // namespace
}  // namespace tp::config

// A configuration directory of a test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tp::tpd {

class ConfigDirectory : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tp_tpd_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    config_ = root_ / "config";
    std::filesystem::create_directory(config_);
    Write("tpd.yaml", "jobs: {heartbeat: 5s}\n");
    Write("registry.yaml", Registry(1));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static std::string Registry(int cards) {
    return "series:\n  a: {gpus_per_node: " + std::to_string(cards) + ", nodes: [n1]}\n";
  }

  static void WriteTo(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  void Write(const std::string& name, const std::string& text) const { WriteTo(config_ / name, text); }

  std::filesystem::path root_;
  std::filesystem::path config_;
};

}  // namespace tp::tpd

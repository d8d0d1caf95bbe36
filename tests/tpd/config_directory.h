// A configuration directory of a test's own.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/launch/temp_dir.h"

namespace tp::tpd {

class ConfigDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(config_);
    Write("tpd.yaml", "jobs: {heartbeat: 5s}\n");
    Write("registry.yaml", Registry(1));
  }

  static std::string Registry(int cards) {
    return "series:\n  a: {gpus_per_node: " + std::to_string(cards) + ", nodes: [n1]}\n";
  }

  static void WriteTo(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
  void Write(const std::string& name, const std::string& text) const { WriteTo(config_ / name, text); }

  const testing::TempDir directory_;
  const std::filesystem::path root_ = directory_.path();
  const std::filesystem::path config_ = root_ / "config";
};

}  // namespace tp::tpd

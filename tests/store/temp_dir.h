// A directory of the test's own, gone with it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace tp::store {

class TempDir {
 public:
  TempDir() {
    std::string pattern = testing::TempDir() + "/tp-store-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string At(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tp::store

// A directory for one test.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace tp::api {

class TempDir {
 public:
  TempDir() : path_(testing::TempDir() + "/tp-api-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string At(const std::string& relative) const { return path_ + "/" + relative; }

  // Makes the folders that are missing.
  void Write(const std::string& relative, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(At(relative)).parent_path());
    std::ofstream(At(relative), std::ios::binary) << content;
  }
  void Append(const std::string& relative, const std::string& content) const {
    std::ofstream(At(relative), std::ios::binary | std::ios::app) << content;
  }

 private:
  std::string path_;
};

}  // namespace tp::api

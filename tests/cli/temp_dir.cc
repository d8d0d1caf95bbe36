#include "temp_dir.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace tp::cli {

TempDir::TempDir() : path_(testing::TempDir() + "/tp-cli-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TempDir::Write(std::string_view name, std::string_view content, unsigned mode) const {
  const std::string file = *this / name;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file, std::ios::binary) << content;
  ASSERT_EQ(::chmod(file.c_str(), mode), 0);
}

void TempDir::Link(std::string_view name, const std::string& target) const {
  std::filesystem::create_symlink(target, *this / name);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace tp::cli

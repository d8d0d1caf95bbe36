// A directory of a test's own, gone with it.
#pragma once

#include <string>
#include <string_view>

namespace tp::cli {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Makes the directories on the way.
  void Write(std::string_view name, std::string_view content, unsigned mode = 0644) const;
  void Link(std::string_view name, const std::string& target) const;

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

}  // namespace tp::cli

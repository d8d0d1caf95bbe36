// What is wrong with a configuration file, and exactly where.
#pragma once

#include <compare>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace tp::decode {

// Counted from 1; columns in bytes.
struct Position {
  int line = 1;
  int column = 1;
  auto operator<=>(const Position&) const = default;
};

struct Problem {
  Position at;
  std::string sentence;
};

// The problems of one file. Decoding goes on after one, so that an admin sees them together.
class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void Add(Position at, std::string sentence) { problems_.push_back({at, std::move(sentence)}); }
  bool any() const { return !problems_.empty(); }
  size_t count() const { return problems_.size(); }

  // `file:line:column: sentence` for each of the first ones, in the order of the file.
  std::vector<std::string> Lines() const;

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

// OK without problems, else INVALID_ARGUMENT with one line each.
absl::Status ToStatus(const std::vector<const Problems*>& files);

}  // namespace tp::decode

// One line of an ignore file, with the meaning it has in a .gitignore.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tp::cli {

// A glob of fnmatch's kind, compiled; matching takes time in proportion to pattern times text.
class Glob {
 public:
  // With `by_parts`, `*`, `?` and classes stop at a `/`, and `**` between slashes stands for any number of
  // parts.
  Glob(std::string_view pattern, bool by_parts);

  bool Matches(std::string_view text) const;

 private:
  enum class Kind : uint8_t {
    kByte,
    kSet,
    kRun,     // any number of bytes of the set
    kBranch,  // goes on with the next token, or three tokens further
  };
  struct Token {
    Kind kind = Kind::kByte;
    char byte = 0;
    std::bitset<256> set;
  };

  // Each appends what stands at `at` and moves it on. False: the pattern is malformed and matches nothing.
  bool AppendEscaped(std::string_view pattern, size_t* at);
  bool AppendClass(std::string_view pattern, size_t* at);
  void AppendStars(std::string_view pattern, size_t* at);

  void Append(Kind kind, const std::bitset<256>& set) { tokens_.push_back({kind, 0, set}); }
  void AppendByte(char byte) { tokens_.push_back({Kind::kByte, byte, {}}); }
  void Enter(size_t token, std::vector<bool>* states) const;

  const bool by_parts_;
  bool malformed_ = false;
  std::bitset<256> any_;  // what a wildcard takes
  std::vector<Token> tokens_;
};

class IgnorePattern {
 public:
  // Nothing for an empty line or a comment.
  static std::optional<IgnorePattern> Parse(std::string_view line);

  // `path` is relative to the directory of the pattern's file.
  bool Matches(std::string_view path, bool is_directory) const;

  bool negated() const { return negated_; }
  // As written, without what does not count.
  const std::string& text() const { return text_; }

 private:
  IgnorePattern() = default;

  std::string text_;
  bool negated_ = false;
  bool directories_only_ = false;
  bool whole_path_ = false;   // else the last part alone
  std::string literal_;       // what the text has to begin with
  std::optional<Glob> rest_;  // what follows; nothing: nothing follows
};

}  // namespace tp::cli

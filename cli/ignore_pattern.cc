#include "cli/ignore_pattern.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tp::cli {
namespace {

using Set = std::bitset<256>;

constexpr std::string_view kSpecial = "*?[\\";

size_t Index(char byte) { return static_cast<unsigned char>(byte); }

// --- Classes --------------------------------------------------------------------------------------

void AddRange(char first, char last, Set* set) {
  for (size_t byte = Index(first); byte <= Index(last); ++byte) set->set(byte);
}

Set SetOf(std::initializer_list<std::pair<char, char>> ranges) {
  Set set;
  for (const auto& [first, last] : ranges) AddRange(first, last, &set);
  return set;
}

// [:NAME:] of the C locale.
std::optional<Set> NamedSet(std::string_view name) {
  const std::array<std::pair<std::string_view, Set>, 12> sets = {{
      {"alnum", SetOf({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}})},
      {"alpha", SetOf({{'A', 'Z'}, {'a', 'z'}})},
      {"blank", SetOf({{' ', ' '}, {'\t', '\t'}})},
      {"cntrl", SetOf({{'\x00', '\x1f'}, {'\x7f', '\x7f'}})},
      {"digit", SetOf({{'0', '9'}})},
      {"graph", SetOf({{'!', '~'}})},
      {"lower", SetOf({{'a', 'z'}})},
      {"print", SetOf({{' ', '~'}})},
      {"punct", SetOf({{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}})},
      {"space", SetOf({{' ', ' '}, {'\t', '\r'}})},
      {"upper", SetOf({{'A', 'Z'}})},
      {"xdigit", SetOf({{'0', '9'}, {'A', 'F'}, {'a', 'f'}})},
  }};
  for (const auto& [known, set] : sets) {
    if (known == name) return set;
  }
  return std::nullopt;
}

// Reads what stands between `[` and `]`.
class ClassReader {
 public:
  ClassReader(std::string_view pattern, size_t at) : pattern_(pattern), at_(at) {}

  // The set, and in `end` the place behind the `]`.
  std::optional<Set> Read(size_t* end) {
    const bool negated = Peek() == '!' || Peek() == '^';
    if (negated) ++at_;
    // A `]` that comes first is a member.
    for (bool first = true; first || Peek() != ']'; first = false) {
      if (!ReadMember()) return std::nullopt;
    }
    *end = at_ + 1;
    return negated ? ~set_ : set_;
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }

  bool ReadMember() {
    if (at_ >= pattern_.size()) return false;
    if (Peek() == '[' && Peek(1) == ':') return ReadNamed();
    if (Peek() == '-' && before_ != '\0' && Peek(1) != '\0' && Peek(1) != ']') return ReadRange();
    const std::optional<char> byte = ReadByte();
    if (!byte) return false;
    set_.set(Index(*byte));
    before_ = *byte;
    return true;
  }

  std::optional<char> ReadByte() {
    if (Peek() == '\\') ++at_;
    if (at_ >= pattern_.size()) return std::nullopt;
    return pattern_[at_++];
  }

  bool ReadRange() {
    ++at_;
    const std::optional<char> last = ReadByte();
    if (!last) return false;
    AddRange(before_, *last, &set_);
    before_ = '\0';
    return true;
  }

  bool ReadNamed() {
    const size_t name = at_ + 2;
    const size_t bracket = pattern_.find(']', name);
    if (bracket == std::string_view::npos) return false;
    if (bracket == name || pattern_[bracket - 1] != ':') {  // only a `[`
      set_.set(Index('['));
      before_ = '[';
      ++at_;
      return true;
    }
    const auto named = NamedSet(pattern_.substr(name, bracket - 1 - name));
    if (!named) return false;
    set_ |= *named;
    before_ = '\0';
    at_ = bracket + 1;
    return true;
  }

  const std::string_view pattern_;
  size_t at_;
  Set set_;
  char before_ = '\0';  // what a `-` would begin a range with
};

}  // namespace

// --- Glob -----------------------------------------------------------------------------------------

Glob::Glob(std::string_view pattern, bool by_parts) : by_parts_(by_parts) {
  any_.set();
  if (by_parts_) any_.reset(Index('/'));
  for (size_t at = 0; at < pattern.size() && !malformed_;) {
    switch (pattern[at]) {
      case '\\':
        malformed_ = !AppendEscaped(pattern, &at);
        break;
      case '?':
        Append(Kind::kSet, any_);
        ++at;
        break;
      case '*':
        AppendStars(pattern, &at);
        break;
      case '[':
        malformed_ = !AppendClass(pattern, &at);
        break;
      default:
        AppendByte(pattern[at++]);
    }
  }
}

bool Glob::AppendEscaped(std::string_view pattern, size_t* at) {
  if (*at + 1 >= pattern.size()) return false;
  AppendByte(pattern[*at + 1]);
  *at += 2;
  return true;
}

bool Glob::AppendClass(std::string_view pattern, size_t* at) {
  const auto set = ClassReader(pattern, *at + 1).Read(at);
  if (!set) return false;
  Append(Kind::kSet, *set & any_);
  return true;
}

void Glob::AppendStars(std::string_view pattern, size_t* at) {
  const size_t first = *at;
  while (*at < pattern.size() && pattern[*at] == '*') ++*at;
  const std::string_view rest = pattern.substr(*at);
  const bool alone =
      (first == 0 || pattern[first - 1] == '/') && (rest.empty() || rest.front() == '/' || rest.starts_with("\\/"));
  if (!by_parts_ || *at - first < 2 || !alone) return Append(Kind::kRun, any_);
  const Set all = ~Set();
  if (!rest.starts_with('/')) return Append(Kind::kRun, all);
  // `**/`: any parts with their slash, or none at all.
  Append(Kind::kBranch, {});
  Append(Kind::kRun, all);
  AppendByte('/');
  ++*at;
}

// Adds the state, and those that are reached from it without a byte.
void Glob::Enter(size_t token, std::vector<bool>* states) const {
  while (!(*states)[token]) {
    (*states)[token] = true;
    if (token == tokens_.size()) return;
    const Kind kind = tokens_[token].kind;
    if (kind == Kind::kBranch) Enter(token + 3, states);
    if (kind != Kind::kBranch && kind != Kind::kRun) return;
    ++token;
  }
}

bool Glob::Matches(std::string_view text) const {
  if (malformed_) return false;
  std::vector<bool> states(tokens_.size() + 1);
  std::vector<bool> next(tokens_.size() + 1);
  Enter(0, &states);
  for (const char byte : text) {
    next.assign(next.size(), false);
    for (size_t token = 0; token < tokens_.size(); ++token) {
      if (!states[token]) continue;
      const Token& at = tokens_[token];
      if (at.kind == Kind::kByte && at.byte == byte) Enter(token + 1, &next);
      if (at.kind == Kind::kSet && at.set[Index(byte)]) Enter(token + 1, &next);
      if (at.kind == Kind::kRun && at.set[Index(byte)]) Enter(token, &next);
    }
    states.swap(next);
  }
  return states[tokens_.size()];
}

// --- Lines ----------------------------------------------------------------------------------------

namespace {

// Spaces at the end do not count unless a backslash stands before them.
std::string_view WithoutTrailingSpaces(std::string_view line) {
  size_t end = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\') {
      at = std::min(at + 1, line.size());
      end = std::min(at + 1, line.size());
    } else if (line[at] != ' ') {
      end = at + 1;
    }
  }
  return line.substr(0, end);
}

}  // namespace

std::optional<IgnorePattern> IgnorePattern::Parse(std::string_view line) {
  if (line.empty() || line.front() == '#') return std::nullopt;
  if (line.ends_with('\r')) line.remove_suffix(1);
  line = WithoutTrailingSpaces(line);
  IgnorePattern pattern;
  pattern.text_ = line;
  if (line.starts_with('!')) {
    pattern.negated_ = true;
    line.remove_prefix(1);
  }
  if (line.ends_with('/')) {
    pattern.directories_only_ = true;
    line.remove_suffix(1);
  }
  if (line.empty()) return std::nullopt;
  pattern.whole_path_ = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  const size_t special = std::min(line.find_first_of(kSpecial), line.size());
  pattern.literal_ = line.substr(0, special);
  if (special < line.size()) {
    // git compares the beginning up to the first wildcard by itself, and so `a**/b` is `a` and then `**/b`.
    pattern.rest_.emplace(line.substr(special), pattern.whole_path_);
  }
  return pattern;
}

bool IgnorePattern::Matches(std::string_view path, bool is_directory) const {
  if (directories_only_ && !is_directory) return false;
  std::string_view text = path;
  if (!whole_path_) {
    const size_t slash = path.rfind('/');
    if (slash != std::string_view::npos) text.remove_prefix(slash + 1);
  }
  if (!text.starts_with(literal_)) return false;
  text.remove_prefix(literal_.size());
  return rest_ ? rest_->Matches(text) : text.empty();
}

}  // namespace tp::cli

#include "decode/yaml_tree.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "decode/scalar.h"

namespace tp::decode {
namespace {

constexpr size_t kMaxDepth = 32;
constexpr std::string_view kNoAliases = "aliases (*name) are not supported; write the value out";

Position ToPosition(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Thrown through yaml-cpp's parser, which has no other way to be stopped; never leaves this file.
struct Refused {
  Position at;
  std::string sentence;
};

Position PositionOf(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = newline == std::string_view::npos ? offset : offset - newline - 1;
  return {static_cast<int>(line), static_cast<int>(column) + 1};
}

std::vector<size_t> LineStarts(std::string_view text) {
  std::vector<size_t> starts = {0};
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    starts.push_back(at + 1);
  return starts;
}

// yaml-cpp takes the end of the file for the end of a quoted scalar.
bool ClosesItsQuote(std::string_view scalar) {
  const char quote = scalar.empty() ? '\0' : scalar[0];
  if (quote != '"' && quote != '\'') return true;
  for (size_t i = 1; i < scalar.size(); ++i) {
    if (quote == '"' && scalar[i] == '\\') {
      ++i;
    } else if (scalar[i] == quote) {
      if (quote == '"' || i + 1 == scalar.size() || scalar[i + 1] != '\'') return true;
      ++i;
    }
  }
  return false;
}

// Builds the tree from the parser's events, which, unlike yaml-cpp's own nodes, still tell duplicate
// keys, anchors and tags.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, Problems& problems)
      : text_(text), line_starts_(LineStarts(text)), problems_(problems) {}

  std::optional<YamlValue> Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) throw Refused{ToPosition(mark), "a second document begins here; a file holds one"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlValue value;
    value.at = ToPosition(mark);
    Place(std::move(value));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{ToPosition(mark), std::string(kNoAliases)};
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    throw Refused{ToPosition(mark), "anchors (&name) are not supported; write the value out where it is needed"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, const std::string& text) override {
    RefuseTag(mark, tag);
    YamlValue value;
    value.kind = YamlValue::Kind::kScalar;
    value.at = ToPosition(mark);
    value.text = text;
    value.quoted = tag == "!";
    if (value.quoted && !ClosesItsQuote(TextFrom(value.at))) {
      throw Refused{value.at, "this quote is never closed"};
    }
    Place(std::move(value));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, YamlValue::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open(mark, tag, YamlValue::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  // A list or mapping that is not finished, and the key that waits for its value.
  struct Level {
    YamlValue value;
    std::optional<YamlKey> key;
    std::map<std::string, int> lines;  // of the keys so far
  };

  std::string_view TextFrom(Position at) const {
    const size_t line = std::min(static_cast<size_t>(at.line), line_starts_.size()) - 1;
    return text_.substr(std::min(text_.size(), line_starts_[line] + static_cast<size_t>(at.column) - 1));
  }

  static void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!" && !tag.empty()) {
      throw Refused{ToPosition(mark), "tags (!name) are not supported; leave it out"};
    }
  }

  bool AwaitsKey() const {
    return !open_.empty() && open_.back().value.kind == YamlValue::Kind::kMap && !open_.back().key;
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YamlValue::Kind kind) {
    RefuseTag(mark, tag);
    if (AwaitsKey()) throw Refused{ToPosition(mark), "a key is plain text, not a list or a mapping"};
    if (open_.size() == kMaxDepth) {
      throw Refused{ToPosition(mark), fmt::format("nested more than {} levels deep", kMaxDepth)};
    }
    Level level;
    level.value.kind = kind;
    level.value.at = ToPosition(mark);
    open_.push_back(std::move(level));
  }

  void Close() {
    YamlValue value = std::move(open_.back().value);
    open_.pop_back();
    Place(std::move(value));
  }

  void Place(YamlValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (AwaitsKey()) {
      PlaceKey(value);
    } else if (Level& level = open_.back(); level.value.kind == YamlValue::Kind::kMap) {
      // The parser sees that a value is missing only at what follows.
      if (value.kind == YamlValue::Kind::kNull && value.at.line != level.key->at.line) value.at = level.key->at;
      level.value.entries.push_back({*std::move(level.key), std::move(value)});
      level.key.reset();
    } else {
      level.value.items.push_back(std::move(value));
    }
  }

  void PlaceKey(YamlValue& value) {
    if (value.kind == YamlValue::Kind::kNull) throw Refused{value.at, "a key is missing here"};
    if (value.text == "<<" && !value.quoted) throw Refused{value.at, "merge keys (<<) are not supported"};
    Level& level = open_.back();
    if (const auto [first, added] = level.lines.try_emplace(value.text, value.at.line); !added) {
      problems_.Add(value.at, fmt::format("key {} is here twice; first on line {}", Quoted(value.text), first->second));
    }
    level.key = YamlKey{std::move(value.text), value.at};
  }

  std::string_view text_;
  std::vector<size_t> line_starts_;
  Problems& problems_;
  std::vector<Level> open_;
  std::optional<YamlValue> root_;
};

// yaml-cpp's words for the most common mistakes, in ours.
std::string SyntaxSentence(std::string_view message) {
  static const std::pair<std::string_view, std::string_view> kSentences[] = {
      {YAML::ErrorMsg::MAP_VALUE,
       "a ':' is out of place: check the indentation here and above, and put text with ': ' in quotes"},
      {YAML::ErrorMsg::END_OF_MAP, "this does not continue the mapping above: check the indentation"},
      {YAML::ErrorMsg::END_OF_SEQ, "this does not continue the list above: check the indentation"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a '{' is never closed"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a '[' is never closed"},
      {YAML::ErrorMsg::FLOW_END, "this closes a bracket that was never opened"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "text cannot begin with this character; put it in quotes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, kNoAliases},
  };
  for (const auto& [theirs, ours] : kSentences) {
    if (message == theirs) return std::string(ours);
  }
  return fmt::format("this is not YAML: {}", message);
}

bool IsIndentedByTab(std::string_view text, Position at) {
  const std::vector<size_t> starts = LineStarts(text);
  if (static_cast<size_t>(at.line) > starts.size()) return false;
  const std::string_view line = text.substr(starts[static_cast<size_t>(at.line) - 1]);
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

void AddSyntaxProblem(std::string_view text, const YAML::Exception& error, Problems& problems) {
  const Position at = ToPosition(error.mark);
  problems.Add(at,
               IsIndentedByTab(text, at) ? "this line is indented with a tab; use spaces" : SyntaxSentence(error.msg));
}

bool CheckBytes(std::string_view text, Problems& problems) {
  if (text.size() > kMaxFileBytes) {
    problems.Add({}, fmt::format("a file of more than {} bytes is refused", kMaxFileBytes));
    return false;
  }
  std::optional<size_t> bad = FirstInvalidUtf8(text);
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) bad = std::min(bad.value_or(nul), nul);
  if (bad) problems.Add(PositionOf(text, *bad), "a byte that is not UTF-8 text");
  return !bad;
}

}  // namespace

std::string Describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::kNull:
      return "nothing";
    case YamlValue::Kind::kList:
      return "a list";
    case YamlValue::Kind::kMap:
      return "a mapping";
    case YamlValue::Kind::kScalar:
      break;
  }
  switch (ScalarKindOf(value)) {
    case ScalarKind::kBoolean:
      return fmt::format("the boolean {}", value.text);
    case ScalarKind::kInteger:
    case ScalarKind::kFloat:
      return fmt::format("the number {}", value.text);
    case ScalarKind::kText:
    case ScalarKind::kAmbiguous:
      break;
  }
  return Quoted(value.text);
}

std::optional<YamlValue> ParseYaml(std::string_view text, Problems& problems) {
  if (!CheckBytes(text, problems)) return std::nullopt;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  TreeBuilder builder(text, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    problems.Add(refused.at, refused.sentence);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    AddSyntaxProblem(text, error, problems);
    return std::nullopt;
  }
  std::optional<YamlValue> root = builder.Take();
  if (root && root->kind != YamlValue::Kind::kNull) return root;
  YamlValue empty;
  empty.kind = YamlValue::Kind::kMap;
  return empty;
}

}  // namespace tp::decode

#include "decode/text_or_list.h"

namespace tp::decode {
namespace {

// `wrap` makes a list of the one text.
template <typename Wrap>
Type<std::vector<std::string>> TextOrList(const std::string& words, Wrap wrap) {
  const Type<std::string> one = Text("text");
  const Type<std::vector<std::string>> many = ListOf(Scalar("text"), "list of text");
  Type<std::vector<std::string>> type;
  type.words = words;
  type.schema = {{"anyOf", {one.schema, many.schema}}};
  type.decode = [=](const YamlValue& value, Problems& problems, std::vector<std::string>& out) {
    if (value.kind == YamlValue::Kind::kList) return many.decode(value, problems, out);
    std::string text;
    if (value.kind != YamlValue::Kind::kScalar) {
      AddMismatch(value, words, problems);
      return false;
    }
    if (!one.decode(value, problems, text)) return false;
    out = wrap(text);
    return true;
  };
  return type;
}

}  // namespace

Type<std::vector<std::string>> Command() {
  return TextOrList("a line for sh -c, or a list of words", [](const std::string& line) {
    return std::vector<std::string>{"sh", "-c", line};
  });
}

Type<std::vector<std::string>> ProfileFlags() {
  return TextOrList("a profile, or a list of them, each as in --profile",
                    [](const std::string& profile) { return std::vector<std::string>{profile}; });
}

}  // namespace tp::decode

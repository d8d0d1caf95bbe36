// yaml_to_json FILE...: each file as one line of JSON, as the configuration's own reader understands it;
// `null` for a file that is not such YAML.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "decode/json_type.h"

namespace {

nlohmann::json JsonOf(const char* path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  tp::decode::Problems problems(path);
  const auto root = tp::decode::ParseYaml(text, problems);
  nlohmann::json json;
  if (!root || problems.any() || !tp::decode::JsonAny().decode(*root, problems, json)) return nullptr;
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("%s\n", JsonOf(argv[i]).dump().c_str());
  return 0;
}

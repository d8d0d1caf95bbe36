// The configuration decoder on any bytes: it answers with a configuration or with sentences that name the
// file, and never reads beyond, hangs or throws. The first byte says which of the two files the rest is.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/status.h"
#include "config/difference.h"
#include "config/load.h"
#include "config/summary.h"

namespace {

[[noreturn]] void Fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

void CheckLines(std::string_view message) {
  if (message.empty()) Fail("a refusal without a word", "");
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    if (line.substr(0, 9) != "tpd.yaml:" && line.substr(0, 14) != "registry.yaml:") {
      Fail("a line without its place", std::string(line));
    }
    message.remove_prefix(std::min(message.size(), line.size() + 1));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool is_server = data[0] % 2 == 0;
  const std::string other(is_server ? tp::config::kEmbeddedRegistryFile : tp::config::kEmbeddedServerFile);
  tp::config::Sources sources;
  sources.server = {"tpd.yaml", is_server ? text : other};
  sources.registry = {"registry.yaml", is_server ? other : text};
  const auto loaded = tp::config::Load(sources);
  if (!loaded.ok()) {
    CheckLines(tp::Message(loaded.status()));
  } else if (!tp::config::Differences(loaded->registry, loaded->registry).empty()) {
    Fail("a registry that differs from itself", tp::config::Summary(*loaded));
  }
  return 0;
}

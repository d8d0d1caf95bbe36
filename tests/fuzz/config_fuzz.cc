// The configuration decoder on any bytes: it answers with a configuration or with sentences that name the
// file, and never reads beyond, hangs or throws. The first byte says which file the rest is: tpd.yaml,
// registry.yaml or a project's tp.yaml.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/project_file.h"
#include "config/difference.h"
#include "config/load.h"
#include "config/summary.h"

namespace {

[[noreturn]] void Fail(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}

// `files`: those that a line may be about.
void CheckLines(std::string_view message, std::initializer_list<std::string_view> files) {
  if (message.empty()) Fail("a refusal without a word", "");
  while (!message.empty()) {
    const std::string_view line = message.substr(0, message.find('\n'));
    const bool has_place = std::any_of(files.begin(), files.end(), [&](std::string_view file) {
      return line.substr(0, file.size()) == file && line.substr(file.size(), 1) == ":";
    });
    if (!has_place) Fail("a line without its place", std::string(line));
    message.remove_prefix(std::min(message.size(), line.size() + 1));
  }
}

void DecodeConfiguration(const std::string& server, const std::string& registry) {
  tp::config::Sources sources;
  sources.server = {"tpd.yaml", server};
  sources.registry = {"registry.yaml", registry};
  const auto loaded = tp::config::Load(sources);
  if (!loaded.ok()) {
    CheckLines(tp::Message(loaded.status()), {"tpd.yaml", "registry.yaml"});
  } else if (!tp::config::Differences(loaded->registry, loaded->registry).empty()) {
    Fail("a registry that differs from itself", tp::config::Summary(*loaded));
  }
}

void DecodeServer(const std::string& text) {
  DecodeConfiguration(text, std::string(tp::config::kEmbeddedRegistryFile));
}

void DecodeRegistry(const std::string& text) {
  DecodeConfiguration(std::string(tp::config::kEmbeddedServerFile), text);
}

void DecodeProject(const std::string& text) {
  const auto project = tp::cli::ParseProjectFile("tp.yaml", text);
  if (!project.ok()) return CheckLines(tp::Message(project.status()), {"tp.yaml"});
  for (const auto& step : project->steps) {
    if (step.value.command.empty()) Fail("a step without a command", step.key);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::array kDecoders = {DecodeServer, DecodeRegistry, DecodeProject};
  kDecoders[data[0] % kDecoders.size()](std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}

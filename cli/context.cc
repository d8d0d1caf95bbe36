#include "cli/context.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/render/json.h"
#include "cli/render/text.h"
#include "cli/rpc_status.h"

namespace tp::cli {
namespace {

std::string ErrorDocument(const absl::Status& status) {
  const v1::ErrorDetail detail = DetailOf(status);
  Json document = NewDocument();
  document["error"] = {{"code", absl::StatusCodeToString(status.code())},
                       {"reason", detail.reason()},
                       {"field", detail.field()},
                       {"message", std::string(Message(status))}};
  return DumpJson(document);
}

}  // namespace

absl::StatusOr<Client*> Context::Connect(absl::Duration patience) {
  if (!client_) {
    TP_ASSIGN_OR_RETURN(const Endpoint endpoint, FindServer(globals.server));
    TP_ASSIGN_OR_RETURN(client_, Client::Connect(endpoint, patience));
  }
  return client_.get();
}

Terminal Context::terminal() const { return DescribeTerminal(STDOUT_FILENO, globals.no_color); }

void Context::Print(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), stdout); }

void Context::Say(std::string_view sentence) const {
  if (globals.quiet) return;
  std::fflush(stdout);
  const std::string line = EscapeControl(sentence) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void Context::Ask(std::string_view question) const {
  std::fflush(stdout);
  const std::string text = EscapeControl(question);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Context::Report(const absl::Status& status) const {
  std::fflush(stdout);
  const std::string text = globals.output == OutputFormat::kJson
                               ? ErrorDocument(status)
                               : fmt::format("tp: {}\n", EscapeControl(Message(status)));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

absl::Status Context::Flush() const {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  return InvalidArgument("cannot write to stdout: {}", std::strerror(errno));
}

}  // namespace tp::cli

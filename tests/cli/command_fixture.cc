#include "command_fixture.h"

#include <cstdlib>
#include <regex>

#include <fmt/format.h>

#include "absl/time/clock.h"
#include "cli/render/time.h"

namespace tp::cli {

CommandTest::CommandTest() {
  data_.Write("client.json", fmt::format(R"({{"address": "{}", "token_file": "token"}})", server_.address()));
  data_.Write("token", kTestToken, 0600);
  options_.directory = project_.path();
  options_.environment = {{"PATH", "/usr/bin:/bin"},
                          {"HOME", project_.path()},
                          {"TZ", "UTC"},
                          {"TP_DATA_DIR", data_.path()},
                          {"XDG_CACHE_HOME", data_.path() + "/cache"}};
  // What the sanitizers of this build are told.
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name); value != nullptr) options_.environment[name] = value;
  }
}

std::unique_ptr<Program> CommandTest::Start(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {TP_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return std::make_unique<Program>(argv, options_);
}

Finished CommandTest::Tp(const std::vector<std::string>& arguments) { return Start(arguments)->Wait(); }

v1::Run MakeRun(int64_t n, const std::string& name, v1::RunState state, absl::Duration age) {
  v1::Run run;
  run.set_n(n);
  run.set_id(fmt::format("{}-{}", name, n));
  run.set_owner("alice");
  run.set_project("default");
  run.set_priority(50);
  run.set_state(state);
  run.set_state_text(v1::RunState_Name(state).substr(sizeof("RUN_STATE_") - 1));
  *run.mutable_created_at() = ToProto(absl::Now() - age);
  v1::Step& step = *run.add_steps();
  step.set_index(1);
  if (state != v1::RUN_STATE_PARTIAL) step.set_state(static_cast<v1::JobState>(static_cast<int>(state)));
  step.set_state_text(run.state_text());
  step.mutable_spec()->set_name("main");
  step.mutable_spec()->add_argv("python3");
  step.mutable_spec()->add_argv("train.py");
  step.mutable_spec()->add_profiles("h200:16");
  step.set_shape("h200:16 = 2 nodes x 8");
  step.set_backend("local");
  step.set_cards(16);
  step.set_nodes(2);
  return run;
}

std::string WithoutTimes(const std::string& text) {
  static const std::regex kTime(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  return std::regex_replace(text, kTime, "TIME");
}

}  // namespace tp::cli

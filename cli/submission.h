// From the flags of `tp submit` to the request. Pure but for the environment that `--env NAME` reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tp/v1/run.pb.h"

namespace tp::cli {

struct SubmitFlags {
  std::vector<std::string> profiles;
  std::vector<std::string> environment;  // `NAME=value`, or `NAME` to pass tp's own on
  std::vector<std::string> labels;       // `key=value`
  std::string name;
  std::string image;
  std::string time_limit;
  std::vector<std::string> then;  // names of further steps
  bool no_then = false;           // not even those of tp.yaml
  std::string project;
  std::string directory = ".";
  std::optional<int32_t> priority;
  std::vector<std::string> after;  // `RUN`, or `RUN:success`, `RUN:failure`, `RUN:always`
  std::string array;               // `0-31%4`
  bool hold = false;
};

// Without snapshot and request id. INVALID_ARGUMENT names the flag.
absl::StatusOr<v1::SubmitRunRequest> BuildSubmission(const SubmitFlags& flags, const std::vector<std::string>& argv);

// What the command runs: `train` of `python3 -u train.py`; where that is not to be seen, the last part
// of `directory`, an absolute path.
std::string DefaultName(const std::vector<std::string>& argv, const std::string& directory);

// `key=value` pairs of a repeatable flag.
absl::Status ParseLabels(const std::vector<std::string>& pairs,
                         google::protobuf::Map<std::string, std::string>& labels);

}  // namespace tp::cli

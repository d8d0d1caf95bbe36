#include "api/run_output.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "api/convert.h"
#include "api/job_files.h"
#include "api/metrics.h"
#include "api/run_directories.h"
#include "api/run_reader.h"
#include "api/server_stream.h"
#include "base/printable.h"
#include "base/sha256.h"

namespace tp::api {
namespace {

constexpr size_t kMaxResultFiles = 20'000;
constexpr int64_t kPieceBytes = 256 * 1024;
constexpr int64_t kSkippedPieceBytes = 4 << 20;
constexpr size_t kMaxMetricsFileBytes = size_t{256} << 20;
// gRPC clients take 4 MiB by default.
constexpr size_t kMaxMetricsBytes = size_t{3} << 20;
constexpr char kMetricsFile[] = "metrics.jsonl";

absl::StatusOr<core::RunWithSteps> FindReadableRun(Context& context, const Call& call, std::string_view selector) {
  TP_ASSIGN_OR_RETURN(core::RunWithSteps run, FindRun(context, call, selector));
  TP_RETURN_IF_ERROR(CheckMayReadContent(call, run.run));
  return run;
}

class ReadResultStream final : public ServerStream<v1::ReadResultResponse> {
 public:
  ReadResultStream(Context& context, grpc::CallbackServerContext* server_context, const v1::ReadResultRequest& request)
      : ServerStream(context, context.files, server_context, "/tp.v1.RunService/ReadResult"), request_(request) {}

 private:
  absl::Status Open(const Call& call) override {
    if (request_.offset() < 0) return FieldError("offset", "offset must not be negative");
    TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, FindReadableRun(context(), call, request_.run()));
    absl::Status status = OpenFile(run);
    if (!absl::IsNotFound(status)) return status;
    return WithReason(WithField(NotFound("{} has no result {}: tp results lists what there is", run.run.id(),
                                         Quoted(request_.path())),
                                "path"),
                      "RESULT_NOT_FOUND");
  }

  absl::Status OpenFile(const core::RunWithSteps& run) {
    TP_ASSIGN_OR_RETURN(const Directory results, OpenResultsDirectory(context().facts.layout, run));
    auto file = OpenFileBeneath(results, request_.path());
    if (absl::IsInvalidArgument(file.status())) return WithField(file.status(), "path");
    TP_RETURN_IF_ERROR(file.status());
    file_ = *std::move(file);
    return absl::OkStatus();
  }

  // A client that goes on in the middle gets the digest of the whole: what comes before is read for it,
  // each piece a message without data, so that the client sees that the server is at work.
  Next Produce(v1::ReadResultResponse* response) override {
    if (finished_) return absl::OkStatus();
    const bool skipping = offset_ < request_.offset();
    const int64_t most = skipping ? std::min(request_.offset() - offset_, kSkippedPieceBytes) : kPieceBytes;
    auto data = ReadAt(file_.get(), offset_, static_cast<size_t>(most), request_.path());
    if (!data.ok()) return data.status();
    if (data->empty()) return End(response);
    digest_.Update(*data);
    offset_ += static_cast<int64_t>(data->size());
    if (!skipping) response->set_data(*std::move(data));
    return Write{};
  }

  Next End(v1::ReadResultResponse* response) {
    if (offset_ < request_.offset()) {
      return WithField(Error(absl::StatusCode::kOutOfRange, "{} has {} bytes by now, and {} were asked to be skipped",
                             Quoted(request_.path()), offset_, request_.offset()),
                       "offset");
    }
    finished_ = true;
    response->set_sha256(digest_.HexDigest());
    return Write{};
  }

  const v1::ReadResultRequest request_;
  int64_t offset_ = 0;  // up to where it was read
  Sha256 digest_;       // of that
  bool finished_ = false;
  UniqueFd file_;
};

// The newest step that has an attempt, or the one asked for.
absl::StatusOr<const core::Step*> MetricsStep(const core::RunWithSteps& run, int32_t number) {
  const auto steps = static_cast<int32_t>(run.steps.size());
  if (number < 0 || number > steps) {
    return WithField(NotFound("{} has {} step{}, not {}", run.run.id(), steps, steps == 1 ? "" : "s", number), "step");
  }
  if (number > 0) return &run.steps[static_cast<size_t>(number) - 1];
  for (auto step = run.steps.rbegin(); step != run.steps.rend(); ++step) {
    if (step->attempts > 0) return &*step;
  }
  return &run.steps.front();
}

// Empty where the attempt wrote none.
absl::StatusOr<std::string> ReadMetricsFile(const core::LaunchLayout& layout, const core::Run& run,
                                            const core::Step& step, int32_t attempt) {
  const auto directory = OpenAttemptDirectory(layout, run, step, attempt);
  if (absl::IsNotFound(directory.status())) return std::string();
  if (!directory.ok()) return directory.status();
  TP_ASSIGN_OR_RETURN(const auto content, ReadSmallFile(*directory, kMetricsFile, kMaxMetricsFileBytes));
  return content.value_or("");
}

}  // namespace

absl::Status ListResultFiles(Context& context, const Call& call, const v1::ListResultsRequest& request,
                             v1::ListResultsResponse* response) {
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, FindReadableRun(context, call, request.run()));
  const auto results = OpenResultsDirectory(context.facts.layout, run);
  if (absl::IsNotFound(results.status())) return absl::OkStatus();
  TP_RETURN_IF_ERROR(results.status());
  TP_ASSIGN_OR_RETURN(const std::vector<FileEntry> files, ListFilesBeneath(*results, kMaxResultFiles));
  for (const FileEntry& file : files) {
    v1::ResultFile* to = response->add_files();
    to->set_path(file.path);
    to->set_bytes(file.bytes);
    *to->mutable_modified_at() = ToProto(file.modified_at);
  }
  return absl::OkStatus();
}

grpc::ServerWriteReactor<v1::ReadResultResponse>* StartReadResult(Context& context,
                                                                  grpc::CallbackServerContext* server_context,
                                                                  const v1::ReadResultRequest& request) {
  return ReadResultStream::Start(std::make_shared<ReadResultStream>(context, server_context, request));
}

absl::Status ReadRunMetrics(Context& context, const Call& call, const v1::ReadMetricsRequest& request,
                            v1::ReadMetricsResponse* response) {
  TP_ASSIGN_OR_RETURN(const core::RunWithSteps run, FindReadableRun(context, call, request.run()));
  TP_ASSIGN_OR_RETURN(const core::Step* step, MetricsStep(run, request.step()));
  std::vector<std::string> attempts;
  for (int32_t attempt = 1; attempt <= step->attempts; ++attempt) {
    TP_ASSIGN_OR_RETURN(std::string content, ReadMetricsFile(context.facts.layout, run.run, *step, attempt));
    attempts.push_back(std::move(content));
  }
  MergedMetrics merged = MergeMetrics(attempts, request.after_step(), kMaxMetricsBytes);
  for (std::string& line : merged.lines) response->add_lines(std::move(line));
  response->set_truncated(merged.truncated);
  return absl::OkStatus();
}

}  // namespace tp::api

#include "tpd/snapshots.h"

#include <utility>

#include "base/status.h"

namespace tp::tpd {
namespace {

class Upload final : public api::SnapshotUpload {
 public:
  Upload(launch::SnapshotWriter writer, std::string sha256) : writer_(std::move(writer)), sha256_(std::move(sha256)) {}

  absl::Status Write(std::string_view bytes) override { return writer_.Append(bytes); }

  absl::StatusOr<api::StoredSnapshot> Finish() override {
    TP_ASSIGN_OR_RETURN(const launch::SnapshotInfo info, writer_.Commit(sha256_));
    return api::StoredSnapshot{.id = info.id, .bytes = info.archive_bytes, .files = info.files};
  }

 private:
  launch::SnapshotWriter writer_;
  const std::string sha256_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<api::SnapshotUpload>> Snapshots::Begin(const std::string& sha256, int64_t /*bytes*/) {
  TP_ASSIGN_OR_RETURN(launch::SnapshotWriter writer, store_.Begin());
  return std::make_unique<Upload>(std::move(writer), sha256);
}

}  // namespace tp::tpd

// Entries and stores for tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "base/status.h"
#include "snapshot/store.h"
#include "tests/launch/temp_dir.h"

namespace tp::snapshot {

inline std::string Digest(std::string_view content) {
  Sha256 digest;
  digest.Update(content);
  return digest.HexDigest();
}

inline Entry File(std::string path, std::string_view content = "x", bool executable = false) {
  return {.path = std::move(path),
          .kind = EntryKind::kFile,
          .executable = executable,
          .sha256 = Digest(content),
          .bytes = static_cast<int64_t>(content.size()),
          .link_target = ""};
}
inline Entry Dir(std::string path) {
  return {.path = std::move(path),
          .kind = EntryKind::kDirectory,
          .executable = false,
          .sha256 = "",
          .bytes = 0,
          .link_target = ""};
}
inline Entry Link(std::string path, std::string target) {
  return {.path = std::move(path),
          .kind = EntryKind::kSymlink,
          .executable = false,
          .sha256 = "",
          .bytes = 0,
          .link_target = std::move(target)};
}

// A store over a directory of its own, with a clock that the test moves.
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_.reset();
    auto store = Store::Open(dir_.path(), limits_, [this] { return now_; });
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  void Put(const std::vector<std::string>& contents, const std::string& owner = "ana") {
    const auto upload = store_->BeginUpload(owner);
    for (const std::string& content : contents) {
      ASSERT_TRUE(upload->Begin(Digest(content), static_cast<int64_t>(content.size()), 0).ok());
      ASSERT_TRUE(upload->Append(content).ok());
    }
    const auto counts = upload->Finish();
    ASSERT_TRUE(counts.ok()) << counts.status();
  }

  absl::StatusOr<Info> Commit(std::vector<Entry> entries, const std::string& owner = "ana",
                              const std::vector<std::string>& charged = {}) {
    TP_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Make(std::move(entries)));
    return store_->Commit(owner, manifest, charged);
  }

  bool HasBlob(std::string_view content) {
    return std::filesystem::exists(dir_.At(".snapshots/blobs/" + Digest(content).substr(0, 2) + "/" + Digest(content)));
  }

  tp::testing::TempDir dir_;
  Limits limits_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<Store> store_;
};

}  // namespace tp::snapshot

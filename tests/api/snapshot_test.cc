// Snapshots over the wire: what a client does, and what one that means harm can't.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/digest.h"
#include "server_fixture.h"
#include "snapshot/checkout.h"
#include "tp/v1/snapshot.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SnapshotTest : public ServerTest {
 protected:
  void SetUp() override {
    snapshot_limits_.max_bytes = 2'000'000;
    snapshot_limits_.max_entries = 100;
    snapshot_limits_.max_user_bytes = 3'000'000;
    ServerTest::SetUp();
    stub_ = v1::SnapshotService::NewStub(channel());
    loop_.OnCommand([this](const loop::Command& command) {
      CommitSnapshot(std::get<loop::AddSnapshot>(command.action).snapshot);
      return loop::Answer{};
    });
  }

  static v1::PutBlobsRequest Begin(const std::string& content, int64_t offset = 0) {
    v1::PutBlobsRequest message;
    message.mutable_header()->set_sha256(auth::Sha256Hex(content));
    message.mutable_header()->set_bytes(static_cast<int64_t>(content.size()));
    message.mutable_header()->set_offset(offset);
    return message;
  }
  static v1::PutBlobsRequest Whole(const std::string& content) {
    v1::PutBlobsRequest message = Begin(content);
    message.set_data(content);
    return message;
  }

  grpc::Status Put(const std::vector<v1::PutBlobsRequest>& messages, const std::string& user = "ana") {
    const auto context = As(user);
    const auto writer = stub_->PutBlobs(context.get(), &put_);
    bool open = true;
    for (const v1::PutBlobsRequest& message : messages) open = open && writer->Write(message);
    if (open) writer->WritesDone();
    return writer->Finish();
  }

  static v1::ManifestEntry File(const std::string& path, const std::string& content = "one") {
    v1::ManifestEntry entry;
    entry.set_path(path);
    entry.set_kind(v1::ENTRY_KIND_FILE);
    entry.set_sha256(auth::Sha256Hex(content));
    entry.set_bytes(static_cast<int64_t>(content.size()));
    return entry;
  }
  static v1::ManifestEntry Dir(const std::string& path) {
    v1::ManifestEntry entry;
    entry.set_path(path);
    entry.set_kind(v1::ENTRY_KIND_DIRECTORY);
    return entry;
  }
  static v1::ManifestEntry Link(const std::string& path, const std::string& target) {
    v1::ManifestEntry entry;
    entry.set_path(path);
    entry.set_kind(v1::ENTRY_KIND_SYMLINK);
    entry.set_link_target(target);
    return entry;
  }

  // One message for each entry, the request id in the first.
  grpc::Status Commit(const std::vector<v1::ManifestEntry>& entries, const std::string& request_id = "r-1",
                      const std::string& user = "ana") {
    const auto context = As(user);
    const auto writer = stub_->CommitManifest(context.get(), &committed_);
    v1::CommitManifestRequest message;
    message.set_request_id(request_id);
    bool open = writer->Write(message);
    for (const v1::ManifestEntry& entry : entries) {
      message.Clear();
      *message.add_entries() = entry;
      open = open && writer->Write(message);
    }
    if (open) writer->WritesDone();
    return writer->Finish();
  }

  v1::FindMissingBlobsResponse FindMissing(const std::vector<std::string>& contents) {
    v1::FindMissingBlobsRequest request;
    for (const std::string& content : contents) request.add_sha256(auth::Sha256Hex(content));
    v1::FindMissingBlobsResponse response;
    const grpc::Status status = stub_->FindMissingBlobs(As("ana").get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  // Until so much of a blob under way has arrived.
  void AwaitFileOf(uintmax_t bytes) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      for (const auto& entry : fs::directory_iterator(storage_.path() + "/.snapshots/tmp")) {
        std::error_code gone;
        if (fs::file_size(entry.path(), gone) == bytes && !gone) return;
      }
    }
    FAIL() << "the server has not read what was sent";
  }

  grpc::Status Get(const std::string& id) {
    v1::GetSnapshotRequest request;
    request.set_snapshot_id(id);
    return stub_->GetSnapshot(As("ana").get(), request, &got_);
  }

  v1::PutBlobsResponse put_;
  v1::CommitManifestResponse committed_;
  v1::GetSnapshotResponse got_;
  std::unique_ptr<v1::SnapshotService::Stub> stub_;
};

TEST_F(SnapshotTest, FindPutCommitGet) {
  EXPECT_EQ(FindMissing({"one", "two"}).missing_size(), 2);
  v1::PutBlobsRequest rest;
  rest.set_data("wo");
  v1::PutBlobsRequest begin = Begin("two");
  begin.set_data("t");
  ASSERT_TRUE(Put({Whole("one"), begin, rest, Whole("")}).ok());
  EXPECT_EQ(put_.blobs(), 3);
  EXPECT_EQ(put_.bytes(), 6);
  EXPECT_EQ(FindMissing({"one", "two", ""}).missing_size(), 0);

  const grpc::Status status = Commit({File("b/two", "two"), File("one"), Dir("b"), Link("l", "b")});
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(committed_.files(), 2);
  EXPECT_EQ(committed_.bytes(), 6);
  ASSERT_TRUE(Get(committed_.snapshot_id()).ok());
  EXPECT_EQ(got_.files(), 2);
  EXPECT_EQ(got_.bytes(), 6);
  EXPECT_EQ(Get(std::string(64, 'd')).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Get("../../x").error_code(), StatusCode::INVALID_ARGUMENT);
  const loop::Command command = loop_.commands().at(0);
  const auto& row = std::get<loop::AddSnapshot>(command.action).snapshot;
  EXPECT_EQ(row.id, committed_.snapshot_id());
  EXPECT_EQ(row.owner, "ana");
}

TEST_F(SnapshotTest, TheSameContentIsTheSameSnapshotWhoeverCommitsIt) {
  ASSERT_TRUE(Put({Whole("one")}).ok());
  ASSERT_TRUE(Commit({File("a")}).ok());
  const std::string id = committed_.snapshot_id();
  ASSERT_TRUE(Commit({File("a")}, "r-1").ok()) << "a repeated call";
  EXPECT_EQ(committed_.snapshot_id(), id);
  ASSERT_TRUE(Commit({File("a")}, "r-9", "ben").ok());
  EXPECT_EQ(committed_.snapshot_id(), id);
}

TEST_F(SnapshotTest, ARequestIdIsForOneManifest) {
  ASSERT_TRUE(Put({Whole("one")}).ok());
  CommitRequest({"ana", "r-1", "/tp.v1.SnapshotService/CommitManifest", "another body", 0, ""});
  const grpc::Status status = Commit({File("a")}, "r-1");
  EXPECT_EQ(status.error_code(), StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(DetailOf(status).reason(), "REQUEST_ID_REUSED");
}

TEST_F(SnapshotTest, ARepeatedCommitIsNotEnteredTwice) {
  ASSERT_TRUE(Put({Whole("one")}).ok());
  ASSERT_TRUE(Commit({File("a")}, "r-1").ok());
  const loop::Command first = loop_.commands().at(0);
  CommitRequest({"ana", "r-1", first.method, first.body_sha256, 0, ""});
  ASSERT_TRUE(Commit({File("a")}, "r-1").ok());
  EXPECT_EQ(committed_.files(), 1);
  EXPECT_EQ(loop_.commands().size(), 1u);
}

TEST_F(SnapshotTest, ACommitNeedsItsBlobsAndItsId) {
  const grpc::Status missing = Commit({File("a")});
  EXPECT_EQ(missing.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(missing).reason(), "BLOBS_MISSING");
  EXPECT_EQ(DetailOf(Commit({}, "")).field(), "request_id");
  const auto context = As("ana");
  const auto writer = stub_->CommitManifest(context.get(), &committed_);
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(SnapshotTest, ABrokenUploadGoesOn) {
  const std::string content(500'000, 'z');
  {
    const auto context = As("ana");
    const auto writer = stub_->PutBlobs(context.get(), &put_);
    ASSERT_TRUE(writer->Write(Whole("one")));
    v1::PutBlobsRequest message = Begin(content);
    message.set_data(content.substr(0, 200'000));
    ASSERT_TRUE(writer->Write(message));
    AwaitFileOf(200'000);
    context->TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), StatusCode::CANCELLED);
  }
  v1::FindMissingBlobsResponse missing;
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  do {  // the server hears of the end some time later
    missing = FindMissing({"one", content});
  } while (missing.missing_size() != 1 && absl::Now() < deadline);
  ASSERT_EQ(missing.missing_size(), 1) << "the whole one was kept";
  const int64_t received = missing.missing(0).received_bytes();
  EXPECT_EQ(received, 200'000);
  v1::PutBlobsRequest rest = Begin(content, received);
  rest.set_data(content.substr(static_cast<size_t>(received)));
  const grpc::Status status = Put({rest});
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(put_.bytes(), 300'000);
  const grpc::Status gone = Put({Begin("never seen", 3)});
  EXPECT_EQ(gone.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(gone).reason(), "BLOBS_MISSING");
}

TEST_F(SnapshotTest, LimitsAreToldAndKept) {
  v1::GetSnapshotLimitsResponse limits;
  ASSERT_TRUE(stub_->GetSnapshotLimits(As("vera", store::Role::kViewer).get(), {}, &limits).ok());
  EXPECT_EQ(limits.max_bytes(), 2'000'000);
  EXPECT_EQ(limits.max_entries(), 100);

  std::vector<v1::ManifestEntry> many;
  for (int i = 0; i < 101; ++i) many.push_back(Dir(std::to_string(i)));
  EXPECT_THAT(Commit(many).error_message(), HasSubstr("more than the 100"));

  const std::string a(1'500'000, 'a');
  const std::string b(1'400'000, 'b');
  ASSERT_TRUE(Put({Whole(a)}).ok());
  ASSERT_TRUE(Put({Whole(b)}).ok());
  EXPECT_THAT(Commit({File("a", a), File("b", b)}).error_message(), HasSubstr("largest files: 'a' (1.4 MiB)"));
  EXPECT_EQ(Put({Whole(std::string(200'000, 'c'))}).error_code(), StatusCode::RESOURCE_EXHAUSTED);

  ASSERT_TRUE(Commit({File("a", a)}, "r-2").ok());
  ASSERT_TRUE(Commit({File("b", b)}, "r-3").ok());
  ASSERT_TRUE(Put({Whole(std::string(200'000, 'c'))}).ok());
  const grpc::Status over = Commit({File("c", std::string(200'000, 'c'))}, "r-4");
  EXPECT_EQ(over.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(over.error_message(), HasSubstr("snapshots of ana would hold 3.0 MiB"));
}

// --- Attacks --------------------------------------------------------------------------------------

TEST_F(SnapshotTest, NothingThatCouldLeaveTheTreeIsTaken) {
  ASSERT_TRUE(Put({Whole("one")}).ok());
  v1::ManifestEntry device = File("device");
  device.set_kind(static_cast<v1::EntryKind>(4));
  v1::ManifestEntry no_kind = File("none");
  no_kind.clear_kind();
  v1::ManifestEntry bad_digest = File("a");
  bad_digest.set_sha256("../../../etc/passwd");
  v1::ManifestEntry lying = File("a");
  lying.set_bytes(1);
  v1::ManifestEntry negative = File("a");
  negative.set_bytes(-1);
  const std::vector<std::vector<v1::ManifestEntry>> attacks = {
      {File("../x")},
      {File("..")},
      {Dir("a"), File("a/../../x")},
      {File("/etc/cron.d/x")},
      {File("")},
      {File(".")},
      {Dir("a"), File("a//b")},
      {Dir("a"), File("a/./b")},
      {File(std::string("a\0/../x", 7))},
      {File(std::string(5000, 'a'))},
      {File(std::string(256, 'a'))},
      {Link("l", "/etc"), File("l/passwd")},
      {Link("l", "/etc")},
      {Link("l", "../../etc")},
      {Dir("d"), Link("d/up", ".."), Link("l", "d/up/..")},
      {Link("a", "b"), Link("b", "..")},
      {Dir("d"), Link("l", "d"), File("l/x")},
      {File("a"), File("a/b")},
      {File("a/b")},
      {File("a"), File("a")},
      {Dir("a"), Link("a", "x")},
      {device},
      {no_kind},
      {bad_digest},
      {lying},
      {negative},
  };
  for (size_t i = 0; i < attacks.size(); ++i) {
    const grpc::Status status = Commit(attacks[i], fmt::format("r-{}", i));
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << i << ": " << status.error_message();
    EXPECT_FALSE(status.error_message().empty());
  }
  EXPECT_TRUE(loop_.commands().empty());
  EXPECT_TRUE(fs::is_empty(storage_.path() + "/.snapshots/manifests"));
}

TEST_F(SnapshotTest, OddNamesAreKeptExactly) {
  ASSERT_TRUE(Put({Whole("one"), Whole("two")}).ok());
  const std::vector<std::string> names = {"readme", "README", "\xff\xfe", "a\nb", "-rf", "caf\xc3\xa9", "cafe\xcc\x81"};
  std::vector<v1::ManifestEntry> entries;
  for (const std::string& name : names) entries.push_back(File(name));
  entries.back() = File(names.back(), "two");
  const grpc::Status status = Commit(entries);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string work = storage_.path() + "/work";
  fs::create_directories(work);
  ASSERT_TRUE(snapshot::Checkout(storage_.path(), committed_.snapshot_id(), work).ok());
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(work + "/" + name)) << name;
  EXPECT_EQ(static_cast<size_t>(std::distance(fs::directory_iterator(work), {})), names.size());
}

TEST_F(SnapshotTest, BlobsAreWhatTheirDigestSays) {
  v1::PutBlobsRequest forged = Begin("one");
  forged.set_data("two");
  EXPECT_THAT(Put({forged}).error_message(), HasSubstr("arrived with the digest"));
  v1::PutBlobsRequest longer = Begin("one");
  longer.set_data("one and more");
  EXPECT_EQ(Put({longer}).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::PutBlobsRequest path = Whole("one");
  path.mutable_header()->set_sha256("../../../../tmp/x");
  EXPECT_EQ(DetailOf(Put({path})).field(), "header.sha256");
  v1::PutBlobsRequest huge = Begin("one");
  huge.mutable_header()->set_bytes(int64_t{1} << 60);
  EXPECT_EQ(Put({huge}).error_code(), StatusCode::INVALID_ARGUMENT);
  v1::PutBlobsRequest headless;
  headless.set_data("one");
  EXPECT_EQ(Put({headless}).error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Put({Begin("one")}).error_code(), StatusCode::INVALID_ARGUMENT) << "announced and not sent";
  EXPECT_EQ(FindMissing({"one", "two"}).missing_size(), 2);
  EXPECT_TRUE(Put({}).ok());
}

TEST_F(SnapshotTest, ACallAsksForSoManyDigestsOnly) {
  v1::FindMissingBlobsRequest request;
  for (int i = 0; i < 10'001; ++i) request.add_sha256(std::string(64, 'a'));
  v1::FindMissingBlobsResponse response;
  EXPECT_EQ(stub_->FindMissingBlobs(As("ana").get(), request, &response).error_code(), StatusCode::INVALID_ARGUMENT);
  request.clear_sha256();
  request.add_sha256("x");
  EXPECT_EQ(stub_->FindMissingBlobs(As("ana").get(), request, &response).error_code(), StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace tp::api

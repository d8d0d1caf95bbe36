// Readiness follows the loop (DESIGN 12).
#include <atomic>
#include <string>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/fault_point.h"
#include "config_directory.h"
#include "tpd/daemon.h"

namespace tp {
namespace {

std::atomic<bool> commits_hang = false;

}  // namespace

// This program's own fault points.
void ReachFaultPoint(FaultPoint point) noexcept {
  if (point == FaultPoint::kBeforeCommit) commits_hang.wait(true);
}

}  // namespace tp

namespace tp::tpd {
namespace {

// grpc.health.v1.HealthCheckResponse: field 1.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

std::string AskHealth(const std::string& address) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  const grpc::Slice nothing("");
  const grpc::ByteBuffer request(&nothing, 1);
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  if (!response.Valid() || !response.DumpToSingleSlice(&bytes).ok()) return "";
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

class Health : public ConfigDirectory {
 protected:
  Health() { commits_hang = true; }
  ~Health() override { LetCommit(); }

  static void LetCommit() {
    commits_hang = false;
    commits_hang.notify_all();
  }

  std::unique_ptr<Daemon> Start() const {
    Write("tpd.yaml", "server: {listen: 127.0.0.1:0}\n");
    DaemonOptions options;
    options.data_directory = (root_ / "data").string();
    std::filesystem::create_directory(options.data_directory);
    options.config_directory = config_.string();
    options.rank_binary = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tp-rank").string();
    options.version = "test";
    options.not_serving_after = absl::Milliseconds(200);
    auto daemon = Daemon::Start(std::move(options));
    EXPECT_TRUE(daemon.ok()) << daemon.status();
    return daemon.ok() ? *std::move(daemon) : nullptr;
  }

  static bool Comes(const Daemon& daemon, const std::string& answer, const std::function<void()>& check) {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (absl::Now() < until) {
      check();
      if (AskHealth(daemon.address()) == answer) return true;
    }
    return false;
  }
};

TEST_F(Health, ALoopWithoutProgressIsNotReadyUntilItGoesOn) {
  const auto daemon = Start();
  ASSERT_NE(daemon, nullptr);
  EXPECT_EQ(AskHealth(daemon->address()), kServing) << "nothing has hung for long yet";
  // The scan of the storage is to be committed, and is not.
  EXPECT_TRUE(Comes(*daemon, kNotServing, [&] { daemon->CheckHealth(); }));
  LetCommit();
  EXPECT_TRUE(Comes(*daemon, kServing, [&] { daemon->CheckHealth(); }));
}

TEST(HealthLimit, IsTenSeconds) { EXPECT_EQ(DaemonOptions().not_serving_after, absl::Seconds(10)); }

}  // namespace
}  // namespace tp::tpd

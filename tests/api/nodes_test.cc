// NodeService over the wire, and how nodes are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/node_view.h"
#include "sample_registry.h"
#include "server_fixture.h"
#include "tp/v1/node.grpc.pb.h"

namespace tp::api {
namespace {

using grpc::StatusCode;
using store::Role;
using testing::HasSubstr;

loop::NodesAnswer Answer() {
  const absl::Time at = absl::FromUnixSeconds(1'800'000'000);
  loop::NodesAnswer answer;
  answer.marks = {{{.node = "node-1"}, core::MarkKind::kDrained, "new disk", "olga", at},
                  {{.node = "node-2", .card = 3}, core::MarkKind::kDrained, "Xid 79", "tpd", at}};
  answer.strikes = {{"node-2", {{43, 0}, 2}, "ana", core::FailureKind::kGpuLost, at}};
  answer.elsewhere = {{{.node = "node-2", .card = 0}, "container trainer"}};
  answer.holders = {{{.node = "node-1", .card = 0}, "train-43", "ana"},
                    {{.node = "node-1", .card = 1}, "eval-44", "ben"}};
  return answer;
}

TEST(NodeView, TellsWhatIsKnownOfEach) {
  const NodeSight sight{.node = "node-3",
                        .reachable = false,
                        .why = "connection timed out",
                        .since = absl::FromUnixSeconds(1'800'000'100),
                        .clock_offset = absl::Milliseconds(-20),
                        .disk_free_bytes = 1 << 30};
  v1::ListNodesResponse response;
  FillNodes(SampleRegistry(), Answer(), {sight}, {.user = "ana"}, "", &response);
  ASSERT_EQ(response.nodes_size(), 3);
  const v1::Node& first = response.nodes(0);
  EXPECT_EQ(first.name(), "node-1");
  EXPECT_EQ(first.cards(), 8);
  EXPECT_EQ(first.series(0), "h200");
  EXPECT_EQ(first.backends(0), "local");
  EXPECT_EQ(first.marks(0).reason(), "new disk");
  EXPECT_FALSE(first.marks(0).has_card());
  EXPECT_FALSE(first.has_health());
  ASSERT_EQ(first.holders_size(), 2);
  EXPECT_EQ(first.holders(0).run_id(), "train-43");
  EXPECT_EQ(first.holders(1).run_id(), "") << "another's run has no name";
  EXPECT_EQ(first.holders(1).owner(), "ben");
  const v1::Node& second = response.nodes(1);
  EXPECT_EQ(second.marks(0).card(), 3);
  EXPECT_EQ(second.strikes(0).kind(), "gpu_lost");
  EXPECT_EQ(second.holders(0).elsewhere(), "container trainer");
  EXPECT_EQ(response.nodes(2).health().why(), "connection timed out");
  EXPECT_FALSE(response.nodes(2).health().reachable());
  response.Clear();
  FillNodes(SampleRegistry(), Answer(), {}, {.user = "olga", .sees_all = true}, "node-1", &response);
  ASSERT_EQ(response.nodes_size(), 1);
  EXPECT_EQ(response.nodes(0).holders(1).run_id(), "eval-44");
}

class NodesTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    stub_ = v1::NodeService::NewStub(channel());
    registry_ = SampleRegistry();
  }

  std::unique_ptr<v1::NodeService::Stub> stub_;
};

TEST_F(NodesTest, ListsAllOrOne) {
  loop_.SetNodes(Answer());
  v1::ListNodesRequest request;
  v1::ListNodesResponse response;
  ASSERT_TRUE(stub_->ListNodes(As("ana", Role::kViewer).get(), request, &response).ok());
  EXPECT_EQ(response.nodes_size(), 3);
  request.set_node("node-9");
  EXPECT_EQ(stub_->ListNodes(As("ana").get(), request, &response).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(NodesTest, MarksGoThroughTheLoop) {
  loop_.OnCommand([](const loop::Command&) -> absl::StatusOr<loop::Answer> {
    loop::Answer answer;
    answer.note = "done";
    return answer;
  });
  v1::MarkNodeRequest mark;
  v1::MarkNodeResponse marked;
  mark.set_request_id("r-1");
  mark.set_node("node-1");
  mark.set_card(2);
  mark.set_kind(v1::NODE_MARK_KIND_DRAINED);
  mark.set_reason("new disk");
  EXPECT_EQ(stub_->MarkNode(As("ana").get(), mark, &marked).error_code(), StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(stub_->MarkNode(As("olga", Role::kOperator).get(), mark, &marked).ok());
  EXPECT_EQ(marked.note(), "done");
  const auto action = std::get<loop::MarkNode>(loop_.commands().at(0).action);
  EXPECT_EQ(action.part, (core::NodePart{.node = "node-1", .card = 2}));
  EXPECT_EQ(action.reason, "new disk");
  v1::ClearNodeRequest clear;
  v1::ClearNodeResponse cleared;
  clear.set_request_id("r-2");
  clear.set_node("node-1");
  ASSERT_TRUE(stub_->ClearNode(As("olga", Role::kOperator).get(), clear, &cleared).ok());
  EXPECT_TRUE(std::get<loop::ClearNode>(loop_.commands().at(1).action).part.whole());
}

TEST_F(NodesTest, OnlyMachinesThatTpdReachesItselfAreDeclaredDead) {
  v1::MarkNodeRequest mark;
  v1::MarkNodeResponse marked;
  mark.set_request_id("r-1");
  mark.set_node("node-1");
  mark.set_kind(v1::NODE_MARK_KIND_DEAD);
  const grpc::Status status = stub_->MarkNode(As("root", Role::kAdmin).get(), mark, &marked);
  EXPECT_EQ(status.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("tp admin node drain node-1"));
  EXPECT_TRUE(loop_.commands().empty());
}

TEST_F(NodesTest, RefusesWhatMakesNoSense) {
  v1::MarkNodeRequest mark;
  v1::MarkNodeResponse marked;
  mark.set_request_id("r-1");
  const auto field = [&] { return DetailOf(stub_->MarkNode(As("root", Role::kAdmin).get(), mark, &marked)).field(); };
  EXPECT_EQ(field(), "node");
  mark.set_node("node-1");
  EXPECT_EQ(field(), "kind");
  mark.set_kind(v1::NODE_MARK_KIND_DRAINED);
  mark.set_card(-1);
  EXPECT_EQ(field(), "card");
  mark.clear_card();
  mark.set_reason(std::string(513, 'x'));
  EXPECT_EQ(field(), "reason");
}

}  // namespace
}  // namespace tp::api

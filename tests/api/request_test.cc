#include "api/request.h"

#include <functional>

#include <gtest/gtest.h>

#include "api/errors.h"
#include "api/grpc_status.h"
#include "tp/v1/error.pb.h"

namespace tp::api {
namespace {

v1::SubmitRunRequest Minimal() {
  v1::SubmitRunRequest request;
  request.add_steps()->add_argv("true");
  return request;
}

std::string FieldOf(const absl::Status& status) {
  v1::ErrorDetail detail;
  EXPECT_TRUE(detail.ParseFromString(ToGrpc(status).error_details()));
  return detail.field();
}

TEST(ParseSubmit, FillsInDefaults) {
  const auto submit = ParseSubmit(Minimal());
  ASSERT_TRUE(submit.ok()) << submit.status();
  EXPECT_EQ(submit->project, "default");
  ASSERT_EQ(submit->steps.size(), 1u);
  EXPECT_EQ(submit->steps[0].name, "main");
  EXPECT_FALSE(submit->steps[0].after.has_value());
  EXPECT_FALSE(submit->steps[0].time_limit.has_value());
  EXPECT_FALSE(submit->steps[0].user_retries.has_value());
}

TEST(ParseSubmit, TakesEverything) {
  v1::SubmitRunRequest request = Minimal();
  request.set_name("Großer Lauf");
  request.set_project("vision");
  request.set_snapshot_id(std::string(64, 'a'));
  (*request.mutable_labels())["team/x"] = "ä";
  v1::StepSpec* step = request.mutable_steps(0);
  step->set_name("train");
  step->add_argv("a b\nc");
  step->add_profiles("h200:16");
  (*step->mutable_env())["LR"] = "1";
  (*step->mutable_explicit_env())["lr"] = "";
  step->set_image("img:1");
  step->mutable_time_limit()->set_seconds(60);
  step->set_user_retries(0);
  v1::StepSpec* eval = request.add_steps();
  eval->set_name("eval");
  eval->add_argv("eval");
  v1::StepSpec* clean = request.add_steps();
  clean->set_name("clean");
  clean->add_argv("rm");
  clean->mutable_after()->set_step("train");
  clean->mutable_after()->set_when(v1::AFTER_WHEN_ALWAYS);

  const auto submit = ParseSubmit(request);
  ASSERT_TRUE(submit.ok()) << submit.status();
  EXPECT_EQ(submit->steps[0].time_limit, absl::Minutes(1));
  EXPECT_EQ(submit->steps[0].user_retries, 0);
  EXPECT_EQ(submit->steps[0].argv[1], "a b\nc");
  EXPECT_EQ(submit->steps[1].after, (core::After{0, core::AfterWhen::kSuccess}));
  EXPECT_EQ(submit->steps[2].after, (core::After{0, core::AfterWhen::kAlways}));
}

struct BadCase {
  const char* field;
  std::function<void(v1::SubmitRunRequest&)> spoil;
};

TEST(ParseSubmit, NamesTheFieldAtFault) {
  const std::vector<BadCase> cases = {
      {"name", [](auto& r) { r.set_name("a\x1b[31m"); }},
      {"name", [](auto& r) { r.set_name(std::string(300, 'a')); }},
      {"project", [](auto& r) { r.set_project("../x"); }},
      {"project", [](auto& r) { r.set_project("-x"); }},
      {"labels", [](auto& r) { (*r.mutable_labels())["a b"] = "x"; }},
      {"labels", [](auto& r) { (*r.mutable_labels())["a"] = "x\ny"; }},
      {"snapshot_id", [](auto& r) { r.set_snapshot_id("../../etc/passwd"); }},
      {"snapshot_id", [](auto& r) { r.set_snapshot_id(std::string(64, 'A')); }},
      {"steps", [](auto& r) { r.clear_steps(); }},
      {"steps",
       [](auto& r) {
         for (int i = 0; i < 40; ++i) *r.add_steps() = r.steps(0);
       }},
      {"steps[0].name", [](auto& r) { r.mutable_steps(0)->set_name("../x"); }},
      {"steps[0].name", [](auto& r) { r.mutable_steps(0)->set_name("Train"); }},
      {"steps[0].name", [](auto& r) { *r.add_steps() = r.steps(0); }},
      {"steps[1].name",
       [](auto& r) {
         r.mutable_steps(0)->set_name("a");
         *r.add_steps() = r.steps(0);
       }},
      {"steps[0].argv", [](auto& r) { r.mutable_steps(0)->clear_argv(); }},
      {"steps[0].argv", [](auto& r) { r.mutable_steps(0)->set_argv(0, ""); }},
      {"steps[0].argv", [](auto& r) { r.mutable_steps(0)->add_argv(std::string("a\0b", 3)); }},
      {"steps[0].argv", [](auto& r) { r.mutable_steps(0)->add_argv(std::string(200'000, 'x')); }},
      {"steps[0].argv",
       [](auto& r) {
         for (int i = 0; i < 20; ++i) r.mutable_steps(0)->add_argv(std::string(100'000, 'x'));
       }},
      {"steps[0].profiles", [](auto& r) { r.mutable_steps(0)->add_profiles(""); }},
      {"steps[0].profiles",
       [](auto& r) {
         for (int i = 0; i < 20; ++i) r.mutable_steps(0)->add_profiles("h200");
       }},
      {"steps[0].env", [](auto& r) { (*r.mutable_steps(0)->mutable_env())["TP_RUN_ID"] = "x"; }},
      {"steps[0].explicit_env", [](auto& r) { (*r.mutable_steps(0)->mutable_explicit_env())["A=B"] = "x"; }},
      {"steps[0].explicit_env", [](auto& r) { (*r.mutable_steps(0)->mutable_explicit_env())[""] = "x"; }},
      {"steps[0].image", [](auto& r) { r.mutable_steps(0)->set_image("a\nb"); }},
      {"steps[0].time_limit", [](auto& r) { r.mutable_steps(0)->mutable_time_limit()->set_seconds(-1); }},
      {"steps[0].time_limit", [](auto& r) { r.mutable_steps(0)->mutable_time_limit(); }},
      {"steps[0].start_timeout", [](auto& r) { r.mutable_steps(0)->mutable_start_timeout()->set_seconds(INT64_MAX); }},
      {"steps[0].user_retries", [](auto& r) { r.mutable_steps(0)->set_user_retries(-1); }},
      {"steps[0].after", [](auto& r) { r.mutable_steps(0)->mutable_after()->set_step("main"); }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    v1::SubmitRunRequest request = Minimal();
    cases[i].spoil(request);
    const auto submit = ParseSubmit(request);
    ASSERT_EQ(submit.status().code(), absl::StatusCode::kInvalidArgument) << i << " " << submit.status();
    EXPECT_EQ(FieldOf(submit.status()), cases[i].field) << i;
  }
}

TEST(ParseSubmit, AnArrayIsOfOneStepAndOfABoundedSize) {
  v1::SubmitRunRequest request = Minimal();
  request.set_array("0-3%2");
  request.set_hold(true);
  const auto submit = ParseSubmit(request);
  ASSERT_TRUE(submit.ok()) << submit.status();
  EXPECT_EQ(submit->array->indices.size(), 4u);
  EXPECT_EQ(submit->array->limit, 2);
  EXPECT_TRUE(submit->hold);

  request.set_array("0-");
  EXPECT_EQ(FieldOf(ParseSubmit(request).status()), "array");
  request.set_array("0-999");
  request.mutable_steps(0)->add_argv(std::string(64 * 1024, 'x'));
  EXPECT_EQ(FieldOf(ParseSubmit(request).status()), "array") << "64 MiB in all";
  request = Minimal();
  request.set_array("0-3");
  request.mutable_steps(0)->set_name("main");
  request.add_steps()->add_argv("true");
  request.mutable_steps(1)->set_name("eval");
  EXPECT_EQ(FieldOf(ParseSubmit(request).status()), "array");
}

TEST(ParseNotices, TakesWhatTheDeploymentOffers) {
  core::Receivers receivers;
  receivers.webhooks["chat"];
  v1::SubmitRunRequest request = Minimal();
  v1::Notice* notice = request.add_notify();
  notice->set_to("chat");
  notice->add_on(v1::NOTICE_EVENT_FAILED);
  notice->add_on(v1::NOTICE_EVENT_PAUSED);
  const auto notices = ParseNotices(request, receivers);
  ASSERT_TRUE(notices.ok()) << notices.status();
  const core::Notice expected{"chat", {core::NoticeEvent::kFailed, core::NoticeEvent::kPaused}};
  EXPECT_EQ(*notices, std::vector<core::Notice>{expected});

  notice->set_to("chta");
  EXPECT_EQ(FieldOf(ParseNotices(request, receivers).status()), "notify");
  notice->set_to("bob@example.org");
  EXPECT_EQ(FieldOf(ParseNotices(request, receivers).status()), "notify");
  notice->set_to("chat");
  for (const int unknown : {0, 99}) {
    notice->set_on(0, static_cast<v1::NoticeEvent>(unknown));
    EXPECT_EQ(FieldOf(ParseNotices(request, receivers).status()), "notify") << unknown;
  }
}

TEST(RequestId, RequiredAndPrintable) {
  EXPECT_TRUE(CheckRequestId("3f2a-1").ok());
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\n"), std::string(129, 'a')}) {
    EXPECT_FALSE(CheckRequestId(bad).ok()) << bad;
  }
}

TEST(BodySha256, DependsOnMethodAndEveryField) {
  v1::SubmitRunRequest a = Minimal();
  for (int i = 0; i < 20; ++i) (*a.mutable_labels())["k" + std::to_string(i)] = "v";
  v1::SubmitRunRequest b = Minimal();
  for (int i = 19; i >= 0; --i) (*b.mutable_labels())["k" + std::to_string(i)] = "v";
  EXPECT_EQ(BodySha256("m", a), BodySha256("m", b)) << "the order in a map is no difference";
  EXPECT_NE(BodySha256("m", a), BodySha256("n", a));
  b.mutable_steps(0)->add_argv("x");
  EXPECT_NE(BodySha256("m", a), BodySha256("m", b));
}

TEST(PageSize, DefaultAndCut) {
  EXPECT_EQ(*ParsePageSize(0), 50);
  EXPECT_EQ(*ParsePageSize(7), 7);
  EXPECT_EQ(*ParsePageSize(1'000'000), 500);
  EXPECT_FALSE(ParsePageSize(-1).ok());
}

TEST(Errors, CarryCodeSentenceAndDetail) {
  const grpc::Status status = ToGrpc(WithReason(FieldError("run", "no {}", "such run"), "RUN_NOT_FOUND"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "no such run");
  v1::ErrorDetail detail;
  ASSERT_TRUE(detail.ParseFromString(status.error_details()));
  EXPECT_EQ(detail.reason(), "RUN_NOT_FOUND");
  EXPECT_EQ(detail.field(), "run");
  ASSERT_TRUE(detail.ParseFromString(ToGrpc(absl::UnavailableError("x")).error_details()));
  EXPECT_EQ(detail.reason(), "UNAVAILABLE");
  EXPECT_LE(ToGrpc(absl::InternalError(std::string(100'000, 'x'))).error_message().size(), 2100u);
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  for (int code = 1; code <= 16; ++code) {
    EXPECT_EQ(static_cast<int>(ToGrpc(absl::Status(static_cast<absl::StatusCode>(code), "x")).error_code()), code);
  }
}

}  // namespace
}  // namespace tp::api

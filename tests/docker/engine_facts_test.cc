#include "backends/docker/engine_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tp::docker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kVersion[] = R"({"ApiVersion":"1.41","MinAPIVersion":"1.12"})";

TEST(EngineFacts, OfAnEngine) {
  const auto facts = ReadFacts(kVersion, R"({"Runtimes":{"runc":{},"nvidia":{}},"SecurityOptions":["name=seccomp"]})");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->api_version, "1.41");
  EXPECT_TRUE(facts->nvidia_runtime);
  EXPECT_FALSE(facts->podman);
  EXPECT_TRUE(facts->cdi_cards.empty());
}

TEST(EngineFacts, CardsThatItHasByCdi) {
  const auto facts = ReadFacts(kVersion, R"({"DiscoveredDevices":[
      {"Source":"cdi","ID":"nvidia.com/gpu=0"},{"Source":"cdi","ID":"nvidia.com/gpu=3"},
      {"Source":"cdi","ID":"nvidia.com/gpu=all"},{"Source":"cdi","ID":"other.com/gpu=1"},{"Source":"x","ID":7},5]})");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(facts->cdi_cards, ElementsAre(0, 3));
}

TEST(EngineFacts, Podman) {
  const auto facts = ReadFacts(
      R"({"ApiVersion":"1.41","MinAPIVersion":"1.24","Components":[{"Name":"Conmon"},{"Name":"Podman Engine"}]})",
      "{}");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(facts->podman);
}

TEST(EngineFacts, AnApiOfAnotherTimeIsRefused) {
  for (const char* version : {R"({"ApiVersion":"1.40"})", R"({"ApiVersion":"1.90","MinAPIVersion":"1.60"})"}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadFacts(version, "{}").status())) << version;
  }
}

TEST(EngineFacts, AnEngineThatMapsUsersIsRefused) {
  for (const char* option : {"name=rootless", "name=userns"}) {
    const auto facts = ReadFacts(kVersion, std::string(R"({"SecurityOptions":["name=seccomp",")") + option + "\"]}");
    EXPECT_TRUE(absl::IsFailedPrecondition(facts.status())) << option;
    EXPECT_THAT(std::string(facts.status().message()), HasSubstr("maps users"));
  }
}

TEST(EngineFacts, SomethingElseIsNoEngine) {
  EXPECT_TRUE(absl::IsUnavailable(ReadFacts("<html>", "{}").status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadFacts(R"({"ApiVersion":1.41})", "{}").status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadFacts(kVersion, "[]").status()));
}

}  // namespace
}  // namespace tp::docker

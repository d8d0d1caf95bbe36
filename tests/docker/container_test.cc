#include "backends/docker/container.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tp::docker {
namespace {

std::string Inspect(const std::string& state, const std::string& host = "{}") {
  return R"({"Id":"c1","Name":"/k-0-1","Config":{"Labels":{"tp.pool":"0","tp.rank":"1"}},"State":)" + state +
         R"(,"HostConfig":)" + host + "}";
}

TEST(Container, NonsenseIsNoAnswer) {
  for (const char* text :
       {"", "null", "{}", "[1]", "[{}]", R"([{"Id":"a"}])", R"([{"Id":1,"State":"running"}])", "<html>"}) {
    EXPECT_FALSE(ParseContainerList(text)) << text;
    EXPECT_FALSE(ParseInspect(text)) << text;
  }
  EXPECT_TRUE(ParseContainerList("[]"));
}

TEST(Container, StatesThatMayHaveProcessesAreActive) {
  for (const char* state : {"running", "paused", "restarting", "removing", "something new"}) {
    const auto list = ParseContainerList(fmt::format(R"([{{"Id":"a","Names":["/n"],"State":"{}"}}])", state));
    ASSERT_TRUE(list);
    EXPECT_EQ(list->at(0).state, ContainerState::kActive) << state;
    EXPECT_EQ(list->at(0).name, "n");
  }
}

TEST(Container, AnEndIsToldByStateAndCode) {
  const auto end = [](const std::string& state, bool outage = false) {
    const auto inspected = ParseInspect(Inspect(state));
    return inspected ? EndOf(*inspected, outage) : EngineEnd::kFailed;
  };
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0})"), EngineEnd::kExitedZero);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0})", true), EngineEnd::kNone);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":137,"OOMKilled":true})"), EngineEnd::kOutOfMemory);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":0,"OOMKilled":true})"), EngineEnd::kExitedZero);
  EXPECT_EQ(end(R"({"Status":"exited","ExitCode":3})"), EngineEnd::kNone);
  EXPECT_EQ(end(R"({"Status":"running","ExitCode":0})"), EngineEnd::kNone);
}

TEST(Container, KnowsWhatWasNeverStarted) {
  EXPECT_FALSE(ParseInspect(Inspect(R"({"Status":"created","StartedAt":"0001-01-01T00:00:00Z"})"))->started_once);
  EXPECT_TRUE(ParseInspect(Inspect(R"({"Status":"exited","StartedAt":"2026-12-01T00:00:00.5Z"})"))->started_once);
}

std::vector<int> CardsOf(const std::string& host) {
  std::vector<int> cards;
  for (const ForeignCard& card : CardsHeldBy(Inspect("{}", host), 4)) cards.push_back(card.card);
  return cards;
}

TEST(Container, CardsOfOthersAreCounted) {
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"DeviceIDs":["1","3"]}]})"), (std::vector<int>{1, 3}));
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"DeviceIDs":["GPU-x"]}]})"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(CardsOf(R"({"DeviceRequests":[{"Count":-1}]})"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(
      CardsOf(
          R"({"Devices":[{"PathOnHost":"/dev/nvidia2","PathInContainer":"/dev/nvidia0"},{"PathOnHost":"/dev/nvidiactl"}]})"),
      (std::vector<int>{2}));
  EXPECT_EQ(CardsOf("{}"), std::vector<int>());
  EXPECT_EQ(CardsHeldBy(Inspect("{}", R"({"DeviceRequests":[{"Count":1}]})"), 4).at(0).holder, "container k-0-1");
}

}  // namespace
}  // namespace tp::docker

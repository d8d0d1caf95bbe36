#include "core/reconcile.h"

#include <gtest/gtest.h>

namespace tp::core {
namespace {

const Deployment kHere = {"lab", 2};
const AttemptTarget kTarget = {
    .key = "", .nonce = "n", .attempt_dir = "/runs/ada/a-1/attempts/main-1", .ranks_per_pool = {1}};

SeenObject Seen(const std::string& key) { return {"local", key, kTarget}; }
LiveObject Live(const std::string& key) { return {"local", key, "train-7", true}; }

TEST(Reconcile, WhatIsLiveAndThereIsNoFinding) {
  EXPECT_TRUE(
      Reconcile(kHere, {Seen("tp-lab-e2-7-s0-a1")}, {Live("tp-lab-e2-7-s0-a1")}, {Live("tp-lab-e2-7-s0-a1")}).empty());
  EXPECT_TRUE(Reconcile(kHere, {}, {}, {}).empty());
}

TEST(Reconcile, AnObjectOfNoLiveAttemptIsAnOrphan) {
  const auto findings = Reconcile(kHere, {Seen("tp-lab-e2-7-s0-a1")}, {}, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kOrphan);
  EXPECT_EQ(findings[0].target, kTarget);
}

TEST(Reconcile, OnlyTheExactDeploymentAndEpochAreTouched) {
  for (const std::string key : {"tp-lab2-e2-7-s0-a1", "tp-la-e2-7-s0-a1", "tp-lab-e1-7-s0-a1", "tp-lab-e3-7-s0-a1",
                                "tp-lab-e2-7-s0-a1x", "tp-lab-e02-7-s0-a1", "something", ""}) {
    const auto findings = Reconcile(kHere, {Seen(key)}, {}, {});
    ASSERT_EQ(findings.size(), 1U) << key;
    EXPECT_EQ(findings[0].kind, FindingKind::kForeign) << key;
    EXPECT_FALSE(findings[0].target) << key;
  }
}

TEST(Reconcile, WithoutItsPlaceAnObjectIsOnlyListed) {
  const auto findings = Reconcile(kHere, {{"local", "tp-lab-e2-7-s0-a1", std::nullopt}}, {}, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kForeign);
}

TEST(Reconcile, AnAttemptWithoutObjectIsMissing) {
  const auto findings = Reconcile(kHere, {}, {Live("tp-lab-e2-7-s0-a1")}, {Live("tp-lab-e2-7-s0-a1")});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, FindingKind::kMissing);
  EXPECT_NE(findings[0].sentence.find("train-7"), std::string::npos);
}

TEST(Reconcile, BeforeItRunsAndOnceItEndsAnAttemptNeedsNoObject) {
  LiveObject waits = Live("tp-lab-e2-7-s0-a1");
  waits.runs = false;
  EXPECT_TRUE(Reconcile(kHere, {}, {waits}, {waits}).empty());
  EXPECT_TRUE(Reconcile(kHere, {}, {waits}, {Live(waits.key)}).empty());
  EXPECT_TRUE(Reconcile(kHere, {}, {Live(waits.key)}, {waits}).empty());
}

TEST(Reconcile, WhatBeganOrEndedMeanwhileIsNoFinding) {
  EXPECT_TRUE(Reconcile(kHere, {Seen("tp-lab-e2-7-s0-a1")}, {Live("tp-lab-e2-7-s0-a1")}, {}).empty());
  EXPECT_TRUE(Reconcile(kHere, {Seen("tp-lab-e2-7-s0-a1")}, {}, {Live("tp-lab-e2-7-s0-a1")}).empty());
  EXPECT_TRUE(Reconcile(kHere, {}, {Live("tp-lab-e2-7-s0-a1")}, {}).empty());
  EXPECT_TRUE(Reconcile(kHere, {}, {}, {Live("tp-lab-e2-7-s0-a1")}).empty());
}

TEST(Reconcile, TheSameKeyOnAnotherBackendIsAnotherObject) {
  const LiveObject elsewhere = {"node", "tp-lab-e2-7-s0-a1", "train-7", true};
  const auto findings = Reconcile(kHere, {Seen("tp-lab-e2-7-s0-a1")}, {elsewhere}, {elsewhere});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, FindingKind::kOrphan);
  EXPECT_EQ(findings[1].kind, FindingKind::kMissing);
}

}  // namespace
}  // namespace tp::core

#include "store/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "random_values.h"

namespace tp::store {
namespace {

using testing::HasSubstr;

template <typename T>
class CodecTest : public testing::Test {};

using Encoded = testing::Types<core::StepSpec, std::vector<core::PastAttempt>, core::ResolvedShape,
                               std::vector<PoolPlacement>, std::vector<RankObservation>, core::Meter, core::Ending,
                               core::Sight, AttemptTarget, core::QuotaLimits>;
TYPED_TEST_SUITE(CodecTest, Encoded);

TYPED_TEST(CodecTest, RandomValuesComeBack) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto value = RandomValues(seed).Make<TypeParam>();
    const std::string json = Encode(value);
    const auto decoded = Decode<TypeParam>(json);
    ASSERT_TRUE(decoded.ok()) << decoded.status() << "\n" << json;
    ASSERT_EQ(*decoded, value) << "seed " << seed << "\n" << json;
    ASSERT_FALSE(FirstInvalidUtf8(json).has_value());
    ASSERT_EQ(json.find('\0'), std::string::npos);
  }
}

TYPED_TEST(CodecTest, CutShortAnywhereIsAnError) {
  const std::string json = Encode(RandomValues(7).Make<TypeParam>());
  for (size_t length = 0; length < json.size(); ++length) {
    ASSERT_FALSE(Decode<TypeParam>(json.substr(0, length)).ok()) << length;
  }
}

// Damage is an error or another value, never a crash; and what is accepted encodes to itself.
TYPED_TEST(CodecTest, AnyDamageIsSurvived) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomValues random(seed);
    std::string json = Encode(random.Make<TypeParam>());
    for (uint64_t changes = random.Below(4) + 1; changes > 0; --changes) {
      json[random.Below(json.size())] = static_cast<char>(random.Below(256));
    }
    const auto decoded = Decode<TypeParam>(json);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
      continue;
    }
    const auto again = Decode<TypeParam>(Encode(*decoded));
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(*again, *decoded);
  }
}

const std::string kTarget =
    R"({"v":1,"value":{"attempt_dir":"/runs/1","hosts":[{"address":"::1","declared_dead":true,"node":"n1"}],)"
    R"("key":"NUL \u0000","nonce":{"base64":"//4="},"ranks_per_pool":[2,3]}})";

TEST(Codec, IsWrittenAsDocumented) {
  const AttemptTarget target{std::string("NUL \0", 5), "\xff\xfe", "/runs/1", {2, 3}, {{"n1", "::1", true}}};
  EXPECT_EQ(Encode(target), kTarget);
  EXPECT_EQ(*Decode<AttemptTarget>(kTarget), target);

  core::StepSpec spec;
  spec.env = {{"K", "V"}};
  spec.after = core::After{3, core::AfterWhen::kAlways};
  spec.time_limit = absl::Seconds(2);
  const std::string json = Encode(spec);
  EXPECT_THAT(json, HasSubstr(R"("env":[["K","V"]])"));
  EXPECT_THAT(json, HasSubstr(R"("after":{"step":3,"when":"always"})"));
  EXPECT_THAT(json, HasSubstr(R"("time_limit":2000000)"));
  EXPECT_THAT(json, HasSubstr(R"("start_timeout":null)"));
}

std::string Changed(const std::string& what, const std::string& to) {
  std::string json = kTarget;
  json.replace(json.find(what), what.size(), to);
  return json;
}

std::string FaultOf(const std::string& json) {
  const auto decoded = Decode<AttemptTarget>(json);
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
  return std::string(Message(decoded.status()));
}

TEST(Codec, IgnoresWhatALaterVersionAdded) {
  EXPECT_TRUE(Decode<AttemptTarget>(Changed(R"("ranks_per_pool")", R"("added":[1],"ranks_per_pool")")).ok());
}

TEST(Codec, NamesWhatIsWrong) {
  EXPECT_THAT(FaultOf(Changed(R"("attempt_dir":"/runs/1",)", "")), HasSubstr("value.attempt_dir is missing"));
  EXPECT_THAT(FaultOf(Changed("[2,3]", "[2,3.5]")), HasSubstr("value.ranks_per_pool[1] is not a whole number"));
  EXPECT_THAT(FaultOf(Changed("[2,3]", "[3000000000]")), HasSubstr("value.ranks_per_pool[0] is out of range"));
  EXPECT_THAT(FaultOf(Changed("[2,3]", "[18446744073709551615]")), HasSubstr("is out of range"));
  EXPECT_THAT(FaultOf(Changed("[2,3]", "2")), HasSubstr("value.ranks_per_pool is not a list"));
  EXPECT_THAT(FaultOf(Changed(R"("/runs/1")", "7")), HasSubstr("value.attempt_dir is not text"));
  EXPECT_THAT(FaultOf(Changed("//4=", "?")), HasSubstr("value.nonce is not base64"));
  EXPECT_THAT(FaultOf(Changed(R"("v":1)", R"("v":2)")), HasSubstr("it has version 2, this tpd knows up to 1"));
  EXPECT_THAT(FaultOf("[]"), HasSubstr("not an object"));
  EXPECT_THAT(FaultOf(""), HasSubstr("not JSON"));
}

TEST(Codec, NamesTheElementOfAList) {
  std::vector<RankObservation> ranks(2);
  std::string json = Encode(ranks);
  json.replace(json.rfind("\"unknown\""), 9, "\"melting\"");
  EXPECT_THAT(std::string(Message(Decode<std::vector<RankObservation>>(json).status())),
              HasSubstr("value[1].tree is not a known word"));
}

// --- Words ----------------------------------------------------------------------------------------

template <typename E>
void ExpectDistinctWords() {
  for (int i = 0; !Word(static_cast<E>(i)).empty(); ++i) {
    EXPECT_EQ(FromWord<E>(Word(static_cast<E>(i))), static_cast<E>(i));
  }
  EXPECT_EQ(FromWord<E>("no such word"), std::nullopt);
  EXPECT_EQ(FromWord<E>(""), std::nullopt);
}

TEST(Words, ComeBack) {
  ExpectDistinctWords<core::JobState>();
  ExpectDistinctWords<core::RunWord>();
  ExpectDistinctWords<core::FailureKind>();
  ExpectDistinctWords<core::AfterWhen>();
  ExpectDistinctWords<core::Handover>();
  ExpectDistinctWords<core::EndCause>();
  ExpectDistinctWords<core::SignalSent>();
  ExpectDistinctWords<core::FenceState>();
  ExpectDistinctWords<Claim>();
  ExpectDistinctWords<Tree>();
  ExpectDistinctWords<EngineEnd>();
  ExpectDistinctWords<ExitKind>();
  ExpectDistinctWords<SignalledBy>();
  ExpectDistinctWords<StopLevel>();
  ExpectDistinctWords<OutboxKind>();
  ExpectDistinctWords<Role>();
}

}  // namespace
}  // namespace tp::store

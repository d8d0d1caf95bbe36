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

using Encoded =
    testing::Types<core::StepSpec, std::vector<core::PastAttempt>, core::ResolvedShape, std::vector<PoolPlacement>,
                   std::vector<RankObservation>, core::Meter, core::Ending, core::Sight, AttemptTarget>;
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

const std::string kSight =
    R"({"v":1,"value":{"absent_count":2,"absent_since":null,"engine_reason":"busy","last_seen":5,)"
    R"("unknown_since":null,"unknown_why":"NUL \u0000"}})";

TEST(Codec, IsWrittenAsDocumented) {
  core::Sight sight;
  sight.absent_count = 2;
  sight.engine_reason = "busy";
  sight.last_seen = absl::FromUnixMicros(5);
  sight.unknown_why = std::string("NUL \0", 5);
  EXPECT_EQ(Encode(sight), kSight);
  EXPECT_EQ(*Decode<core::Sight>(kSight), sight);

  core::StepSpec spec;
  spec.argv = {"plain", "\xff\xfe"};
  spec.env = {{"K", "V"}};
  spec.after = core::After{3, core::AfterWhen::kAlways};
  const std::string json = Encode(spec);
  EXPECT_THAT(json, HasSubstr(R"("argv":["plain",{"base64":"//4="}])"));
  EXPECT_THAT(json, HasSubstr(R"("env":[["K","V"]])"));
  EXPECT_THAT(json, HasSubstr(R"("after":{"step":3,"when":"always"})"));
}

std::string Changed(const std::string& what, const std::string& to) {
  std::string json = kSight;
  json.replace(json.find(what), what.size(), to);
  return json;
}

std::string FaultOf(const std::string& json) {
  const auto decoded = Decode<core::Sight>(json);
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
  return std::string(Message(decoded.status()));
}

TEST(Codec, IgnoresWhatALaterVersionAdded) {
  EXPECT_TRUE(Decode<core::Sight>(Changed(R"("absent_count":2)", R"("added":[1],"absent_count":2)")).ok());
}

TEST(Codec, NamesWhatIsWrong) {
  EXPECT_THAT(FaultOf(Changed(R"("absent_count":2,)", "")), HasSubstr("value.absent_count is missing"));
  EXPECT_THAT(FaultOf(Changed(R"("absent_count":2)", R"("absent_count":2.5)")), HasSubstr("is not a whole number"));
  EXPECT_THAT(FaultOf(Changed(R"("absent_count":2)", R"("absent_count":3000000000)")), HasSubstr("is out of range"));
  EXPECT_THAT(FaultOf(Changed(R"("last_seen":5)", R"("last_seen":18446744073709551615)")),
              HasSubstr("value.last_seen is out of range"));
  EXPECT_THAT(FaultOf(Changed(R"("busy")", "7")), HasSubstr("value.engine_reason is not text"));
  EXPECT_THAT(FaultOf(Changed(R"("busy")", R"({"base64":"?"})")), HasSubstr("is not base64"));
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

#include "config/override_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace tp::config {
namespace {

using core::OverrideStyle;
using Json = nlohmann::json;

std::string Text(OverrideStyle style, const char* json) {
  const auto text = OverrideText(style, Json::parse(json));
  return text.ok() ? *text : "refused: " + std::string(Message(text.status()));
}

TEST(OverrideText, Argparse) {
  const auto text = [](const char* json) { return Text(OverrideStyle::kArgparse, json); };
  EXPECT_EQ(text("{}"), "");
  EXPECT_EQ(text(R"({"gpu-memory-utilization":0.9,"tensor_parallel_size":8})"),
            "--gpu-memory-utilization=0.9 --tensor_parallel_size=8");
  EXPECT_EQ(text(R"({"eager":true,"prefix":false,"unset":null})"), "--eager --no-prefix");
  EXPECT_EQ(text(R"({"optimizer":{"lr":1e-05,"betas":[0.9,0.95]}})"),
            "--optimizer.betas 0.9 0.95 --optimizer.lr=1e-05");
  EXPECT_EQ(text(R"({"note":"it's $HOME; rm -rf *"})"), R"('--note=it'\''s $HOME; rm -rf *')");
  EXPECT_EQ(text(R"({"a":[[1]]})"), "refused: 'a' is a list of lists or mappings, which the style argparse cannot say");
  EXPECT_EQ(text(R"({"a":{"-x":1}})"),
            "refused: key '-x' in 'a' cannot be an option's name: write [A-Za-z0-9_-], no - first");
}

TEST(OverrideText, Hydra) {
  const auto text = [](const char* json) { return Text(OverrideStyle::kHydra, json); };
  EXPECT_EQ(text(R"({"trainer":{"devices":8,"strategy":"fsdp"}})"), "trainer.devices=8 trainer.strategy=fsdp");
  EXPECT_EQ(text(R"({"flag":true,"none":null})"), "flag=true none=null");
  EXPECT_EQ(text(R"({"list":[1,"x",{"k":2}]})"), "'list=[1,x,{k:2}]'");
  EXPECT_EQ(text(R"({"a":"8","b":"true","c":"null","d":"nan"})"),
            R"('a='\''8'\''' 'b='\''true'\''' 'c='\''null'\''' 'd='\''nan'\''')");
  EXPECT_EQ(text(R"({"a":"x y"})"), R"('a='\''x y'\''')");
  EXPECT_EQ(text(R"({"path":"/data/x"})"), "path=/data/x");
}

// Inside Hydra's quotes only a quote, and backslashes right before one, are escaped.
TEST(OverrideText, HydraEscapes) {
  const auto unquoted = [](const char* json) {
    std::string text = Text(OverrideStyle::kHydra, json);
    std::string out;
    for (size_t i = 1; i + 1 < text.size(); ++i) {
      out += text[i];
      if (text.compare(i, 4, R"('\'')") == 0) i += 3;
    }
    return out;
  };
  EXPECT_EQ(unquoted(R"({"a":"it's"})"), R"(a='it\'s')");
  EXPECT_EQ(unquoted(R"({"a":"c:\\d e"})"), R"(a='c:\d e')");
  EXPECT_EQ(unquoted(R"({"a":"x \\"})"), R"(a='x \\')");
  EXPECT_EQ(unquoted(R"({"a":"\\'"})"), R"(a='\\\'')");
}

TEST(OverrideText, Env) {
  const auto text = [](const char* json) { return Text(OverrideStyle::kEnv, json); };
  EXPECT_EQ(text(R"({"NCCL_DEBUG":"INFO","N":4,"F":true,"NONE":null})"), "F=true N=4 NCCL_DEBUG=INFO");
  EXPECT_EQ(text(R"({"A":"x y"})"), "'A=x y'");
  EXPECT_EQ(text(R"({"A":{"B":1}})"), "refused: 'A' is not a scalar, which the style env needs");
  EXPECT_EQ(text(R"({"TP_X":1})"), "refused: TP_X: names that begin with TP_ belong to tp");
}

TEST(OverrideText, TooMuchForOneVariableIsRefused) {
  Json json;
  json["a"] = std::string(70'000, 'x');
  EXPECT_FALSE(OverrideText(OverrideStyle::kArgparse, json).ok());
}

}  // namespace
}  // namespace tp::config

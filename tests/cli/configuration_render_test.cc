// What admins and dry runs are shown.
#include <gtest/gtest.h>

#include "cli/render/configuration.h"
#include "cli/render/forecast.h"
#include "cli/render/plan.h"

namespace tp::cli {
namespace {

TEST(ReloadPage, SaysWhatChangedAndWhatItMeans) {
  v1::ReloadConfigurationResponse response;
  response.set_registry_version(4);
  EXPECT_EQ(ReloadPage(response, {}, Terminal()), "registry version 4 is in force: no change\n");
  v1::ConfigurationChange* change = response.add_changes();
  change->set_kind(v1::CONFIGURATION_CHANGE_KIND_REMOVED);
  change->set_what("series");
  change->set_name("h200");
  response.add_restart_keys("server.listen");
  v1::QueueEffectCount* count = response.mutable_forecast()->add_counts();
  count->set_kind(v1::QUEUE_EFFECT_KIND_HELD);
  count->set_count(3);
  v1::QueueEffect* effect = response.mutable_forecast()->add_effects();
  effect->set_kind(v1::QUEUE_EFFECT_KIND_HELD);
  effect->set_run("train-4");
  effect->set_step("main");
  effect->set_sentence("there is no profile 'h200'");
  effect->set_gate(v1::GATE_HELD);
  EXPECT_EQ(ReloadPage(response, {.dry_run = true}, Terminal()),
            "registry version 4 is in force; the files would bring:\n"
            "  series h200 removed\n"
            "with a restart of tpd only: server.listen\n"
            "3 held\n"
            "RUN      STEP  BECOMES  GATE  WHY\n"
            "train-4  main  held     HELD  there is no profile 'h200'\n"
            "and 2 more\n");
}

TEST(ForecastText, CountsFirstThenWhoIsOverThenAScreenful) {
  v1::QueueForecast forecast;
  EXPECT_EQ(ForecastText(forecast, false, Terminal()), "nothing that waits or runs is touched\n");
  v1::OverQuota* over = forecast.add_over();
  over->set_user("ana");
  over->set_what("gpus of h200");
  over->set_used(12);
  over->set_limit(8);
  v1::QueueEffectCount* count = forecast.add_counts();
  count->set_kind(v1::QUEUE_EFFECT_KIND_RELEASED);
  count->set_count(40);
  for (int i = 0; i < 30; ++i) {
    v1::QueueEffect* effect = forecast.add_effects();
    effect->set_kind(v1::QUEUE_EFFECT_KIND_RELEASED);
    effect->set_run("a-" + std::to_string(i));
  }
  const std::string text = ForecastText(forecast, false, Terminal());
  EXPECT_TRUE(text.starts_with("40 released\nana is over by 4: gpus of h200 12 of 8 in use\nRUN "));
  EXPECT_NE(text.find("a-19"), std::string::npos);
  EXPECT_EQ(text.find("a-20"), std::string::npos);
  EXPECT_TRUE(text.ends_with("and 20 more: see -o wide\n"));
  const std::string wide = ForecastText(forecast, true, Terminal());
  EXPECT_NE(wide.find("a-29"), std::string::npos);
  EXPECT_TRUE(wide.ends_with("and 10 more\n"));
}

TEST(RegistryStatusPage, ShowsTheFaultAndTheDifference) {
  const absl::Time now = absl::FromUnixSeconds(1'000'000);
  v1::GetRegistryStatusResponse status;
  status.set_version(2);
  status.mutable_loaded_at()->set_seconds(1'000'000 - 3600);
  status.set_source_sha256("abc");
  EXPECT_EQ(RegistryStatusPage(status, now), "version 2, loaded 1h ago from built-in files\nfiles abc\n");
  status.set_directory("/etc/tp");
  status.set_differs_on_disk(true);
  status.add_restart_keys("jobs.heartbeat");
  status.add_card_faults("tp-a-e1-1-s0-a1 and tp-a-e1-2-s0-a1 both hold card 0 of node n1: tp stop one of the runs");
  status.mutable_last_fault()->mutable_at()->set_seconds(1'000'000 - 60);
  status.mutable_last_fault()->add_problems("/etc/tp/registry.yaml:1:1: nonsense");
  EXPECT_EQ(RegistryStatusPage(status, now),
            "version 2, loaded 1h ago from /etc/tp\n"
            "files abc\n"
            "the files on disk are not what is in force\n"
            "with a restart of tpd only: jobs.heartbeat\n"
            "tp-a-e1-1-s0-a1 and tp-a-e1-2-s0-a1 both hold card 0 of node n1: tp stop one of the runs\n"
            "the last reload failed 1m ago:\n"
            "  /etc/tp/registry.yaml:1:1: nonsense\n");
}

TEST(LaunchPlan, NamesPlacesOverridesAndOrigins) {
  v1::SubmitRunResponse response;
  EXPECT_EQ(LaunchPlan(response.plan(), Terminal()), "");
  v1::StepPlan* plan = response.add_plan();
  plan->set_step("main");
  plan->set_executor("gpu/default");
  plan->set_backend("local");
  v1::PoolPlan* pool = plan->add_pools();
  pool->set_profile("h200");
  pool->set_nodes(2);
  pool->set_gpus_per_node(8);
  const auto add = [&](const char* name, const char* value, v1::VariableOrigin origin) {
    v1::PlannedVariable* variable = pool->add_environment();
    variable->set_name(name);
    variable->set_value(value);
    variable->set_origin(origin);
  };
  add("LR", "1", v1::VARIABLE_ORIGIN_COMMAND_LINE);
  add("NET", "ib0", v1::VARIABLE_ORIGIN_LOCKED);
  v1::PlannedOverrides* overrides = pool->add_overrides();
  overrides->set_framework("vllm");
  overrides->set_text("--x=1");
  EXPECT_EQ(LaunchPlan(response.plan(), Terminal()),
            "\nlaunch of main by executor gpu/default (local)\n"
            "  h200:16: 2 rank(s), where is not known yet\n"
            "  vllm overrides: --x=1\n"
            "POOL     VARIABLE  FROM            VALUE\n"
            "h200:16  LR        --env           1\n"
            "h200:16  NET       series, locked  ib0\n");
  v1::PlannedRank* rank = pool->add_ranks();
  rank->set_node("node-1");
  rank->add_cards(0);
  rank->add_cards(1);
  EXPECT_NE(LaunchPlan(response.plan(), Terminal()).find("  h200:16: rank 0 on node-1 cards 0,1\n"), std::string::npos);
}

}  // namespace
}  // namespace tp::cli

#include "cli/render/forecast.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "cli/render/enum_word.h"
#include "cli/render/table.h"
#include "cli/render/text.h"

namespace tp::cli {
namespace {

constexpr int kScreenful = 20;

std::string KindName(v1::QueueEffectKind kind) {
  switch (kind) {
    case v1::QUEUE_EFFECT_KIND_HELD:
      return "held";
    case v1::QUEUE_EFFECT_KIND_RELEASED:
      return "released";
    case v1::QUEUE_EFFECT_KIND_RESHAPED:
      return "reshaped";
    case v1::QUEUE_EFFECT_KIND_PAUSED:
      return "paused";
    case v1::QUEUE_EFFECT_KIND_WITHDRAWN:
      return "withdrawn";
    case v1::QUEUE_EFFECT_KIND_RESUMED:
      return "resumed";
    case v1::QUEUE_EFFECT_KIND_OPENED:
      return "opened";
    default:  // of a newer server
      return "-";
  }
}

std::string Counts(const v1::QueueForecast& forecast) {
  std::string line;
  for (const v1::QueueEffectCount& count : forecast.counts()) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", count.count(), KindName(count.kind()));
  }
  return line.empty() ? "nothing that waits or runs is touched\n" : line + "\n";
}

std::string Over(const v1::QueueForecast& forecast) {
  std::string lines;
  for (const v1::OverQuota& over : forecast.over()) {
    lines += EscapeControl(fmt::format("{} is over by {}: {} {} of {} in use", over.user(), over.used() - over.limit(),
                                       over.what(), over.used(), over.limit())) +
             "\n";
  }
  return lines;
}

std::string Effects(const v1::QueueForecast& forecast, bool wide, const Terminal& terminal) {
  if (forecast.effects().empty()) return "";
  const int shown = wide ? forecast.effects_size() : std::min(forecast.effects_size(), kScreenful);
  Table table({{"RUN"}, {"STEP"}, {"BECOMES"}, {"GATE"}, {"WHY", Align::kLeft, true}});
  for (int i = 0; i < shown; ++i) {
    const v1::QueueEffect& effect = forecast.effects(i);
    table.AddRow({{effect.run()},
                  {effect.step()},
                  {KindName(effect.kind())},
                  {EnumWord(v1::Gate_Name(effect.gate()), "GATE_")},
                  {effect.sentence()}});
  }
  int64_t all = 0;
  for (const v1::QueueEffectCount& count : forecast.counts()) all += count.count();
  if (all <= shown) return table.Render(terminal);
  return table.Render(terminal) +
         fmt::format("and {} more{}\n", all - shown, shown < forecast.effects_size() ? ": see -o wide" : "");
}

}  // namespace

std::string ForecastText(const v1::QueueForecast& forecast, bool wide, const Terminal& terminal) {
  return Counts(forecast) + Over(forecast) + Effects(forecast, wide, terminal);
}

}  // namespace tp::cli

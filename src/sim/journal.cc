#include "sim/journal.h"

#include <fmt/core.h>

namespace tp::sim {
namespace {

constexpr size_t kKeptLines = 200;
constexpr uint64_t kFnvPrime = 0x100000001b3;

}  // namespace

void Journal::Add(std::string_view text) {
  if (start_us_ < 0) start_us_ = timeline_.now_us();
  const int64_t at_us = timeline_.now_us() - start_us_;
  std::string line = fmt::format("{:>10}.{:06} {}", at_us / 1'000'000, at_us % 1'000'000, text);
  for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
  if (print_) fmt::print("{}\n", line);
  last_.push_back(std::move(line));
  if (last_.size() > kKeptLines) last_.pop_front();
}

}  // namespace tp::sim

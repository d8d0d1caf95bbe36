// What happened, for people and for the proof of determinism: the last lines, a hash over all of them,
// and the first rule that was found broken.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "sim/timeline.h"

namespace tp::sim {

class Journal {
 public:
  // With `print` every line goes to stdout as it comes.
  Journal(const Timeline& timeline, bool print) : timeline_(timeline), print_(print) {}

  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    Add(fmt::format(format, std::forward<Args>(args)...));
  }

  // A rule is broken. The first one counts.
  template <typename... Args>
  void Break(fmt::format_string<Args...> format, Args&&... args) {
    std::string what = fmt::format(format, std::forward<Args>(args)...);
    Add("BROKEN: " + what);
    if (broken_.empty()) broken_ = std::move(what);
  }

  bool failed() const { return !broken_.empty(); }
  const std::string& broken() const { return broken_; }
  uint64_t hash() const { return hash_; }
  const std::deque<std::string>& last() const { return last_; }

 private:
  void Add(std::string_view text);

  const Timeline& timeline_;
  const bool print_;
  uint64_t hash_ = 0xcbf29ce484222325;
  std::string broken_;
  std::deque<std::string> last_;
  int64_t start_us_ = -1;
};

}  // namespace tp::sim

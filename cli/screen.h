// A terminal that shows one text at a time, repainted in place: each picture is one write, and lines are
// overwritten rather than cleared first, so that nothing flickers. One at a time; its end gives the
// terminal back as it was.
#pragma once

#include <string>
#include <string_view>

namespace tp::cli {

class Screen {
 public:
  explicit Screen(int fd);
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Of lines that fit the width; what is beyond the last row is left out, and says so.
  void Show(std::string_view text, int rows);

 private:
  const int fd_;
  std::string shown_;
};

// The bytes that Show writes. Pure.
std::string Picture(std::string_view text, int rows);

}  // namespace tp::cli

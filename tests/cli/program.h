// A child process of a test, with what it writes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/fd.h"

namespace tp::cli {

struct ProgramOptions {
  std::map<std::string, std::string> environment;  // all of it
  std::string directory = "/";
  int terminal_columns = 0;  // above 0: stdout is a terminal of this width, stdin and stderr another
  std::string input;         // on stdin
};

struct Finished {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

class Program {
 public:
  Program(const std::vector<std::string>& argv, const ProgramOptions& options);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Signal(int signal) const;
  // Typed at the terminal, or written to stdin.
  void Type(const std::string& text) const;
  // Until `text` has come, or the stream's end.
  void AwaitOut(const std::string& text);
  void AwaitErr(const std::string& text);
  // Reads both streams to their ends.
  Finished Wait();

 private:
  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  Finished finished_;  // what has been read so far
};

}  // namespace tp::cli

// What hosts answered, as values. Pure. Lines that are not understood are skipped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "backends/node/remote_shell.h"

namespace tp::node {

// What came back over a connection, before it is known whether all of it did.
struct FramedReply {
  bool begun = false;                // the program was started
  std::optional<RemoteReply> whole;  // nothing where its end is missing
};
FramedReply ParseFrame(std::string_view out, std::string_view token);

struct HostFacts {
  std::string host;  // as records spell it
  std::string boot_id;
  double uptime_s = 0;
  std::optional<absl::Time> now;  // the machine's clock
  std::optional<int64_t> free_bytes;
  bool operator==(const HostFacts&) const = default;
};

// A process that carries the mark of a launch or the token of a rank.
struct Mark {
  int64_t pid = 0;
  int64_t parent = 0;
  std::string text;  // `<key>/...`
  bool operator==(const Mark&) const = default;
};

struct HostReply {
  HostFacts facts;
  bool no_rank = false;  // tp-rank must be delivered first
  std::map<std::string, std::string> env;
  std::string cgroup;   // empty: none
  std::string storage;  // `ok`, or what is wrong with it
  bool no_linger = false;
  std::map<size_t, int> ranks;               // exit code of tp-rank by the question's id
  std::map<size_t, std::string> rank_words;  // what it said, where it said something
  std::vector<Mark> marks;
  bool marks_whole = false;         // all of them came
  std::optional<int> launched;      // exit code of tp-rank launch
  std::string late;                 // why an order was not carried out
  std::string why;                  // a delivery did not succeed
  std::vector<std::string> copies;  // pieces of files, copied/mirror_reply.h
  bool copies_whole = false;        // all of them came
  std::vector<std::string> gpu;     // lines of a look at cards, card_look.h
  std::string words;                // lines that belong to none of these
};

// Nothing where the facts that every program begins with are missing. `facts`: they are asked for.
std::optional<HostReply> ParseReply(std::string_view out, bool facts = true);

}  // namespace tp::node

// The limit for short jobs: a loop that spawns tp-rank for `true` and waits for it, PARALLEL at a time,
// each in an attempt directory of its own.
//   bench_ranks TP_RANK DIRECTORY PARALLEL COUNT
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char** environ;

namespace {

bool Spawn(const std::string& tp_rank, const std::string& root, int i) {
  const std::string dir = root + "/" + std::to_string(i);
  if (mkdir(dir.c_str(), 0700) != 0) return false;
  std::ofstream(dir + "/fence") << "open\n";
  std::vector<std::string> words = {tp_rank,     "run",
                                    "--dir",     dir,
                                    "--key",     "tp-bench-e1-" + std::to_string(i) + "-s0-a1",
                                    "--nonce",   "0123456789abcdef0123456789abcdef",
                                    "--pool",    "0",
                                    "--rank",    "0",
                                    "--workdir", dir,
                                    "--",        "true"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  return posix_spawn(&pid, tp_rank.c_str(), nullptr, nullptr, argv.data(), environ) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int parallel = std::atoi(argv[3]);
  const int count = std::atoi(argv[4]);
  const auto start = std::chrono::steady_clock::now();
  int started = 0;
  for (int ended = 0; ended < count; ++ended) {
    while (started < count && started - ended < parallel) {
      if (!Spawn(argv[1], argv[2], started++)) return 1;
    }
    int status = 0;
    if (wait(&status) < 0 || status != 0) return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << "{\"rate\": " << count / seconds << "}\n";
  return 0;
}

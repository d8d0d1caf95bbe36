// How many durable commits the disk makes a second: appends of 4 KiB, each followed by fdatasync.
//   bench_commit FILE SECONDS
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return 1;
  const std::vector<char> page(4096, 'x');
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::seconds(std::atoi(argv[2]));
  int64_t commits = 0;
  for (; std::chrono::steady_clock::now() < end; ++commits) {
    if (write(fd, page.data(), page.size()) != static_cast<ssize_t>(page.size()) || fdatasync(fd) != 0) return 1;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  close(fd);
  unlink(argv[1]);
  std::cout << "{\"rate\": " << static_cast<double>(commits) / seconds << "}\n";
  return 0;
}

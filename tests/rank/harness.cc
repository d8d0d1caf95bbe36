#include "harness.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

namespace tp::rank_test {
namespace {

namespace fs = std::filesystem;

std::vector<char*> ToPointers(const Arguments& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int OpenStdin(const std::string& content) {
  if (content.empty()) return open("/dev/null", O_RDONLY | O_CLOEXEC);
  FILE* file = std::tmpfile();
  if (file == nullptr) std::abort();
  std::fwrite(content.data(), 1, content.size(), file);
  std::fflush(file);
  int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
  std::fclose(file);
  lseek(fd, 0, SEEK_SET);
  return fd;
}

int Decode(int wait_status) { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1000 + WTERMSIG(wait_status); }

fs::path LonelyStub() {
  static const fs::path kCopy = [] {
    fs::path directory = fs::temp_directory_path() / ("tp-rank-stub-" + std::to_string(getpid()));
    fs::create_directories(directory);
    fs::copy_file(TP_RANK_STUB, directory / "tp-rank.sh", fs::copy_options::overwrite_existing);
    return directory / "tp-rank.sh";
  }();
  static const struct Cleaner {
    ~Cleaner() {
      std::error_code ignored;
      fs::remove_all(kCopy.parent_path(), ignored);
    }
  } kCleaner;
  return kCopy;
}

}  // namespace

std::string Name(RunnerKind kind) {
  switch (kind) {
    case RunnerKind::kBinary:
      return "Binary";
    case RunnerKind::kDash:
      return "Dash";
    case RunnerKind::kBusybox:
      return "Busybox";
  }
  return {};
}

bool Eventually(const std::function<bool()>& condition, std::chrono::seconds deadline) {
  const auto give_up = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

void WriteFile(const fs::path& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << content;
}

std::optional<Record> ReadRecord(const fs::path& path) {
  std::istringstream lines(ReadFile(path));
  std::string line;
  if (!std::getline(lines, line) || line != "tp-record 1") return std::nullopt;
  Record record;
  while (std::getline(lines, line)) {
    if (line == "end") return record;
    const size_t equals = line.find('=');
    if (equals == std::string::npos) return std::nullopt;
    record[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return std::nullopt;
}

bool IsRunning(pid_t pid) {
  const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

Child::Child(const Arguments& arguments, const Options& options) {
  std::vector<char*> argv = ToPointers(arguments);
  std::vector<char*> envp;
  if (options.environment.has_value()) envp = ToPointers(*options.environment);
  const int stdin_fd = OpenStdin(options.stdin_content);
  if (stdin_fd < 0) std::abort();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(stdin_fd, STDIN_FILENO);
    if (options.before_exec) options.before_exec();
    if (options.environment.has_value()) environ = envp.data();
    execvp(argv[0], argv.data());
    _exit(99);
  }
  close(stdin_fd);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), result_(other.result_) {}

Child::~Child() {
  if (pid_ <= 0 || result_.has_value()) return;
  kill(pid_, SIGKILL);
  Wait();
}

void Child::Signal(int number) const { ASSERT_EQ(kill(pid_, number), 0); }

int Child::Wait() {
  int wait_status = 0;
  while (!result_.has_value()) {
    if (waitpid(pid_, &wait_status, 0) == pid_) result_ = Decode(wait_status);
  }
  return *result_;
}

bool Child::HasEnded() {
  int wait_status = 0;
  if (!result_.has_value() && waitpid(pid_, &wait_status, WNOHANG) == pid_) {
    result_ = Decode(wait_status);
  }
  return result_.has_value();
}

int RunProgram(const Arguments& arguments) { return Child(arguments).Wait(); }

Attempt::Attempt() {
  std::string pattern = (fs::temp_directory_path() / "tp-rank-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  dir_ = pattern;
  key_ = "tp-test-e1-" + pattern.substr(pattern.size() - 6) + "-s0-a1";
  fs::create_directory(work());
  WriteFile(dir_ / "fence", "open\n");
}

Attempt::~Attempt() {
  std::error_code ignored;
  fs::remove_all(dir_, ignored);
}

fs::path Attempt::File(std::string_view suffix, int rank) const {
  return dir_ / ("0-" + std::to_string(rank) + std::string(suffix));
}

Record Attempt::Started(int rank) const {
  std::optional<Record> record;
  EXPECT_TRUE(Eventually([&] {
    record = ReadRecord(File(".started", rank));
    return record.has_value();
  }));
  return record.value_or(Record{});
}

Record Attempt::Exit(int rank) const {
  std::optional<Record> record = ReadRecord(File(".exit", rank));
  EXPECT_TRUE(record.has_value()) << "no end record of rank " << rank;
  return record.value_or(Record{});
}

Arguments Attempt::RunWords(const Arguments& job, const RunOptions& options) const {
  Arguments words = {"--dir",       dir_.string(),  "--key", key_,     "--nonce",
                     options.nonce, "--pool",       "0",     "--rank", std::to_string(options.rank),
                     "--workdir",   work().string()};
  words.insert(words.end(), options.extra.begin(), options.extra.end());
  words.push_back("--");
  words.insert(words.end(), job.begin(), job.end());
  return words;
}

Child Attempt::Start(RunnerKind kind, const Arguments& job, const RunOptions& options,
                     const Child::Options& child) const {
  Arguments arguments = Program(kind);
  arguments.push_back("run");
  for (std::string& word : RunWords(job, options)) arguments.push_back(std::move(word));
  return Child(arguments, child);
}

Arguments Attempt::Command(RunnerKind kind, const Arguments& before, const Arguments& after) const {
  Arguments arguments = Program(kind);
  arguments.insert(arguments.end(), before.begin(), before.end());
  arguments.insert(arguments.end(), {dir_.string(), "0", "0"});
  arguments.insert(arguments.end(), after.begin(), after.end());
  return arguments;
}

int Attempt::Order(RunnerKind kind, std::string_view order) const {
  return RunProgram(Command(kind, {"signal"}, {std::string(order)}));
}

bool Attempt::WaitForMark(std::string_view name) const {
  return Eventually([&] { return HasMark(name); });
}

bool Attempt::HasMark(std::string_view name) const { return fs::exists(work() / name); }

Arguments Program(RunnerKind kind) {
  switch (kind) {
    case RunnerKind::kBinary:
      return {TP_RANK_BINARY};
    case RunnerKind::kDash:
      return {"dash", LonelyStub().string()};
    case RunnerKind::kBusybox:
      return {"busybox", "sh", LonelyStub().string()};
  }
  return {};
}

Arguments Shell(std::string_view script) { return {"sh", "-c", std::string(script)}; }

}  // namespace tp::rank_test

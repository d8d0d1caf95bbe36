// A job that bears witness of itself: usage soak_job DIR MILLISECONDS CODE plain|stubborn|loses-runner
//
// Appends to DIR/witness, each in one write: `start` with its process's own start as the kernel knows it, `end`
// with the instant before it ends, and `twice` when another one of the same step and rank is still alive. All
// times are milliseconds of the boot clock.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static int witness_fd;

static void tell(const char* what, const char* rest) {
  char line[512];
  int length = snprintf(line, sizeof line, "%s %s %s %s %s %s %s\n", what, getenv("TP_RUN_ID"), getenv("TP_STEP"),
                        getenv("TP_ATTEMPT"), getenv("TP_POOL_INDEX"), getenv("TP_NODE_RANK"), rest);
  if (write(witness_fd, line, (size_t)length) != length) _exit(99);
}

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

// Field 22 of /proc/self/stat.
static long long own_start_ms(void) {
  char stat[1024] = "";
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, stat, sizeof stat - 1) <= 0) _exit(98);
  close(fd);
  char* field = strrchr(stat, ')');
  for (int number = 2; number < 22 && field != NULL; ++number) field = strchr(field + 1, ' ');
  return field == NULL ? 0 : atoll(field + 1) * 1000 / sysconf(_SC_CLK_TCK);
}

static void be_alone(const char* directory) {
  char path[512];
  snprintf(path, sizeof path, "%s/locks/%s.%s.%s.%s", directory, getenv("TP_RUN_ID"), getenv("TP_STEP"),
           getenv("TP_POOL_INDEX"), getenv("TP_NODE_RANK"));
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) _exit(97);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) tell("twice", "0 0");
}

static void end(int code) {
  char rest[64];
  snprintf(rest, sizeof rest, "%lld %d", now_ms(), code);
  tell("end", rest);
  _exit(code);
}

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  char path[512];
  snprintf(path, sizeof path, "%s/witness", argv[1]);
  witness_fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (witness_fd < 0) return 96;
  const int duration_ms = atoi(argv[2]);
  const int code = atoi(argv[3]);
  const char* mode = argv[4];
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, NULL);
  char rest[64];
  snprintf(rest, sizeof rest, "%lld %d", own_start_ms(), (int)getpid());
  tell("start", rest);
  be_alone(argv[1]);
  const struct timespec duration = {.tv_sec = duration_ms / 1000, .tv_nsec = duration_ms % 1000 * 1000000L};
  if (strcmp(mode, "stubborn") == 0) sigemptyset(&term);
  const int signalled = sigtimedwait(&term, NULL, &duration);
  if (strcmp(mode, "loses-runner") == 0 && signalled < 0) {
    kill(getppid(), SIGKILL);
    pause();
  }
  end(code);
}

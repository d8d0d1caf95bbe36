#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"

enum { KERNEL_THREAD_FLAG = 0x200000 };  // PF_KTHREAD

static bool read_proc_file(pid_t pid, const char* name, char* text, size_t capacity) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return io_read_text_at(AT_FDCWD, path, text, capacity) >= 0;
}

bool process_read(pid_t pid, struct process* process) {
  char text[1024];
  if (!read_proc_file(pid, "stat", text, sizeof text)) return false;
  const char* after_name = strrchr(text, ')');  // the name itself may hold anything
  if (after_name == NULL) return false;
  char state;
  int parent, session;
  unsigned flags;
  long threads;
  unsigned long long start_ticks;
  int fields = sscanf(after_name + 1, " %c %d %*d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
                      &state, &parent, &session, &flags, &threads, &start_ticks);
  if (fields != 6) return false;
  bool zombie = state == 'Z' || state == 'X' || state == 'x';
  *process = (struct process){.pid = pid,
                              .parent = parent,
                              .session = session,
                              .start_ticks = start_ticks,
                              .alive = !zombie || threads > 1,
                              .has_memory = !zombie && (flags & KERNEL_THREAD_FLAG) == 0};
  return true;
}

bool process_is_alive(pid_t pid, uint64_t start_ticks) {
  struct process process;
  return process_read(pid, &process) && process.alive && process.start_ticks == start_ticks;
}

bool process_catches(pid_t pid, int signal_number) {
  char text[8192];
  if (!read_proc_file(pid, "status", text, sizeof text)) return false;
  const char* line = strstr(text, "\nSigCgt:");
  if (line == NULL) return false;
  unsigned long long caught = strtoull(line + strlen("\nSigCgt:"), NULL, 16);
  return (caught >> (signal_number - 1) & 1) != 0;
}

// Compares a stream of NUL-separated entries with one entry, whatever the size of the stream.
struct entry_matcher {
  const char* entry;
  size_t matched;
  bool failed;  // the present entry of the stream is another one
};

static bool matcher_feed(struct entry_matcher* matcher, const char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    char expected = matcher->entry[matcher->matched];
    if (bytes[i] == '\0') {
      if (!matcher->failed && expected == '\0') return true;
      matcher->matched = 0;
      matcher->failed = false;
    } else if (!matcher->failed && bytes[i] == expected) {
      ++matcher->matched;
    } else {
      matcher->failed = true;
    }
  }
  return false;
}

static int open_proc_file(pid_t pid, const char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

// While a program is being executed, its new memory has neither environment nor arguments yet.
static bool has_arguments(pid_t pid) {
  char byte;
  int fd = open_proc_file(pid, "cmdline");
  if (fd < 0) return false;
  bool found = read(fd, &byte, 1) == 1;
  close(fd);
  return found;
}

enum process_environment process_look_up(const struct process* process, const char* entry) {
  if (!process->has_memory) return ENVIRONMENT_LACKS;
  int fd = open_proc_file(process->pid, "environ");
  if (fd < 0) return errno == EACCES || errno == EPERM ? ENVIRONMENT_LACKS : ENVIRONMENT_UNKNOWN;
  struct entry_matcher matcher = {.entry = entry};
  char bytes[4096];
  bool found = false, empty = true;
  ssize_t got;
  while (!found && (got = read(fd, bytes, sizeof bytes)) > 0) {
    empty = false;
    found = matcher_feed(&matcher, bytes, (size_t)got);
  }
  close(fd);
  if (found) return ENVIRONMENT_HAS;
  return empty && !has_arguments(process->pid) ? ENVIRONMENT_UNKNOWN : ENVIRONMENT_LACKS;
}

static void fill_siginfo(siginfo_t* info, int signal_number, int value) {
  memset(info, 0, sizeof *info);
  info->si_signo = signal_number;
  info->si_code = SI_QUEUE;
  info->si_pid = getpid();
  info->si_uid = getuid();
  info->si_value.sival_int = value;
}

// For kernels without pidfds: the pid could be reused between the look and the signal.
static bool signal_by_pid(pid_t pid, uint64_t start_ticks, int signal_number, const int* value) {
  if (!process_is_alive(pid, start_ticks)) {
    errno = ESRCH;
    return false;
  }
  if (value == NULL) return kill(pid, signal_number) == 0;
  return sigqueue(pid, signal_number, (union sigval){.sival_int = *value}) == 0;
}

bool process_signal(pid_t pid, uint64_t start_ticks, int signal_number, const int* value) {
  int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (pid_fd < 0) {
    if (errno == ESRCH) return false;
    return signal_by_pid(pid, start_ticks, signal_number, value);
  }
  bool sent = false;
  int error = ESRCH;
  if (process_is_alive(pid, start_ticks)) {
    siginfo_t info;
    if (value != NULL) fill_siginfo(&info, signal_number, *value);
    sent = syscall(SYS_pidfd_send_signal, pid_fd, signal_number, value != NULL ? &info : NULL, 0) == 0;
    error = errno;
  }
  close(pid_fd);
  errno = error;
  return sent;
}

bool process_list_add(struct process_list* list, const struct process* process) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity == 0 ? 256 : list->capacity * 2;
    struct process* items = realloc(list->items, capacity * sizeof *items);
    if (items == NULL) return false;
    list->items = items;
    list->capacity = capacity;
  }
  list->items[list->count++] = *process;
  return true;
}

void process_for_each(void (*visit)(const struct process* process, void* context), void* context) {
  DIR* directory = opendir("/proc");
  if (directory == NULL) return;
  struct dirent* entry;
  while ((entry = readdir(directory)) != NULL) {
    struct process process;
    if (isdigit((unsigned char)entry->d_name[0]) && process_read(atoi(entry->d_name), &process)) {
      visit(&process, context);
    }
  }
  closedir(directory);
}

static void add_to_list(const struct process* process, void* list) { process_list_add(list, process); }

struct process_list process_list_all(void) {
  struct process_list list = {0};
  process_for_each(add_to_list, &list);
  return list;
}

void process_list_free(struct process_list* list) {
  free(list->items);
  *list = (struct process_list){0};
}

#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io.h"
#include "process.h"

#define CGROUP2_MAGIC 0x63677270

static int open_file(const char* group, const char* name, int flags) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", group, name);
  if (length < 0 || (size_t)length >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return open(path, flags | O_CLOEXEC);
}

static bool write_file(const char* group, const char* name, const char* text) {
  int fd = open_file(group, name, O_WRONLY);
  if (fd < 0) return false;
  bool written = io_write_all(fd, text, strlen(text));
  int error = errno;
  close(fd);
  errno = error;
  return written;
}

// Finds `name value` in a flat-keyed file. -1 where there is none.
static int64_t read_counter(const char* group, const char* file, const char* name) {
  int fd = open_file(group, file, O_RDONLY);
  if (fd < 0) return -1;
  FILE* stream = fdopen(fd, "r");
  if (stream == NULL) {
    close(fd);
    return -1;
  }
  char found[64];
  long long value, result = -1;
  while (result < 0 && fscanf(stream, "%63s %lld", found, &value) == 2) {
    if (strcmp(found, name) == 0) result = value;
  }
  fclose(stream);
  return result;
}

// Calls visit for each process that is directly in the group.
static void for_each_member(const char* group, void (*visit)(pid_t, void*), void* context) {
  int fd = open_file(group, "cgroup.procs", O_RDONLY);
  if (fd < 0) return;
  FILE* stream = fdopen(fd, "r");
  if (stream == NULL) {
    close(fd);
    return;
  }
  int pid;
  while (fscanf(stream, "%d", &pid) == 1) {
    if (pid > 0) visit(pid, context);
  }
  fclose(stream);
}

static void note_own_pid(pid_t pid, void* found) {
  if (pid == getpid()) *(bool*)found = true;
}

static void kill_member(pid_t pid, void* unused) {
  (void)unused;
  kill(pid, SIGKILL);
}

bool cgroup_prepare(const char* path, bool* created) {
  struct statfs filesystem;
  *created = mkdir(path, 0755) == 0;
  if (!*created && errno != EEXIST) return false;
  if (statfs(path, &filesystem) != 0) return false;
  bool contains_self = false;
  for_each_member(path, note_own_pid, &contains_self);
  if (filesystem.f_type == CGROUP2_MAGIC && !contains_self) return true;
  if (*created) rmdir(path);
  *created = false;
  errno = contains_self ? EBUSY : EINVAL;
  return false;
}

bool cgroup_join(const char* path) { return write_file(path, "cgroup.procs", "0"); }

bool cgroup_is_populated(const char* path) { return read_counter(path, "cgroup.events", "populated") == 1; }

void cgroup_kill(const char* path) {
  if (write_file(path, "cgroup.kill", "1")) return;
  for_each_member(path, kill_member, NULL);  // kernels before 5.14
}

void cgroup_remove(const char* path) { rmdir(path); }

// The group that is mounted at `mount`; "" where all are, and in a namespace whose root is.
static void find_mounted_group(const char* mount, char* group, size_t capacity) {
  group[0] = '\0';
  FILE* stream = fopen("/proc/self/mountinfo", "re");
  if (stream == NULL) return;
  char line[8192], root[3072], point[3072];
  while (fgets(line, sizeof line, stream) != NULL) {
    if (sscanf(line, "%*d %*d %*s %3071s %3071s", root, point) != 2 || strcmp(point, mount) != 0) continue;
    snprintf(group, capacity, "%s", strcmp(root, "/") == 0 ? "" : root);
  }
  fclose(stream);
}

// The directory of this process's own group: `controller` is "" for version 2.
static bool find_own_group(const char* controller, const char* mount, char* path, size_t capacity) {
  FILE* stream = fopen("/proc/self/cgroup", "re");
  if (stream == NULL) return false;
  char line[4096], controllers[256], group[3072];
  bool found = false;
  while (!found && fgets(line, sizeof line, stream) != NULL) {
    char* name = strchr(line, ':');
    char* rest = name == NULL ? NULL : strchr(name + 1, ':');
    if (rest == NULL) continue;
    *rest = '\0';
    snprintf(controllers, sizeof controllers, "%.255s", name + 1);
    snprintf(group, sizeof group, "%.3071s", rest + 1);
    group[strcspn(group, "\n")] = '\0';
    found = strcmp(controllers, controller) == 0;
  }
  fclose(stream);
  if (!found) return false;
  // A container may see the host's names, and only its own group's directory.
  char mounted[3072];
  find_mounted_group(mount, mounted, sizeof mounted);
  size_t above = strlen(mounted);
  if (strncmp(group, mounted, above) != 0 || (group[above] != '\0' && group[above] != '/')) above = 0;
  int length = snprintf(path, capacity, "%s%s", mount, group + above);
  return length > 0 && (size_t)length < capacity;
}

static void note_stranger(pid_t pid, void* found) {
  struct process process;
  if (pid == getpid() || pid == getppid()) return;  // the parent: a shell or init that only waits
  if (process_read(pid, &process) && process.parent == getpid()) return;
  *(bool*)found = true;
}

static bool serves_as_counter(const char* group, const char* file) {
  bool shared = false;
  if (read_counter(group, file, "oom_kill") < 0) return false;
  for_each_member(group, note_stranger, &shared);
  return !shared;
}

void oom_counter_find(struct oom_counter* counter, const char* path) {
  static const struct {
    const char* controller;
    const char* mount;
    const char* file;
  } kVersions[] = {{"", "/sys/fs/cgroup", "memory.events"}, {"memory", "/sys/fs/cgroup/memory", "memory.oom_control"}};
  counter->file = NULL;
  if (path != NULL) {
    snprintf(counter->group, sizeof counter->group, "%s", path);
    counter->file = kVersions[0].file;
    return;
  }
  for (size_t i = 0; i < sizeof kVersions / sizeof kVersions[0]; ++i) {
    if (!find_own_group(kVersions[i].controller, kVersions[i].mount, counter->group, sizeof counter->group)) continue;
    if (!serves_as_counter(counter->group, kVersions[i].file)) continue;
    counter->file = kVersions[i].file;
    return;
  }
}

int64_t oom_counter_read(const struct oom_counter* counter) {
  return counter->file == NULL ? -1 : read_counter(counter->group, counter->file, "oom_kill");
}

#include "io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool io_write_all(int fd, const void* data, size_t size) {
  const char* next = data;
  while (size > 0) {
    ssize_t written = write(fd, next, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    next += written;
    size -= (size_t)written;
  }
  return true;
}

static ssize_t read_up_to(int fd, char* text, size_t capacity) {
  size_t length = 0;
  while (length < capacity) {
    ssize_t got = read(fd, text + length, capacity - length);
    if (got < 0) {
      if (errno == EINTR) continue;
      return -1;
    }
    if (got == 0) break;
    length += (size_t)got;
  }
  return (ssize_t)length;
}

ssize_t io_read_text_at(int dir_fd, const char* name, char* text, size_t capacity) {
  int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return -1;
  struct stat status;
  ssize_t length = -1;
  if (fstat(fd, &status) == 0) {
    if (S_ISREG(status.st_mode)) {
      length = read_up_to(fd, text, capacity);
    } else {
      errno = EINVAL;
    }
  }
  int error = errno;
  close(fd);
  errno = error;
  if (length < 0) return -1;
  if ((size_t)length == capacity) {
    errno = EFBIG;
    return -1;
  }
  text[length] = '\0';
  return length;
}

bool io_null_stdio(void) {
  int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  bool done = true;
  for (int target = STDIN_FILENO; target <= STDERR_FILENO; ++target) {
    if (dup2(fd, target) < 0) done = false;
  }
  if (fd > STDERR_FILENO) close(fd);
  return done;
}

bool io_fill_stdio(void) {
  for (;;) {
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0) return false;
    if (fd > STDERR_FILENO) {
      close(fd);
      return true;
    }
  }
}

static bool close_range_of(unsigned first, unsigned last) {
#ifdef SYS_close_range
  return first > last || syscall(SYS_close_range, first, last, 0) == 0;
#else
  (void)first;
  (void)last;
  return false;
#endif
}

static bool is_kept(int fd, const int* keep, size_t keep_count) {
  for (size_t i = 0; i < keep_count; ++i) {
    if (keep[i] == fd) return true;
  }
  return false;
}

// For kernels without close_range().
static void close_listed_except(const int* keep, size_t keep_count) {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == NULL) return;
  struct dirent* entry;
  while ((entry = readdir(directory)) != NULL) {
    int fd = atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != dirfd(directory) && !is_kept(fd, keep, keep_count)) close(fd);
  }
  closedir(directory);
}

void io_close_all_except(const int* keep, size_t keep_count) {
  int first = STDERR_FILENO + 1;
  for (;;) {
    int next_kept = INT_MAX;
    for (size_t i = 0; i < keep_count; ++i) {
      if (keep[i] >= first && keep[i] < next_kept) next_kept = keep[i];
    }
    unsigned last = next_kept == INT_MAX ? UINT_MAX : (unsigned)next_kept - 1;
    if (!close_range_of((unsigned)first, last)) {
      close_listed_except(keep, keep_count);
      return;
    }
    if (next_kept == INT_MAX) return;
    first = next_kept + 1;
  }
}

void io_close(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

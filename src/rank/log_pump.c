#include "log_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "helper.h"
#include "io.h"

enum {
  PIPE_BYTES = 1 << 20,
  CHUNK_BYTES = 1 << 16,
  STORAGE_RETRY_MS = 200,
  SEGMENTS_PER_LOG = 4,
};

// On the control pipe, where everything else is text.
static const char kFinishMark = '\0';

struct writer {
  struct log_state* state;
  const struct run_options* options;
  int dir_fd;
  int log_fd;
  int64_t stalled_ms;  // how long the present storage error has lasted
  char log_name[64];
  char system_log_name[64];
};

static uint64_t segment_capacity(const struct writer* writer) {
  return (uint64_t)writer->options->log_max_bytes / SEGMENTS_PER_LOG;
}

static uint64_t segment_size(const struct writer* writer) {
  return writer->state->written_bytes - writer->state->segment_start_bytes;
}

static bool ensure_open(struct writer* writer) {
  if (writer->log_fd >= 0) return true;
  writer->log_fd =
      openat(writer->dir_fd, writer->log_name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0660);
  return writer->log_fd >= 0;
}

static void segment_name(const struct writer* writer, uint64_t start, char* name, size_t capacity) {
  snprintf(name, capacity, "%s.%020llu", writer->log_name, (unsigned long long)start);
}

static void remove_oldest_above_cap(struct writer* writer) {
  struct log_state* state = writer->state;
  uint64_t cap = (uint64_t)writer->options->log_max_bytes;
  while (state->segment_count > 0 && state->written_bytes - state->segment_starts[0] > cap) {
    char name[96];
    segment_name(writer, state->segment_starts[0], name, sizeof name);
    unlinkat(writer->dir_fd, name, 0);
    --state->segment_count;
    memmove(state->segment_starts, state->segment_starts + 1, state->segment_count * sizeof state->segment_starts[0]);
  }
}

// A failed rename is tried again at the next write; the file meanwhile grows on.
static void rotate_when_full(struct writer* writer) {
  struct log_state* state = writer->state;
  if (segment_size(writer) < segment_capacity(writer)) return;
  if (state->segment_count == LOG_SEGMENTS_MAX) return;
  char name[96];
  segment_name(writer, state->segment_start_bytes, name, sizeof name);
  fdatasync(writer->log_fd);
  if (renameat(writer->dir_fd, writer->log_name, writer->dir_fd, name) != 0) return;
  io_close(&writer->log_fd);
  state->segment_starts[state->segment_count++] = state->segment_start_bytes;
  state->segment_start_bytes = state->written_bytes;
}

// Writes at most up to the segment's end. Returns the count, or -1 on a storage error.
static ssize_t write_some(struct writer* writer, const char* bytes, size_t size) {
  if (!ensure_open(writer)) return -1;
  uint64_t used = segment_size(writer), capacity = segment_capacity(writer);
  if (used < capacity && size > capacity - used) size = (size_t)(capacity - used);
  ssize_t written = write(writer->log_fd, bytes, size);
  if (written <= 0) return written < 0 && errno == EINTR ? 0 : -1;
  writer->state->written_bytes += (uint64_t)written;
  rotate_when_full(writer);
  remove_oldest_above_cap(writer);
  return written;
}

static bool write_system_log(const struct writer* writer, const char* text, size_t size) {
  int fd =
      openat(writer->dir_fd, writer->system_log_name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0660);
  if (fd < 0) return false;
  bool written = io_write_all(fd, text, size);
  close(fd);
  return written;
}

// The storage that refused the output may refuse this line too: tried again until it is written.
static void tell_of_lost_bytes(const struct writer* writer) {
  struct log_state* state = writer->state;
  if (state->told_lost_bytes == state->lost_bytes) return;
  char line[192];
  int size =
      snprintf(line, sizeof line,
               "%lld tp-rank: the storage refused the job's output for more than %lld ms: %llu bytes after the "
               "first %llu of its log are lost\n",
               (long long)clock_now().unix_us, (long long)writer->options->log_stall_ms,
               (unsigned long long)(state->lost_bytes - state->told_lost_bytes), (unsigned long long)state->gap_bytes);
  if (write_system_log(writer, line, (size_t)size)) state->told_lost_bytes = state->lost_bytes;
}

// Holds the job's output up while storage fails, but not for ever: a full disk must not keep a job
// and its cards waiting in write().
static void write_or_drop(struct writer* writer, const char* bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write_some(writer, bytes, size);
    if (written >= 0) {
      bytes += written;
      size -= (size_t)written;
      if (written > 0) writer->stalled_ms = 0;
      continue;
    }
    if (writer->stalled_ms >= writer->options->log_stall_ms) {
      writer->state->lost_bytes += size;
      writer->state->gap_bytes = writer->state->written_bytes;
      return;
    }
    clock_sleep_ms(STORAGE_RETRY_MS);
    writer->stalled_ms += STORAGE_RETRY_MS;
  }
}

// False once the pipe has ended or, for a non-blocking one, is empty.
static bool copy_data(struct writer* writer, int data_fd) {
  static char chunk[CHUNK_BYTES];
  ssize_t got = read(data_fd, chunk, sizeof chunk);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  write_or_drop(writer, chunk, (size_t)got);
  if (writer->stalled_ms == 0) tell_of_lost_bytes(writer);
  return true;
}

enum control { CONTROL_NONE, CONTROL_FINISH, CONTROL_RUNNER_GONE };

static enum control read_control(struct writer* writer, int control_fd) {
  char text[4096];
  ssize_t got = read(control_fd, text, sizeof text);
  if (got == 0) return CONTROL_RUNNER_GONE;
  if (got < 0) return CONTROL_NONE;
  const char* mark = memchr(text, kFinishMark, (size_t)got);
  size_t size = mark == NULL ? (size_t)got : (size_t)(mark - text);
  if (size > 0) write_system_log(writer, text, size);
  return mark == NULL ? CONTROL_NONE : CONTROL_FINISH;
}

static void drain(struct writer* writer, int data_fd) {
  fcntl(data_fd, F_SETFL, O_NONBLOCK);
  while (copy_data(writer, data_fd)) {
  }
}

static void pump(struct writer* writer, int data_fd, int control_fd) {
  struct pollfd waits[] = {{.fd = data_fd, .events = POLLIN}, {.fd = control_fd, .events = POLLIN}};
  // poll() skips a negative descriptor: each one becomes -1 when it has ended. Without its runner
  // the helper stays until the last process of the tree has closed its output.
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    if (poll(waits, 2, -1) < 0) continue;
    if (waits[0].fd >= 0 && waits[0].revents != 0 && !copy_data(writer, data_fd)) waits[0].fd = -1;
    if (waits[1].fd < 0 || waits[1].revents == 0) continue;
    switch (read_control(writer, control_fd)) {
      case CONTROL_NONE:
        break;
      case CONTROL_FINISH:
        drain(writer, data_fd);
        return;
      case CONTROL_RUNNER_GONE:
        waits[1].fd = -1;
        break;
    }
  }
}

static void run_helper(struct log_state* state, int dir_fd, const struct run_options* options, int data_fd,
                       int control_fd) {
  struct writer writer = {.state = state, .options = options, .dir_fd = dir_fd, .log_fd = -1};
  snprintf(writer.log_name, sizeof writer.log_name, "%s-%s.log", options->pool, options->rank);
  snprintf(writer.system_log_name, sizeof writer.system_log_name, "%s-%s.system.log", options->pool, options->rank);
  ensure_open(&writer);  // followers find an empty log from the start
  pump(&writer, data_fd, control_fd);
  tell_of_lost_bytes(&writer);
  if (state->written_bytes > 0 && writer.log_fd >= 0) fsync(writer.log_fd);
}

bool log_pump_restart(struct log_pump* pump, struct log_state* state, int dir_fd, const struct run_options* options) {
  int control[2];
  if (pipe2(control, O_CLOEXEC) != 0) return false;
  int keep[] = {dir_fd, pump->data_read_fd, control[0]};
  pid_t pid = helper_fork(keep, sizeof keep / sizeof keep[0]);
  if (pid == 0) {
    run_helper(state, dir_fd, options, pump->data_read_fd, control[0]);
    _exit(0);
  }
  int error = errno;
  close(control[0]);
  if (pid < 0) {
    close(control[1]);
    errno = error;
    return false;
  }
  io_close(&pump->control_fd);
  fcntl(control[1], F_SETFL, O_NONBLOCK);
  pump->control_fd = control[1];
  pump->pid = pid;
  return true;
}

bool log_pump_start(struct log_pump* pump, struct log_state* state, int dir_fd, const struct run_options* options) {
  int data[2];
  *pump = (struct log_pump){.data_read_fd = -1, .data_write_fd = -1, .control_fd = -1};
  if (pipe2(data, O_CLOEXEC) != 0) return false;
  fcntl(data[1], F_SETPIPE_SZ, PIPE_BYTES);
  pump->data_read_fd = data[0];
  pump->data_write_fd = data[1];
  return log_pump_restart(pump, state, dir_fd, options);
}

void log_pump_say(const struct log_pump* pump, const char* format, ...) {
  char line[512];
  int prefix = snprintf(line, sizeof line, "%lld tp-rank: ", (long long)clock_now().unix_us);
  size_t room = sizeof line - (size_t)prefix - 1;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line + prefix, room, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  size_t end = (size_t)prefix + ((size_t)length < room ? (size_t)length : room - 1);
  line[end] = '\n';
  (void)!write(pump->control_fd, line, end + 1);
}

void log_pump_finish(struct log_pump* pump) {
  (void)!write(pump->control_fd, &kFinishMark, 1);
  io_close(&pump->control_fd);
}

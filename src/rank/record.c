#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "io.h"

static const char kFirstLine[] = "tp-record 1";
static const char kLastLine[] = "end";

enum {
  RESERVED_BYTES = 4096,
  PUBLISH_TRIES = 6,
  PUBLISH_RETRY_MS = 100,  // doubled at each try
};

static void append(struct record* record, const char* format, va_list arguments) {
  size_t room = sizeof record->text - record->length;
  int length = vsnprintf(record->text + record->length, room, format, arguments);
  if (length < 0 || (size_t)length >= room) {
    record->overflowed = true;
    return;
  }
  record->length += (size_t)length;
}

__attribute__((format(printf, 2, 3))) static void append_format(struct record* record, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(record, format, arguments);
  va_end(arguments);
}

void record_begin(struct record* record) {
  record->length = 0;
  record->overflowed = false;
  append_format(record, "%s\n", kFirstLine);
}

void record_add(struct record* record, const char* name, const char* format, ...) {
  append_format(record, "%s=", name);
  va_list arguments;
  va_start(arguments, format);
  append(record, format, arguments);
  va_end(arguments);
  append_format(record, "\n");
}

void record_end(struct record* record) { append_format(record, "%s\n", kLastLine); }

static bool store(int fd, const struct record* record) {
  if (record->overflowed) {
    errno = EFBIG;
    return false;
  }
  return io_write_all(fd, record->text, record->length) && ftruncate(fd, (off_t)record->length) == 0 && fsync(fd) == 0;
}

// close() may report a write error that a network filesystem delayed.
static bool store_and_close(int fd, const struct record* record) {
  bool stored = store(fd, record);
  int error = errno;
  if (close(fd) != 0 && stored) return false;
  errno = error;
  return stored;
}

bool record_create(int dir_fd, const char* name, const struct record* record) {
  int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0660);
  if (fd < 0) return false;
  if (store_and_close(fd, record)) return true;
  int error = errno;
  unlinkat(dir_fd, name, 0);
  errno = error;
  return false;
}

bool record_reserve(int dir_fd, const char* temporary) {
  char blank[RESERVED_BYTES];
  memset(blank, ' ', sizeof blank);
  int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0660);
  if (fd < 0) return false;
  bool reserved = io_write_all(fd, blank, sizeof blank);
  int error = errno;
  close(fd);
  if (!reserved) unlinkat(dir_fd, temporary, 0);
  errno = error;
  return reserved;
}

static bool publish_once(int dir_fd, const char* temporary, const char* name, const struct record* record) {
  int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
  if (fd < 0) return false;
  return store_and_close(fd, record) && renameat(dir_fd, temporary, dir_fd, name) == 0 && fsync(dir_fd) == 0;
}

bool record_publish(int dir_fd, const char* temporary, const char* name, const struct record* record) {
  int64_t delay_ms = PUBLISH_RETRY_MS;
  for (int tries = 1;; ++tries) {
    if (publish_once(dir_fd, temporary, name, record)) return true;
    if (tries == PUBLISH_TRIES) break;
    clock_sleep_ms(delay_ms);
    delay_ms *= 2;
  }
  int error = errno;
  unlinkat(dir_fd, temporary, 0);
  errno = error;
  return false;
}

static const char* next_line(const struct record_view* view, const char* line) {
  const char* next = line + strlen(line) + 1;
  return next < view->text + view->length ? next : NULL;
}

static size_t name_length(const char* line) { return strcspn(line, "="); }

static bool repeats_an_earlier_name(const struct record_view* view, const char* line) {
  size_t length = name_length(line);
  for (const char* other = view->text; other != line; other = next_line(view, other)) {
    if (strncmp(other, line, length + 1) == 0) return true;
  }
  return false;
}

static bool is_well_formed(const struct record_view* view) {
  const char* line = view->text;
  if (strcmp(line, kFirstLine) != 0) return false;
  while ((line = next_line(view, line)) != NULL) {
    if (strcmp(line, kLastLine) == 0) return next_line(view, line) == NULL;
    size_t length = name_length(line);
    if (length == 0 || line[length] != '=' || repeats_an_earlier_name(view, line)) return false;
  }
  return false;
}

enum record_status record_load(int dir_fd, const char* name, struct record_view* view) {
  ssize_t length = io_read_text_at(dir_fd, name, view->text, sizeof view->text);
  if (length < 0) {
    if (errno == ENOENT) return RECORD_ABSENT;
    return errno == EFBIG ? RECORD_TORN : RECORD_UNREADABLE;
  }
  view->length = (size_t)length;
  if (length == 0 || view->text[length - 1] != '\n') return RECORD_TORN;
  if (memchr(view->text, '\0', view->length) != NULL) return RECORD_TORN;
  for (size_t i = 0; i < view->length; ++i) {
    if (view->text[i] == '\n') view->text[i] = '\0';
  }
  return is_well_formed(view) ? RECORD_READ : RECORD_TORN;
}

const char* record_get(const struct record_view* view, const char* name) {
  size_t length = strlen(name);
  for (const char* line = view->text; line != NULL; line = next_line(view, line)) {
    if (strncmp(line, name, length) == 0 && line[length] == '=') return line + length + 1;
  }
  return NULL;
}

bool record_is(const struct record_view* view, const char* name, const char* value) {
  const char* found = record_get(view, name);
  return found != NULL && strcmp(found, value) == 0;
}

long long record_get_number(const struct record_view* view, const char* name) {
  const char* text = record_get(view, name);
  if (text == NULL || *text == '\0') return -1;
  char* end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  return errno != 0 || *end != '\0' || number < 0 ? -1 : number;
}

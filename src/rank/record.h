// Records of the launch contract: text, `tp-record 1`, one name=value a line, `end`.
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { RECORD_CAPACITY_BYTES = 8192 };

struct record {
  char text[RECORD_CAPACITY_BYTES];
  size_t length;
  bool overflowed;
};

void record_begin(struct record* record);
void record_add(struct record* record, const char* name, const char* format, ...) __attribute__((format(printf, 3, 4)));
void record_end(struct record* record);

// Creates `name` in the directory with the record in it and makes it durable, except for the
// directory entry. False with errno; nothing is left behind then.
bool record_create(int dir_fd, const char* name, const struct record* record);

// Reserves space for a later record, so that it can be written on a full disk.
bool record_reserve(int dir_fd, const char* temporary);

// Writes the record to `temporary` (reserved or not), makes it durable and renames it to `name`,
// retrying for a few seconds. False with errno when it is not on storage.
bool record_publish(int dir_fd, const char* temporary, const char* name, const struct record* record);

enum record_status {
  RECORD_READ,
  RECORD_ABSENT,
  RECORD_TORN,        // incomplete or not a record: counts as absent
  RECORD_UNREADABLE,  // errno says why
};

// A record read from storage; `text` holds NUL-terminated lines.
struct record_view {
  char text[RECORD_CAPACITY_BYTES + 1];
  size_t length;
};

enum record_status record_load(int dir_fd, const char* name, struct record_view* view);

// The value of a name, or NULL.
const char* record_get(const struct record_view* view, const char* name);

// True when the record has the name with exactly that value.
bool record_is(const struct record_view* view, const char* name, const char* value);

// The value as a non-negative number, or -1.
long long record_get_number(const struct record_view* view, const char* name);

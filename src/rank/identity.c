#include "identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "io.h"
#include "process.h"

// The host becomes part of file names and of record lines.
static void copy_host(char* host, size_t capacity) {
  struct utsname names;
  const char* name = uname(&names) == 0 && names.nodename[0] != '\0' ? names.nodename : "unknown";
  size_t length = 0;
  for (; name[length] != '\0' && length + 1 < capacity; ++length) {
    unsigned char c = (unsigned char)name[length];
    host[length] = isalnum(c) || c == '-' || c == '.' ? (char)c : '_';
  }
  host[length] = '\0';
}

static bool read_boot_id(char* boot_id, size_t capacity) {
  char text[64];
  ssize_t length = io_read_text_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
  if (length < 0) return false;
  text[strcspn(text, "\n")] = '\0';
  if (text[0] == '\0' || strlen(text) >= capacity) {
    errno = EINVAL;
    return false;
  }
  memcpy(boot_id, text, strlen(text) + 1);
  return true;
}

static bool make_random(char* hex, size_t byte_count) {
  unsigned char bytes[32];
  if (getrandom(bytes, byte_count, 0) != (ssize_t)byte_count) return false;
  for (size_t i = 0; i < byte_count; ++i) sprintf(hex + 2 * i, "%02x", bytes[i]);
  return true;
}

bool identity_read(struct identity* identity) {
  struct process self;
  copy_host(identity->host, sizeof identity->host);
  if (!read_boot_id(identity->boot_id, sizeof identity->boot_id)) return false;
  if (!make_random(identity->random, sizeof identity->random / 2)) return false;
  if (!process_read(getpid(), &self)) return false;
  identity->pid = self.pid;
  identity->start_ticks = self.start_ticks;
  return true;
}

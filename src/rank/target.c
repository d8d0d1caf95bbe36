#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "exit_codes.h"
#include "identity.h"
#include "options.h"

static int load_claim(struct target* target, const char* dir) {
  char name[64];
  target->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (target->dir_fd < 0) return errno == ENOENT ? EXIT_NO_RECORD : EXIT_STORAGE;
  snprintf(name, sizeof name, "%s-%s.claim", target->pool, target->rank);
  switch (record_load(target->dir_fd, name, &target->claim)) {
    case RECORD_READ:
      return EXIT_DONE;
    case RECORD_ABSENT:
    case RECORD_TORN:
      return EXIT_NO_RECORD;
    case RECORD_UNREADABLE:
      return EXIT_STORAGE;
  }
  return EXIT_STORAGE;
}

int target_open(struct target* target, const char* dir, const char* pool, const char* rank) {
  struct identity self;
  if (!options_is_index(pool) || !options_is_index(rank)) return EXIT_USAGE;
  target->pool = pool;
  target->rank = rank;
  int loaded = load_claim(target, dir);
  if (loaded != EXIT_DONE) return loaded;
  if (!identity_read(&self)) return EXIT_STORAGE;
  // Two containers of one host share the boot id, but not the meaning of a pid.
  if (!record_is(&target->claim, "boot_id", self.boot_id) || !record_is(&target->claim, "host", self.host)) {
    return EXIT_OTHER_HOST;
  }
  long long pid = record_get_number(&target->claim, "runner_pid");
  long long start_ticks = record_get_number(&target->claim, "runner_start_ticks");
  if (pid <= 0 || start_ticks < 0 || record_get(&target->claim, "key") == NULL ||
      record_get(&target->claim, "nonce") == NULL) {
    return EXIT_NO_RECORD;
  }
  target->runner_pid = (pid_t)pid;
  target->runner_start_ticks = (uint64_t)start_ticks;
  return EXIT_DONE;
}

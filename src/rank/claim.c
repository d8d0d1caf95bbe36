#include "claim.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

static const char kAttemptClaim[] = "attempt.claim";

void claim_add_identity(struct record* record, const struct run_options* options, const struct identity* identity) {
  record_add(record, "key", "%s", options->key);
  record_add(record, "nonce", "%s", options->nonce);
  record_add(record, "pool", "%s", options->pool);
  record_add(record, "rank", "%s", options->rank);
  record_add(record, "host", "%s", identity->host);
  record_add(record, "boot_id", "%s", identity->boot_id);
}

// Whatever link() answers, only what is found under the name afterwards counts: an answer may be
// lost on a network filesystem after the link was made.
static void try_link(int dir_fd, const char* name, const struct record* record, const struct identity* identity) {
  char temporary[256];
  snprintf(temporary, sizeof temporary, ".claim.%s.%s.%s", identity->host, identity->boot_id, identity->random);
  if (!record_create(dir_fd, temporary, record)) return;
  (void)!linkat(dir_fd, temporary, dir_fd, name, 0);
  unlinkat(dir_fd, temporary, 0);
}

static enum claim_result judge_attempt(const struct record_view* claim, const struct run_options* options,
                                       const char** reason) {
  if (!record_is(claim, "key", options->key)) {
    *reason = "attempt.claim is of another attempt";
    return CLAIM_STORAGE_ERROR;
  }
  if (record_is(claim, "owner", "fence")) {
    *reason = "tpd fenced this attempt";
    return CLAIM_NOT_OWNER;
  }
  if (record_is(claim, "owner", "launch") && record_is(claim, "nonce", options->nonce)) {
    return CLAIM_WON;
  }
  *reason = "another launch owns this attempt";
  return CLAIM_NOT_OWNER;
}

static enum claim_result claim_attempt(int dir_fd, const struct run_options* options, const struct identity* identity,
                                       const char** reason) {
  struct record_view claim;
  if (record_load(dir_fd, kAttemptClaim, &claim) != RECORD_READ) {
    struct record record;
    record_begin(&record);
    claim_add_identity(&record, options, identity);
    record_add(&record, "owner", "launch");
    record_add(&record, "random", "%s", identity->random);
    record_end(&record);
    try_link(dir_fd, kAttemptClaim, &record, identity);
    if (record_load(dir_fd, kAttemptClaim, &claim) != RECORD_READ) {
      *reason = "attempt.claim can be neither made nor read";
      return CLAIM_STORAGE_ERROR;
    }
  }
  return judge_attempt(&claim, options, reason);
}

static enum claim_result claim_process(int dir_fd, const struct run_options* options, const char* cgroup,
                                       const struct identity* identity, const char** reason) {
  char name[64];
  snprintf(name, sizeof name, "%s-%s.claim", options->pool, options->rank);
  struct record record;
  record_begin(&record);
  claim_add_identity(&record, options, identity);
  record_add(&record, "runner", "tp-rank");
  record_add(&record, "runner_pid", "%d", (int)identity->pid);
  record_add(&record, "runner_start_ticks", "%llu", (unsigned long long)identity->start_ticks);
  record_add(&record, "cgroup", "%s", cgroup == NULL ? "" : cgroup);
  record_add(&record, "random", "%s", identity->random);
  record_end(&record);
  try_link(dir_fd, name, &record, identity);
  struct record_view claim;
  if (record_load(dir_fd, name, &claim) != RECORD_READ || !record_is(&claim, "key", options->key)) {
    *reason = "the rank's claim can be neither made nor read";
    return CLAIM_STORAGE_ERROR;
  }
  if (record_is(&claim, "random", identity->random)) return CLAIM_WON;
  *reason = "another process runs this rank";
  return CLAIM_NOT_OWNER;
}

enum claim_result claim_rank(int dir_fd, const struct run_options* options, const char* cgroup,
                             const struct identity* identity, const char** reason) {
  enum claim_result result = claim_attempt(dir_fd, options, identity, reason);
  if (result != CLAIM_WON) return result;
  result = claim_process(dir_fd, options, cgroup, identity, reason);
  if (result != CLAIM_WON) return result;
  if (fsync(dir_fd) != 0) {
    *reason = "the claims can't be made durable";
    return CLAIM_STORAGE_ERROR;
  }
  return CLAIM_WON;
}

enum fence_state fence_read(int dir_fd) {
  char text[64];
  if (io_read_text_at(dir_fd, "fence", text, sizeof text) < 0) return FENCE_UNREADABLE;
  text[strcspn(text, "\n")] = '\0';
  if (strcmp(text, "open") == 0) return FENCE_OPEN;
  if (strcmp(text, "closed") == 0) return FENCE_CLOSED;
  return FENCE_UNREADABLE;
}

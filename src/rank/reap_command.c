// `tp-rank reap [--check] DIR POOL RANK`: ends what is left of a rank whose runner is gone.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "clock.h"
#include "commands.h"
#include "exit_codes.h"
#include "job.h"
#include "process.h"
#include "target.h"
#include "tree.h"

enum {
  ROUNDS = 250,
  ROUND_MS = 20,
  CHECKS = 3,
  BETWEEN_LOOKS_MS = 5,
  TELL_TRIES = 100,
  TELL_MS = 2,
};

// By what a process is known as one of the job's.
struct traces {
  char token_entry[sizeof JOB_TOKEN_NAME + JOB_TOKEN_CAPACITY];
  uint64_t runner_start_ticks;  // no process of the tree is older
  pid_t session;                // the first process's pid; 0 where no start record tells
  uint64_t session_start_ticks;
  const char* cgroup;  // NULL where none
};

static struct traces find_traces(const struct target* target, struct record_view* start) {
  struct traces traces = {.runner_start_ticks = target->runner_start_ticks};
  char token[JOB_TOKEN_CAPACITY], name[64];
  const char* key = record_get(&target->claim, "key");
  const char* nonce = record_get(&target->claim, "nonce");
  job_format_token(token, key, target->pool, target->rank, nonce);
  snprintf(traces.token_entry, sizeof traces.token_entry, "%s=%s", JOB_TOKEN_NAME, token);
  const char* cgroup = record_get(&target->claim, "cgroup");
  if (cgroup != NULL && cgroup[0] == '/') traces.cgroup = cgroup;
  snprintf(name, sizeof name, "%s-%s.started", target->pool, target->rank);
  if (record_load(target->dir_fd, name, start) == RECORD_READ && record_is(start, "key", key) &&
      record_is(start, "nonce", nonce)) {
    long long pid = record_get_number(start, "pid");
    long long start_ticks = record_get_number(start, "pid_start_ticks");
    if (pid > 0 && start_ticks >= 0) {
      traces.session = (pid_t)pid;
      traces.session_start_ticks = (uint64_t)start_ticks;
    }
  }
  return traces;
}

// The kernel reuses no pid that is still a session's id. So while the session's leader is gone, its
// id means the job's session as long as the member is not older than the job.
static bool is_of_session(const struct process* process, const struct traces* traces) {
  if (traces->session == 0 || process->session != traces->session) return false;
  if (process->start_ticks < traces->session_start_ticks) return false;
  struct process leader;
  return !process_read(traces->session, &leader) || leader.start_ticks == traces->session_start_ticks;
}

// What one look at all processes finds.
struct findings {
  const struct traces* traces;
  struct process_list all;
  struct process_list tree;
  struct process_list undecided;  // could not be told: their programs are just being executed
};

static void decide(const struct process* process, struct findings* findings, struct process_list* undecided) {
  if (!process->alive || process->pid == getpid()) return;
  if (process->start_ticks < findings->traces->runner_start_ticks) return;
  if (is_of_session(process, findings->traces)) {
    process_list_add(&findings->tree, process);
    return;
  }
  switch (process_look_up(process, findings->traces->token_entry)) {
    case ENVIRONMENT_HAS:
      process_list_add(&findings->tree, process);
      return;
    case ENVIRONMENT_LACKS:
      return;
    case ENVIRONMENT_UNKNOWN:
      process_list_add(undecided, process);
      return;
  }
}

static void examine(const struct process* process, void* context) {
  struct findings* findings = context;
  process_list_add(&findings->all, process);
  decide(process, findings, &findings->undecided);
}

// On a busy machine some program is being executed at any moment, yet none for long.
static void tell_undecided(struct findings* findings) {
  for (int tries = 0; findings->undecided.count > 0 && tries < TELL_TRIES; ++tries) {
    clock_sleep_ms(TELL_MS);
    struct process_list still = {0};
    for (size_t i = 0; i < findings->undecided.count; ++i) {
      const struct process* before = &findings->undecided.items[i];
      struct process now;
      if (process_read(before->pid, &now) && now.start_ticks == before->start_ticks) decide(&now, findings, &still);
    }
    process_list_free(&findings->undecided);
    findings->undecided = still;
  }
}

static size_t count_alive(const struct process_list* tree) {
  size_t alive = 0;
  for (size_t i = 0; i < tree->count; ++i) alive += tree->items[i].alive;
  return alive;
}

// One look; with kill_found also SIGKILL to all that is found.
static bool look(const struct traces* traces, bool kill_found) {
  bool populated = traces->cgroup != NULL && cgroup_is_populated(traces->cgroup);
  if (populated && kill_found) cgroup_kill(traces->cgroup);
  struct findings findings = {.traces = traces};
  process_for_each(examine, &findings);
  tell_undecided(&findings);
  tree_close_over_children(&findings.tree, &findings.all);
  bool gone = !populated && findings.undecided.count == 0 && count_alive(&findings.tree) == 0;
  if (kill_found) tree_signal(&findings.tree, SIGKILL);
  process_list_free(&findings.undecided);
  process_list_free(&findings.all);
  process_list_free(&findings.tree);
  return gone;
}

// Two looks: a process may be forked behind one that passes by, while its parent ends ahead of it.
static bool is_gone(const struct traces* traces, bool kill_found) {
  if (!look(traces, kill_found)) return false;
  clock_sleep_ms(BETWEEN_LOOKS_MS);
  return look(traces, kill_found);
}

static int reap(const struct traces* traces) {
  for (int round = 0; round < ROUNDS; ++round) {
    if (is_gone(traces, true)) {
      if (traces->cgroup != NULL) cgroup_remove(traces->cgroup);
      return EXIT_DONE;
    }
    clock_sleep_ms(ROUND_MS);
  }
  return EXIT_TREE_NOT_GONE;
}

// What was just ended may be there a moment longer.
static int check(const struct traces* traces) {
  for (int tries = 0; tries < CHECKS; ++tries) {
    if (is_gone(traces, false)) return EXIT_DONE;
    clock_sleep_ms(BETWEEN_LOOKS_MS);
  }
  return EXIT_TREE_NOT_GONE;
}

int reap_command(char** arguments) {
  bool check_only = arguments[0] != NULL && strcmp(arguments[0], "--check") == 0;
  if (check_only) ++arguments;
  for (int i = 0; i < 3; ++i) {
    if (arguments[i] == NULL) return EXIT_USAGE;
  }
  if (arguments[3] != NULL) return EXIT_USAGE;
  struct target target;
  int opened = target_open(&target, arguments[0], arguments[1], arguments[2]);
  if (opened != EXIT_DONE) return opened;
  if (process_is_alive(target.runner_pid, target.runner_start_ticks)) return EXIT_RUNNER_ALIVE;
  struct record_view start;
  struct traces traces = find_traces(&target, &start);
  return check_only ? check(&traces) : reap(&traces);
}

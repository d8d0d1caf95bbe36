#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "claim.h"
#include "clock.h"
#include "errno_name.h"
#include "exit_codes.h"
#include "heartbeat.h"
#include "helper.h"
#include "identity.h"
#include "io.h"
#include "job.h"
#include "log_pump.h"
#include "process.h"
#include "record.h"
#include "signals.h"
#include "tree.h"

enum {
  TREE_POLL_MS = 20,
  KILL_ROUND_MIN_MS = 10,
  KILL_ROUND_MAX_MS = 500,
  RESTART_RETRY_MS = 1000,
};

// The loaded program, as the linker names it.
extern char image_start[] __asm__("__executable_start");
extern char image_end[] __asm__("_end");

// Shared with the helpers, so that a replaced one goes on where its predecessor was.
struct shared_state {
  struct log_state log;
  uint64_t beat_count;
};

struct runner {
  const struct run_options* options;
  struct identity identity;
  int dir_fd;
  int signal_fd;
  mode_t job_umask;
  struct shared_state* shared;
  struct log_pump log_pump;
  struct heartbeat heartbeat;
  pid_t start_recorder;  // the helper that writes .started, while it runs
  bool log_finishing;
  bool log_finished;

  const char* cgroup;  // NULL: none given, or not usable
  bool cgroup_created;
  struct oom_counter oom_counter;
  int64_t oom_kills_before;

  struct job job;
  bool job_started;  // the program was executed
  bool job_ended;    // the first process is reaped
  int job_wait_status;
  struct job_report not_started;  // valid when the job ended without having started
  bool tree_reaped;               // no child is left apart from helpers
  bool kill_requested;
  bool tree_gone;
  struct stamp ended;  // valid when tree_gone
  struct signal_journal journal;
};

// Before the log helper runs, stderr is all there is.
__attribute__((format(printf, 2, 3))) static int refuse(int exit_code, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "tp-rank: %s\n", text);
  return exit_code;
}

static void name_file(const struct runner* runner, const char* suffix, char* name, size_t capacity) {
  snprintf(name, capacity, "%s-%s%s", runner->options->pool, runner->options->rank, suffix);
}

static void name_temporary(const struct runner* runner, const char* suffix, char* name, size_t capacity) {
  snprintf(name, capacity, ".%s-%s%s.%s", runner->options->pool, runner->options->rank, suffix,
           runner->identity.random);
}

// ---- records

static void add_start(const struct runner* runner, struct record* record) {
  claim_add_identity(record, runner->options, &runner->identity);
  record_add(record, "runner", "tp-rank");
  record_add(record, "precision_us", "1");
  record_add(record, "runner_pid", "%d", (int)runner->identity.pid);
  record_add(record, "runner_start_ticks", "%llu", (unsigned long long)runner->identity.start_ticks);
  record_add(record, "pid", "%d", (int)runner->job.pid);
  record_add(record, "pid_start_ticks", "%llu", (unsigned long long)runner->job.start_ticks);
  record_add(record, "started_boot_us", "%lld", (long long)runner->job.started.boot_us);
  record_add(record, "started_unix_us", "%lld", (long long)runner->job.started.unix_us);
  record_add(record, "cgroup", "%s", runner->cgroup == NULL ? "" : runner->cgroup);
}

static bool publish_start(const struct runner* runner) {
  char temporary[96], name[64];
  struct record record;
  record_begin(&record);
  add_start(runner, &record);
  record_end(&record);
  name_temporary(runner, ".started", temporary, sizeof temporary);
  name_file(runner, ".started", name, sizeof name);
  return record_publish(runner->dir_fd, temporary, name, &record);
}

// A start record that can't be written is no reason to end the job: the end record repeats it.
static void start_recording(struct runner* runner) {
  pid_t pid = helper_fork(&runner->dir_fd, 1);
  if (pid == 0) _exit(publish_start(runner) ? EXIT_DONE : EXIT_STORAGE);
  if (pid < 0) {
    log_pump_say(&runner->log_pump, "no process for the start record: %s", strerror(errno));
    return;
  }
  runner->start_recorder = pid;
}

static void add_outcome(const struct runner* runner, struct record* record) {
  if (!runner->job_started) {
    record_add(record, "exit", "not_started");
    record_add(record, "code", "%d",
               runner->not_started.error == ENOENT ? EXIT_JOB_NOT_FOUND : EXIT_JOB_NOT_EXECUTABLE);
    record_add(record, "term_signal", "0");
    record_add(record, "errno_name", "%s", errno_name(runner->not_started.error));
    record_add(record, "failed_at", "%s", runner->not_started.step == JOB_STEP_WORKDIR ? "workdir" : "exec");
    return;
  }
  bool killed = WIFSIGNALED(runner->job_wait_status);
  record_add(record, "exit", "%s", killed ? "killed" : "exited");
  record_add(record, "code", "%d", killed ? -1 : WEXITSTATUS(runner->job_wait_status));
  record_add(record, "term_signal", "%d", killed ? WTERMSIG(runner->job_wait_status) : 0);
}

static void add_signals(const struct runner* runner, struct record* record) {
  const struct signal_journal* journal = &runner->journal;
  char signals[1024];
  journal_format(journal, signals, sizeof signals);
  record_add(record, "signalled", "%s", journal->signalled ? "yes" : "no");
  record_add(record, "signalled_by", "%s", journal->signalled ? sender_name(journal->signalled_by) : "");
  record_add(record, "signals", "%s", signals);
}

static void add_oom_kills(const struct runner* runner, struct record* record) {
  int64_t after = oom_counter_read(&runner->oom_counter);
  if (after < 0 || runner->oom_kills_before < 0) return;
  record_add(record, "oom_kills", "%lld", (long long)(after - runner->oom_kills_before));
}

static bool publish_end(const struct runner* runner) {
  char temporary[96], name[64];
  struct record record;
  record_begin(&record);
  add_start(runner, &record);
  record_add(&record, "ended_boot_us", "%lld", (long long)runner->ended.boot_us);
  record_add(&record, "ended_unix_us", "%lld", (long long)runner->ended.unix_us);
  add_outcome(runner, &record);
  add_signals(runner, &record);
  add_oom_kills(runner, &record);
  record_add(&record, "log_bytes", "%llu", (unsigned long long)runner->shared->log.written_bytes);
  record_add(&record, "log_lost_bytes", "%llu", (unsigned long long)runner->shared->log.lost_bytes);
  record_end(&record);
  name_temporary(runner, ".exit", temporary, sizeof temporary);
  name_file(runner, ".exit", name, sizeof name);
  return record_publish(runner->dir_fd, temporary, name, &record);
}

// ---- the job's tree

static bool tree_is_empty(const struct runner* runner) {
  return runner->tree_reaped && (runner->cgroup == NULL || !cgroup_is_populated(runner->cgroup));
}

static struct process_list list_tree(const struct runner* runner) {
  const pid_t helpers[] = {runner->log_pump.pid, runner->heartbeat.pid, runner->start_recorder};
  return tree_list(runner->identity.pid, helpers, sizeof helpers / sizeof helpers[0]);
}

static void signal_tree(const struct runner* runner, int signal_number) {
  struct process_list tree = list_tree(runner);
  tree_signal(&tree, signal_number);
  process_list_free(&tree);
}

// The first process goes first: otherwise it could see its children die and still exit with 0.
static void kill_tree(const struct runner* runner) {
  if (!runner->job_ended) kill(runner->job.pid, SIGKILL);
  if (runner->cgroup != NULL) cgroup_kill(runner->cgroup);
  signal_tree(runner, SIGKILL);
}

static void signal_job_group(const struct runner* runner, int signal_number) {
  if (runner->job.pid <= 0 || runner->job_ended) return;
  // Before its setsid() the child has no group of its own.
  if (kill(-runner->job.pid, signal_number) != 0) kill(runner->job.pid, signal_number);
}

static void warn_tree(const struct runner* runner) {
  struct process_list tree = list_tree(runner);
  tree_signal_catching(&tree, SIGUSR1);
  process_list_free(&tree);
}

static void request_kill(struct runner* runner) {
  journal_add(&runner->journal, SIGKILL, SENDER_TPD);
  runner->kill_requested = true;
}

// ---- events

static void on_order(struct runner* runner, const struct signalfd_siginfo* info) {
  enum order order;
  if (info->ssi_code != SI_QUEUE || !order_decode(runner->options->nonce, info->ssi_int, &order)) {
    log_pump_say(&runner->log_pump, "ignored an order of pid %u that does not know the nonce", (unsigned)info->ssi_pid);
    return;
  }
  switch (order) {
    case ORDER_WARN:
      journal_add(&runner->journal, SIGUSR1, SENDER_TPD);
      warn_tree(runner);
      return;
    case ORDER_TERM:
      journal_add(&runner->journal, SIGTERM, SENDER_TPD);
      signal_job_group(runner, SIGTERM);
      return;
    case ORDER_KILL:
      request_kill(runner);
      return;
  }
}

static void on_signal(struct runner* runner, const struct signalfd_siginfo* info) {
  switch (info->ssi_signo) {
    case ORDER_SIGNAL:
      on_order(runner, info);
      return;
    case SIGTERM:
    case SIGINT:
      journal_add(&runner->journal, (int)info->ssi_signo, SENDER_OTHER);
      signal_job_group(runner, (int)info->ssi_signo);
      return;
    case SIGUSR1:
      journal_add(&runner->journal, SIGUSR1, SENDER_OTHER);
      warn_tree(runner);
      return;
    default:  // SIGCHLD, HELPER_END_SIGNAL: only wake-ups
      return;
  }
}

static void take_signals(struct runner* runner) {
  struct signalfd_siginfo info;
  while (read(runner->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
    if (!runner->tree_gone) on_signal(runner, &info);
  }
}

static void take_job_report(struct runner* runner) {
  struct job_report report;
  if (read(runner->job.report_fd, &report, sizeof report) != (ssize_t)sizeof report) {
    io_close(&runner->job.report_fd);
    if (runner->not_started.error != 0) return;
    runner->job_started = true;
    start_recording(runner);
    return;
  }
  switch (report.step) {
    case JOB_STEP_CGROUP:
      log_pump_say(&runner->log_pump, "the job can't join cgroup %s: %s", runner->cgroup, strerror(report.error));
      runner->cgroup = NULL;
      runner->oom_counter.file = NULL;
      return;
    case JOB_STEP_WORKDIR:
    case JOB_STEP_EXEC:
      runner->not_started = report;
      log_pump_say(&runner->log_pump, "the job was not started: %s: %s",
                   report.step == JOB_STEP_WORKDIR ? runner->options->workdir : runner->options->argv[0],
                   strerror(report.error));
      return;
  }
}

static void start_heartbeat(struct runner* runner) {
  if (!heartbeat_start(&runner->heartbeat, &runner->shared->beat_count, runner->dir_fd, runner->options,
                       &runner->identity)) {
    log_pump_say(&runner->log_pump, "no heartbeat: %s", strerror(errno));
  }
}

static void take_fence(struct runner* runner) {
  bool closed = heartbeat_saw_closed_fence(&runner->heartbeat);
  io_close(&runner->heartbeat.fence_fd);
  if (closed) {
    log_pump_say(&runner->log_pump, "tpd closed the fence");
    request_kill(runner);
  }
}

static void reap_job_tree(struct runner* runner) {
  int wait_status;
  pid_t pid;
  while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
    if (pid != runner->job.pid) continue;
    runner->job_ended = true;
    runner->job_wait_status = wait_status;
  }
  runner->tree_reaped = pid < 0 && errno == ECHILD;
}

// Without its helper the job's output waits in the pipe.
static bool ensure_log_pump(struct runner* runner) {
  if (runner->log_pump.pid > 0 || runner->log_finished) return true;
  if (!log_pump_restart(&runner->log_pump, &runner->shared->log, runner->dir_fd, runner->options)) {
    return false;
  }
  log_pump_say(&runner->log_pump, "replaced the log helper, which was killed");
  if (runner->log_finishing) log_pump_finish(&runner->log_pump);
  return true;
}

static void reap_helpers(struct runner* runner) {
  int wait_status;
  pid_t pid;
  while ((pid = helper_reap(&wait_status)) > 0) {
    if (pid == runner->start_recorder) {
      runner->start_recorder = 0;
      if (wait_status != 0) log_pump_say(&runner->log_pump, "the start record can't be written");
    } else if (pid == runner->heartbeat.pid) {
      runner->heartbeat.pid = 0;
      if (WIFSIGNALED(wait_status)) start_heartbeat(runner);
    } else if (pid == runner->log_pump.pid) {
      runner->log_pump.pid = 0;
      runner->log_finished = WIFEXITED(wait_status);
    }
  }
}

// One turn of the main loop; touches no storage. Signals are taken before children are reaped, so
// that one sent before an end is in the journal when the end is seen.
static void turn(struct runner* runner, int timeout_ms) {
  struct pollfd waits[] = {
      {.fd = runner->signal_fd, .events = POLLIN},
      {.fd = runner->job.report_fd, .events = POLLIN},
      {.fd = runner->heartbeat.fence_fd, .events = POLLIN},
  };
  if (!ensure_log_pump(runner) && (timeout_ms < 0 || timeout_ms > RESTART_RETRY_MS)) {
    timeout_ms = RESTART_RETRY_MS;
  }
  if (poll(waits, sizeof waits / sizeof waits[0], timeout_ms) < 0) return;
  if (waits[1].revents != 0) take_job_report(runner);
  if (waits[2].revents != 0) take_fence(runner);
  take_signals(runner);
  reap_job_tree(runner);
  reap_helpers(runner);
}

// ---- phases

static void wait_for_first_process(struct runner* runner) {
  while ((!runner->job_ended || runner->job.report_fd >= 0) && !runner->kill_requested) {
    turn(runner, -1);
  }
}

static void end_tree(struct runner* runner) {
  int64_t kill_at_us = clock_boot_us() + runner->options->end_grace_ms * 1000;
  int kill_round_ms = KILL_ROUND_MIN_MS;
  if (!tree_is_empty(runner) && !runner->kill_requested) signal_tree(runner, SIGTERM);
  while (!tree_is_empty(runner)) {
    if (!runner->kill_requested && clock_boot_us() < kill_at_us) {
      turn(runner, TREE_POLL_MS);
      continue;
    }
    kill_tree(runner);
    turn(runner, kill_round_ms);
    if (kill_round_ms < KILL_ROUND_MAX_MS) kill_round_ms *= 2;
  }
  runner->ended = clock_now();
  runner->tree_gone = true;
}

static void finish_helpers(struct runner* runner) {
  heartbeat_stop(&runner->heartbeat);
  // A killed first process may leave its report behind unread.
  while (runner->job.report_fd >= 0) take_job_report(runner);
  while (runner->start_recorder > 0) turn(runner, -1);
  runner->log_finishing = true;
  log_pump_finish(&runner->log_pump);
  while (!runner->log_finished) turn(runner, -1);
}

static int job_exit_code(const struct runner* runner) {
  if (!runner->job_started) {
    return runner->not_started.error == ENOENT ? EXIT_JOB_NOT_FOUND : EXIT_JOB_NOT_EXECUTABLE;
  }
  if (WIFSIGNALED(runner->job_wait_status)) return 128 + WTERMSIG(runner->job_wait_status);
  int code = WEXITSTATUS(runner->job_wait_status);
  return code == 0 && runner->journal.signalled ? 128 + SIGTERM : code;
}

static int record_end_of_job(struct runner* runner) {
  bool recorded = publish_end(runner);
  int error = errno;
  if (runner->cgroup_created) cgroup_remove(runner->options->cgroup);
  if (!recorded) {
    return refuse(EXIT_STORAGE, "the end record of %s-%s can't be written in %s: %s", runner->options->pool,
                  runner->options->rank, runner->options->dir, strerror(error));
  }
  return job_exit_code(runner);
}

// ---- start

static bool open_signals(struct runner* runner) {
  sigset_t all;
  sigfillset(&all);
  runner->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  return runner->signal_fd >= 0;
}

static void prepare_cgroup(struct runner* runner) {
  if (runner->cgroup != NULL && !cgroup_prepare(runner->cgroup, &runner->cgroup_created)) {
    log_pump_say(&runner->log_pump, "cgroup %s can't be used: %s", runner->cgroup, strerror(errno));
    runner->cgroup = NULL;
  }
  if (runner->cgroup == NULL && runner->options->cgroup != NULL) {
    log_pump_say(&runner->log_pump, "the job runs without a cgroup");
  }
  oom_counter_find(&runner->oom_counter, runner->cgroup);
  runner->oom_kills_before = oom_counter_read(&runner->oom_counter);
}

static bool prepare_process(struct runner* runner) {
  runner->shared = mmap(NULL, sizeof *runner->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (runner->shared == MAP_FAILED) return false;
  // The binary may lie on the storage that can hang: keep it in memory where the limit allows.
  mlock(image_start, (size_t)(image_end - image_start));
  return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && identity_read(&runner->identity) && open_signals(runner);
}

static int own_rank(struct runner* runner) {
  const struct run_options* options = runner->options;
  const char* reason = "";
  runner->dir_fd = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (runner->dir_fd < 0) {
    return refuse(EXIT_STORAGE, "can't open %s: %s", options->dir, strerror(errno));
  }
  // A group with foreign processes in it is none that could be killed as a whole.
  if (options->cgroup != NULL && !cgroup_is_populated(options->cgroup)) runner->cgroup = options->cgroup;
  switch (claim_rank(runner->dir_fd, options, runner->cgroup, &runner->identity, &reason)) {
    case CLAIM_WON:
      break;
    case CLAIM_NOT_OWNER:
      return refuse(EXIT_NOT_OWNER, "not started: %s", reason);
    case CLAIM_STORAGE_ERROR:
      return refuse(EXIT_STORAGE, "not started: %s in %s", reason, options->dir);
  }
  switch (fence_read(runner->dir_fd)) {
    case FENCE_OPEN:
      return EXIT_DONE;
    case FENCE_CLOSED:
      return refuse(EXIT_NOT_OWNER, "not started: tpd closed the fence");
    case FENCE_UNREADABLE:
      return refuse(EXIT_STORAGE, "not started: no fence can be read in %s", options->dir);
  }
  return EXIT_STORAGE;
}

static bool start_helpers(struct runner* runner) {
  char temporary[96];
  name_temporary(runner, ".exit", temporary, sizeof temporary);
  return record_reserve(runner->dir_fd, temporary) &&
         log_pump_start(&runner->log_pump, &runner->shared->log, runner->dir_fd, runner->options);
}

static void start_job(struct runner* runner) {
  if (!job_spawn(&runner->job, runner->options, runner->cgroup, runner->log_pump.data_write_fd, runner->job_umask)) {
    runner->not_started = (struct job_report){.step = JOB_STEP_EXEC, .error = errno};
    log_pump_say(&runner->log_pump, "no process for the job: %s", strerror(errno));
    runner->job_ended = true;
    runner->tree_reaped = true;
  }
  io_close(&runner->log_pump.data_write_fd);
}

int runner_run(const struct run_options* options) {
  struct runner runner = {
      .options = options, .dir_fd = -1, .signal_fd = -1, .job = {.report_fd = -1}, .heartbeat = {.fence_fd = -1}};
  signals_block_all();
  runner.job_umask = umask(007);  // tpd's group reads the records
  if (!prepare_process(&runner)) {
    return refuse(EXIT_STORAGE, "can't set up the runner: %s", strerror(errno));
  }
  int refused = own_rank(&runner);
  if (refused != EXIT_DONE) return refused;
  if (!start_helpers(&runner)) {
    return refuse(EXIT_STORAGE, "not started: %s: %s", options->dir, strerror(errno));
  }
  start_heartbeat(&runner);
  prepare_cgroup(&runner);
  start_job(&runner);
  wait_for_first_process(&runner);
  end_tree(&runner);
  finish_helpers(&runner);
  return record_end_of_job(&runner);
}

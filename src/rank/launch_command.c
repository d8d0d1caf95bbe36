// `tp-rank launch`: starts every rank of a plan, or none, detached from the caller.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "commands.h"
#include "exit_codes.h"
#include "io.h"
#include "plan.h"
#include "runner.h"

// A rank waits at the gate until all ranks exist; when the launcher dies before, it starts nothing.
_Noreturn static void run_rank(struct plan_rank* rank, const int gate[2]) {
  char mark;
  close(gate[1]);
  if (read(gate[0], &mark, 1) != 1) _exit(EXIT_STORAGE);
  setsid();
  io_close_all_except(NULL, 0);
  environ = rank->environment;
  _exit(runner_run(&rank->options));
}

static int start_ranks(struct plan* plan) {
  static const char kMarks[PLAN_MAX_RANKS];
  int gate[2];
  if (pipe(gate) != 0) return EXIT_STORAGE;
  for (size_t i = 0; i < plan->rank_count; ++i) {
    pid_t pid = fork();
    if (pid == 0) run_rank(&plan->ranks[i], gate);
    if (pid < 0) return EXIT_STORAGE;  // our end of the gate closes: none starts
  }
  // One write of less than PIPE_BUF: all ranks get their mark or none does.
  ssize_t written = write(gate[1], kMarks, plan->rank_count);
  return written == (ssize_t)plan->rank_count ? EXIT_DONE : EXIT_STORAGE;
}

// Where that can't be, the runners stay in the caller's group, and end with it.
static void leave_callers_cgroup(const char* cgroup) {
  bool created;
  if (cgroup != NULL && cgroup_prepare(cgroup, &created)) (void)cgroup_join(cgroup);
}

static int start_detached(struct plan* plan, const char* cgroup) {
  pid_t launcher = fork();
  if (launcher < 0) return EXIT_STORAGE;
  if (launcher == 0) {
    setsid();
    leave_callers_cgroup(cgroup);
    umask(022);  // the jobs' umask does not depend on tpd's
    if (!io_null_stdio() || chdir("/") != 0) _exit(EXIT_STORAGE);
    _exit(start_ranks(plan));
  }
  int wait_status;
  while (waitpid(launcher, &wait_status, 0) < 0) {
    if (errno != EINTR) return EXIT_STORAGE;
  }
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : EXIT_STORAGE;
}

int launch_command(char** arguments) {
  struct plan plan;
  const char* cgroup = NULL;
  if (arguments[0] != NULL) {
    if (strcmp(arguments[0], "--cgroup") != 0 || arguments[1] == NULL || arguments[2] != NULL) return EXIT_USAGE;
    cgroup = arguments[1];
  }
  const char* problem = plan_read(STDIN_FILENO, &plan);
  int exit_code = EXIT_USAGE;
  if (problem == NULL) {
    exit_code = start_detached(&plan, cgroup);
  } else {
    fprintf(stderr, "tp-rank: nothing was launched: %s\n", problem);
  }
  plan_free(&plan);
  return exit_code;
}

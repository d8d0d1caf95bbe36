#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "exit_codes.h"
#include "io.h"
#include "process.h"
#include "signals.h"

void job_format_token(char* token, const char* key, const char* pool, const char* rank, const char* nonce) {
  snprintf(token, JOB_TOKEN_CAPACITY, "%s/%s-%s/%s", key, pool, rank, nonce);
}

static void report(int fd, enum job_step step, int error) {
  struct job_report message = {.step = step, .error = error};
  io_write_all(fd, &message, sizeof message);
}

_Noreturn static void fail(int fd, enum job_step step) {
  int error = errno;
  report(fd, step, error);
  _exit(error == ENOENT ? EXIT_JOB_NOT_FOUND : EXIT_JOB_NOT_EXECUTABLE);
}

static bool set_token(const struct run_options* options) {
  char token[JOB_TOKEN_CAPACITY];
  job_format_token(token, options->key, options->pool, options->rank, options->nonce);
  return setenv(JOB_TOKEN_NAME, token, 1) == 0;
}

_Noreturn static void become_job(const struct run_options* options, const char* cgroup, int output_fd, int report_fd,
                                 pid_t runner, mode_t job_umask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != runner) _exit(EXIT_JOB_NOT_EXECUTABLE);
  setsid();
  if (!io_null_stdio() || dup2(output_fd, STDOUT_FILENO) < 0 || dup2(output_fd, STDERR_FILENO) < 0 ||
      !set_token(options)) {
    fail(report_fd, JOB_STEP_EXEC);
  }
  if (cgroup != NULL && !cgroup_join(cgroup)) report(report_fd, JOB_STEP_CGROUP, errno);
  umask(job_umask);
  if (chdir(options->workdir) != 0) fail(report_fd, JOB_STEP_WORKDIR);
  signals_unblock_all();
  execvp(options->argv[0], options->argv);
  fail(report_fd, JOB_STEP_EXEC);
}

bool job_spawn(struct job* job, const struct run_options* options, const char* cgroup, int output_fd,
               mode_t job_umask) {
  int reports[2];
  *job = (struct job){.report_fd = -1};
  if (pipe2(reports, O_CLOEXEC) != 0) return false;
  pid_t runner = getpid();
  job->started = clock_now();
  pid_t pid = fork();
  if (pid == 0) become_job(options, cgroup, output_fd, reports[1], runner, job_umask);
  int error = errno;
  close(reports[1]);
  if (pid < 0) {
    close(reports[0]);
    errno = error;
    return false;
  }
  struct process process;
  job->pid = pid;
  job->report_fd = reports[0];
  if (process_read(pid, &process)) job->start_ticks = process.start_ticks;
  return true;
}

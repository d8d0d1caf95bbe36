// Helper processes of the runner: they touch storage so that its main loop never does.
#pragma once

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

// What the runner gets when a helper ends, in place of SIGCHLD; only a wake-up.
#define HELPER_END_SIGNAL SIGUSR2

// Forks a helper. In the child (0) stdio is /dev/null, all signals are blocked and only the named
// descriptors are open. Helpers are "clone children": waitpid() without __WCLONE does not see them,
// so that ECHILD there means that nothing of the job's tree is left.
pid_t helper_fork(const int* keep, size_t keep_count);

// Reaps one ended helper: its pid, or 0 when there is none.
pid_t helper_reap(int* wait_status);

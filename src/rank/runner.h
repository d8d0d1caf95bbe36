// `tp-rank run`: takes one rank of one attempt from its claim to its end record.
#pragma once

#include "options.h"

// Returns the runner's exit code. Expects stdio to be open and nothing else; the job gets the
// process's environment, umask and limits.
int runner_run(const struct run_options* options);

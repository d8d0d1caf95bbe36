// Exit codes of the subcommands, as docs/launch-contract.md lists them.
#pragma once

enum {
  EXIT_DONE = 0,
  EXIT_TREE_NOT_GONE = 1,  // reap
  EXIT_PROCESS_GONE = 3,   // signal
  EXIT_NO_RECORD = 4,      // signal, reap
  EXIT_OTHER_HOST = 5,     // signal, reap: the record is of another host or boot
  EXIT_RUNNER_ALIVE = 6,   // reap
  EXIT_USAGE = 64,
  EXIT_STORAGE = 75,    // nothing may be concluded
  EXIT_NOT_OWNER = 76,  // run: another launch or the fence owns the attempt
  EXIT_JOB_NOT_EXECUTABLE = 126,
  EXIT_JOB_NOT_FOUND = 127,
};

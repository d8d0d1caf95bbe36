// tp-rank: runs one rank of a job as docs/launch-contract.md says.
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "exit_codes.h"
#include "io.h"
#include "options.h"
#include "runner.h"
#include "text_only.h"

int run_command(char** arguments) {
  struct run_options options;
  const char* problem;
  if (!options_parse(arguments, &options, &problem)) {
    fprintf(stderr, "tp-rank: %s\n", problem);
    return EXIT_USAGE;
  }
  if (!text_only_decode(options.argv)) {
    fputs("tp-rank: an entry of the environment or a word is not hex\n", stderr);
    return EXIT_USAGE;
  }
  io_close_all_except(NULL, 0);
  return runner_run(&options);
}

static int version_command(char** arguments) {
  if (arguments[0] != NULL) return EXIT_USAGE;
  puts("tp-rank 1");
  return EXIT_DONE;
}

static const struct {
  const char* name;
  int (*run)(char** arguments);
} kCommands[] = {
    {"run", run_command},       {"signal", signal_command},   {"reap", reap_command},
    {"launch", launch_command}, {"version", version_command},
};

int main(int argc, char** argv) {
  if (!io_fill_stdio()) return EXIT_STORAGE;
  for (size_t i = 0; argc > 1 && i < sizeof kCommands / sizeof kCommands[0]; ++i) {
    if (strcmp(kCommands[i].name, argv[1]) == 0) return kCommands[i].run(argv + 2);
  }
  fputs("usage: tp-rank run|signal|reap|launch|version ... (docs/launch-contract.md)\n", stderr);
  return EXIT_USAGE;
}

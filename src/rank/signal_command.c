// `tp-rank signal DIR POOL RANK warn|term|kill`: tpd's order to a runner.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "exit_codes.h"
#include "process.h"
#include "signals.h"
#include "target.h"

enum { ARGUMENTS = 4 };

// The sh stand-in can't read a queued value: there the signal's number alone carries the order.
static bool send_order(const struct target* target, enum order order) {
  if (record_is(&target->claim, "runner", "sh")) {
    return process_signal(target->runner_pid, target->runner_start_ticks, ORDER_SIGNAL + (int)order, NULL);
  }
  int value = order_encode(record_get(&target->claim, "nonce"), order);
  return process_signal(target->runner_pid, target->runner_start_ticks, ORDER_SIGNAL, &value);
}

int signal_command(char** arguments) {
  struct target target;
  enum order order;
  for (int i = 0; i < ARGUMENTS; ++i) {
    if (arguments[i] == NULL) return EXIT_USAGE;
  }
  if (arguments[ARGUMENTS] != NULL || !order_parse(arguments[3], &order)) return EXIT_USAGE;
  int opened = target_open(&target, arguments[0], arguments[1], arguments[2]);
  if (opened != EXIT_DONE) return opened;
  if (send_order(&target, order)) return EXIT_DONE;
  if (errno == ESRCH) return EXIT_PROCESS_GONE;
  fprintf(stderr, "tp-rank: can't signal process %d: %s\n", (int)target.runner_pid, strerror(errno));
  return EXIT_STORAGE;
}

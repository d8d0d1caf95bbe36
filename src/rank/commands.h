// The subcommands. Each takes the NULL-terminated arguments after its name and returns the exit
// code.
#pragma once

int run_command(char** arguments);
int signal_command(char** arguments);
int reap_command(char** arguments);
int launch_command(char** arguments);

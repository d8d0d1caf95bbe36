#include "sim/command_line.h"

int main(int argc, char** argv) { return tp::sim::RunCommandLine({argv + 1, argv + argc}); }

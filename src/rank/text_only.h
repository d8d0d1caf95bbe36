// Arguments and environment that came through something that carries text only, as a container engine's JSON. Each
// environment entry TP_RANK_HEX_<NAME>=<hex> becomes NAME with those bytes, and TP_RANK_HEX_ARGV=1 says that the
// job's words are hex.
#pragma once

#include <stdbool.h>

// Decodes in place. False: an entry is not hex, or there is no memory.
bool text_only_decode(char** job_argv);

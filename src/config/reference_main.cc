// config_reference: prints docs/configuration-reference.md.
#include <cstdio>

#include "config/reference.h"

int main() {
  std::fputs(tp::config::ReferencePage().c_str(), stdout);
  return 0;
}

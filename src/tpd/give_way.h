// For threads that nobody waits for.
#pragma once

namespace tp::tpd {

// The calling thread's processor and disk time come after everybody else's. What the kernel refuses here
// costs only politeness.
void GiveWay();

}  // namespace tp::tpd

// A small history that touches every table, as it is stored in fixtures/ for every released format. What
// it writes of a format may never change, or older fixtures no longer hold it.
#pragma once

#include <tuple>
#include <vector>

#include "store/store.h"

namespace tp::store {

// What files of `format` (a migration's version) hold: later ones have more tables.
void WriteHistory(Store& store, int format);

using Everything =
    std::tuple<Meta, std::vector<core::RunWithSteps>, std::vector<EventRow>, std::vector<core::LedgerRow>,
               std::optional<RequestRow>, std::vector<std::string>, std::optional<TokenRow>>;
Everything ReadEverything(Reader& reader);

}  // namespace tp::store

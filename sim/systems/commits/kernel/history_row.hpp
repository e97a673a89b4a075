// A row of a history: time, kind, client, transaction, a, b; see systems/commits/history.py.
#pragma once

#include <array>
#include <cstdint>

namespace numatwin {

using Row = std::array<std::int64_t, 6>;

}  // namespace numatwin

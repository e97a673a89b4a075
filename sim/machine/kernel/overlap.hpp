// Instructions of a core and the lines that it waits for overlap; those of a stream only in part.
#pragma once

#include <algorithm>

namespace numatwin {

// How long both take together. Lines of a stream come early or late by chance, and what is fetched
// ahead hides only part of that: `stall` is what is left where both take as long, in parts of that
// time (0: all is hidden). See overlapped() of sim/planes/rates.py.
inline double overlapped(double instructions, double misses, double stall) {
    const double longer = std::max(instructions, misses);
    const double shorter = std::min(instructions, misses);
    if (!(stall > 0 && shorter > 0)) return longer;
    const double part = shorter / longer;
    return longer * (1.0 + 3.0 * stall * (part * part * part) / (1.0 + part + part * part));
}

}  // namespace numatwin

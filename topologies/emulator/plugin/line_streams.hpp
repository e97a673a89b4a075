// Which misses of a processor follow one another in memory, as a prefetcher would see it.
#pragma once

#include <array>
#include <cstddef>

#include "cache_sets.hpp"

namespace numatwin {

// As many streams as a core's prefetcher follows, about (AMD, Software Optimization Guide for
// Family 19h: the L2's has some tens; Intel's has 32), upwards or downwards.
class LineStreams {
  public:
    static constexpr std::size_t STREAMS = 32;

    LineStreams() { last_.fill(~Line{0} / 2); }

    // Whether `line` goes on with a stream; else it begins one, in the place of the oldest. A line
    // that was lost and is wanted again does neither.
    bool follows(Line line) {
        for (Line& last : last_)
            if (line - last + 1 <= 2) {  // the one before, the same, the next
                const bool next = line != last;
                last = line;
                return next;
            }
        last_[next_] = line;
        next_ = (next_ + 1) % STREAMS;
        return false;
    }

  private:
    std::array<Line, STREAMS> last_;
    std::size_t next_ = 0;
};

}  // namespace numatwin

// An optional trace, row by row, to compare two simulations event for event.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

struct TraceRow {
    Time time_ps;
    std::int32_t event;  // what these three mean is the model's to say
    std::int32_t subject;
    std::int64_t data;
};

class Trace {
  public:
    void keep(bool kept) { kept_ = kept; }

    void add(Time now, std::int32_t event, std::uint32_t subject, std::uint64_t data) {
        if (kept_) {
            rows_.push_back(
                {now, event, static_cast<std::int32_t>(subject), static_cast<std::int64_t>(data)});
        }
    }
    const std::vector<TraceRow>& rows() const { return rows_; }
    void clear() { rows_.clear(); }

  private:
    bool kept_ = false;
    std::vector<TraceRow> rows_;
};

}  // namespace numatwin

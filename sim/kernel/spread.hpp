// How the time of a step varies around its mean, and who draws it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

// Factors on a mean, by inverse transform: factor[k] at the share[k] of all draws, and on straight
// lines in between. A draw takes one word of the stream.
class Spread {
  public:
    Spread(std::vector<double> share, std::vector<double> factor)
        : share_(std::move(share)), factor_(std::move(factor)) {
        if (share_.size() < 2 || share_.size() != factor_.size())
            throw std::invalid_argument("factor: expected one for each share, at least 2");
        if (share_.front() != 0.0 || share_.back() != 1.0)
            throw std::invalid_argument("share: expected from 0 to 1");
        for (std::size_t k = 0; k + 1 < share_.size(); ++k) {
            if (!(share_[k] < share_[k + 1]))
                throw std::invalid_argument("share: expected rising values");
            if (!(factor_[k] >= 0.0 && factor_[k] <= factor_[k + 1] && factor_[k + 1] < 1e6))
                throw std::invalid_argument("factor: expected from 0 to a million, not falling");
            slope_.push_back((factor_[k + 1] - factor_[k]) / (share_[k + 1] - share_[k]));
        }
    }

    // Rounded to the nearest picosecond.
    Time draw(Time mean, Stream& stream) const {
        const double u = stream.uniform();
        const auto above = std::upper_bound(share_.begin() + 1, share_.end() - 1, u);
        const auto k = static_cast<std::size_t>(above - share_.begin()) - 1;
        const double factor = factor_[k] + (u - share_[k]) * slope_[k];
        return static_cast<Time>(static_cast<double>(mean) * factor + 0.5);
    }

  private:
    std::vector<double> share_, factor_, slope_;
};

// Of steps on messages, by type, and of being woken; each place draws from a stream of its own.
struct SpreadSetup {
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    std::vector<Spread> tables;
    std::vector<std::uint32_t> of_type;  // which of them, or none; empty: no step varies
    std::uint32_t of_wake = none;
    std::vector<std::uint64_t> streams;  // two words a place
};

class Spreads {
  public:
    Spreads(const SpreadSetup& setup, std::size_t places, std::size_t types)
        : tables_(setup.tables), of_type_(setup.of_type), of_wake_(setup.of_wake) {
        if (of_type_.empty() && of_wake_ == SpreadSetup::none) return;
        const auto known = [this](std::uint32_t table) {
            return table == SpreadSetup::none || table < tables_.size();
        };
        if (of_type_.size() != types || !std::ranges::all_of(of_type_, known) || !known(of_wake_))
            throw std::invalid_argument("spreads: expected a table or none for each type");
        if (setup.streams.size() != 2 * places)
            throw std::invalid_argument("spreads: expected a stream for each place");
        for (std::size_t k = 0; k < places; ++k)
            streams_.emplace_back(setup.streams[2 * k], setup.streams[2 * k + 1]);
    }

    Time step(std::uint32_t place, std::uint32_t type, Time mean) {
        return of_type_.empty() ? mean : draw(of_type_[type], place, mean);
    }
    Time wake(std::uint32_t place, Time mean) { return draw(of_wake_, place, mean); }

  private:
    Time draw(std::uint32_t table, std::uint32_t place, Time mean) {
        if (table == SpreadSetup::none) return mean;
        return tables_[table].draw(mean, streams_[place]);
    }

    std::vector<Spread> tables_;
    std::vector<std::uint32_t> of_type_;
    std::uint32_t of_wake_;
    std::vector<Stream> streams_;  // by place
};

}  // namespace numatwin

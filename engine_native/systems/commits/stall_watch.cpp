#include "systems/commits/stall_watch.hpp"

#include <algorithm>

namespace numatwin::native {
namespace {

constexpr std::int64_t patience_min_ns = 5'000'000'000;
// Think times may be exponential: of these one in 10^8 is longer than so many times their mean.
constexpr std::int64_t patience_factor = 20;
// What a transaction takes without its pauses, where many processes take turns.
constexpr std::int64_t transaction_ns = 10'000'000;
// Between two looks counts as no more: who looks may itself have been stopped meanwhile, with all
// others.
constexpr std::int64_t between_looks_ns = 100'000'000;

// Whether the protocol itself lets the living go on, and they send messages through memory. RSI
// without its remedies sends none, and waits for the timestamps of the dead by its own rules.
bool may_stand_still(const RunSetup& setup) {
    const bool sends = !setup.one_sided || (setup.lease_ns > 0 && setup.skip_after_ns > 0);
    return sends && makes_segments(setup.fabric);
}

std::int64_t patience_of(const RunSetup& setup) {
    if (!may_stand_still(setup)) return 0;
    std::int64_t slowest = 1;
    for (const std::uint32_t factor : setup.factors)
        slowest = std::max<std::int64_t>(slowest, factor);
    const std::int64_t longest_ns = slowest * (transaction_ns + setup.think_ns + setup.backoff_ns) +
                                    setup.lease_ns + setup.skip_after_ns;
    return std::max(patience_min_ns, patience_factor * longest_ns);
}

}  // namespace

StallWatch::StallWatch(const RunSetup& setup) : patience_ns_(patience_of(setup)) {}

void StallWatch::died(std::string_view how) {
    ++deaths_;
    last_death_ = how;
}

std::optional<std::string> StallWatch::look(std::int64_t now_ns, std::uint64_t ended,
                                            std::uint32_t clients_left) {
    if (!is_on()) return {};
    if (clients_left == 0) return message("no client is left to commit");
    if (!looked_ns_ || ended != ended_)
        silent_ns_ = 0;
    else
        silent_ns_ += std::min(now_ns - *looked_ns_, between_looks_ns);
    looked_ns_ = now_ns;
    ended_ = ended;
    if (patience_ns_ == 0 || silent_ns_ < patience_ns_) return {};
    return message(
        "no transaction of the others has ended for " + std::to_string(silent_ns_ / 1'000'000'000) +
        " s: it may have left a message half sent in shared memory, and a server waits for "
        "the rest; run it again, or with NUMATWIN_TRANSPORT=tcp, or let the scenario inject "
        "the death (system.faults), which strikes between messages");
}

std::string StallWatch::message(std::string_view then) const {
    std::string line = last_death_;
    if (deaths_ > 1)
        line += ", the last of " + std::to_string(deaths_) + " that the scenario does not ask for,";
    else
        line += ", which the scenario does not ask for,";
    return line + " and " + std::string(then);
}

}  // namespace numatwin::native

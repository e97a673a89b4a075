// Paths between machines that are down, lossy, slow or late for a time, and transports that send
// again.
//
//     path:     well -> faulty (from_ps) -> well (until_ps); each message that is handed over in
//               between may be lost, or takes `factor` times as long
//     message:  handed over -> lost -> handed over again after wait_ps(0), wait_ps(1), ...
//               handed over -> late, by more than wait_ps(0) -> handed over again meanwhile, on
//               another connection; what comes late is received and dropped
//
// A link is a path between two machines, a port one between a machine and all others, a partition
// one between two groups. Transports are reliable: each message comes in the end, once. The same in
// SimPy: ../reference/path_faults.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

struct PathFault {
    using Sides = std::vector<std::uint32_t>;
    FIELDS_OF(PathFault);
    FIELD(Time, from_ps, "when it begins");
    FIELD(Time, until_ps, "when it ends");
    FIELD(Sides, side, "of each machine: 1 or 2, between which paths fail, or 0");
    FIELD(double, loss, "part of the messages that are lost; 1: the path is down");
    FIELD(std::int64_t, factor, "how many times as long a message takes", 1);
    FIELD(double, late, "part of the messages that are late");
    FIELD(Time, late_ps, "by how much");
    END_OF_FIELDS;
};

struct Transport {
    FIELDS_OF(Transport);
    FIELD(Time, timeout_ps, "until a lost message is sent again", 1);
    FIELD(std::int64_t, growth, "of that time with each further loss", 1);
    FIELD(Time, longest_ps, "that it grows to", 1'000'000'000'000);
    FIELD(std::uint32_t, retries, "before the connection counts as broken", 7);
    FIELD(Time, reconnect_ps, "to set up another connection");
    END_OF_FIELDS;

    // Until the next try, after so many that failed.
    Time wait_ps(std::uint32_t tries) const {
        const std::uint32_t round = tries % (retries + 1);
        Time wait = timeout_ps;
        for (std::uint32_t k = 0; k < round && wait < longest_ps; ++k) wait *= growth;
        return std::min(wait, longest_ps) + (round == retries ? reconnect_ps : 0);
    }
};

class PathFaults {
  public:
    PathFaults() = default;
    PathFaults(std::vector<PathFault> faults, Stream losses)
        : faults_(std::move(faults)), losses_(losses) {}

    // A fault begins or ends.
    void change(std::uint32_t fault, bool begins) {
        if (begins)
            active_.push_back(fault);
        else
            std::erase(active_, fault);
        any_ = !active_.empty();
    }
    bool any() const { return any_; }

    // Whether a message between two machines is lost; draws where a path is lossy.
    bool loses(std::uint32_t from, std::uint32_t to) {
        bool lost = false;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to) && faults_[f].loss > 0)
                lost = faults_[f].loss >= 1 || losses_.uniform() < faults_[f].loss || lost;
        return lost;
    }
    std::int64_t factor(std::uint32_t from, std::uint32_t to) const {
        std::int64_t product = 1;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to)) product *= faults_[f].factor;
        return product;
    }
    // By how much a message is late; draws where some are.
    Time late_ps(std::uint32_t from, std::uint32_t to) {
        Time late = 0;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to) && faults_[f].late > 0 &&
                losses_.uniform() < faults_[f].late)
                late = std::max(late, faults_[f].late_ps);
        return late;
    }

  private:
    static bool concerns(const PathFault& fault, std::uint32_t from, std::uint32_t to) {
        return fault.side[from] + fault.side[to] == 3;
    }

    std::vector<PathFault> faults_;
    std::vector<std::uint32_t> active_;
    Stream losses_;
    bool any_ = false;
};

}  // namespace numatwin

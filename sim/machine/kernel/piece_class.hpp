// Pieces that are alike, and so go on at one pace: a class of `shared_service.hpp`.
//
// A class has a clock, the lines that each member has served since it has members; a member that
// comes at clock V with w lines ends at V + w (Kleinrock and Muntz, JACM 1972).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernel/class_sharing.hpp"
#include "kernel/event_queue.hpp"
#include "machine/kernel/core_parts.hpp"

namespace numatwin {

struct PieceClass {
    struct Member {
        double end;  // on the class's clock
        std::uint64_t order;
        std::uint32_t piece;
    };

    std::uint32_t demand, node;
    CorePart part;  // of its members
    double clock = 0, pace = ClassSharing::infinity;
    Time since = 0;                         // of clock
    double begun = 0, done = 0;             // clocks at which members began; lines of past ones
    double marked = 0;                      // lines served up to the window under way
    bool changed = false, counted = false;  // members; in the window under way
    std::vector<Member> member = {};        // a heap, the first to end on top

    double clock_at(Time now) const { return clock + static_cast<double>(now - since) / pace; }
    double served(Time now) const {
        return done + static_cast<double>(member.size()) * clock_at(now) - begun;
    }
    // When the first of its members ends at the present pace; not before `now`.
    double first_end(Time now) const {
        const double wait = std::ceil((member.front().end - clock) * pace);
        return std::max(static_cast<double>(since) + wait, static_cast<double>(now));
    }

    void add(const Member& added, double began) {
        begun += began;
        member.push_back(added);
        std::push_heap(member.begin(), member.end(), later);
    }
    // It leaves before its end, with so many lines served.
    void remove(std::uint32_t piece, double began, double lines) {
        std::erase_if(member, [&](const Member& each) { return each.piece == piece; });
        std::make_heap(member.begin(), member.end(), later);
        count_left(began, lines);
    }
    // Whose time has come: the first one, with all its lines served.
    void remove_first(double began, double lines) {
        std::pop_heap(member.begin(), member.end(), later);
        member.pop_back();
        count_left(began, lines);
    }

  private:
    static bool later(const Member& a, const Member& b) {
        return a.end != b.end ? a.end > b.end : a.order > b.order;
    }
    void count_left(double began, double lines) {
        done += lines;
        begun = member.empty() ? 0.0 : begun - began;
    }
};

}  // namespace numatwin

// What long pieces of work share, and what they demand of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/described.hpp"
#include "machine/kernel/routes.hpp"

namespace numatwin {

// n nodes, C cores, 2L directed links, v vertices (nodes first); times in picoseconds.
struct ServiceMachine {
    FIELDS_OF(ServiceMachine);
    FIELD(Numbers, read_ps, "[n] of a line at the controller; 0: not limited");
    FIELD(Numbers, write_ps, "[n] the same of a line written");
    FIELD(Numbers, latency_ps, "[n, n] of a line of node j's memory on node i, without load");
    FIELD(Numbers, load, "[K] of a controller, rising");
    FIELD(Numbers, load_ratio, "[K] latency at that load over latency without");
    FIELD(Positions, core_node, "[C]");
    FIELD(Positions, core_threads, "[C] pieces that run on a core at most");
    FIELD(Numbers, data_ps, "[2L] wire time of a line");
    FIELD(Numbers, request_ps, "[2L] and of a request for one");
    FIELD(Positions, entering, "[n, v] last link on the way from a node to a vertex");
    FIELD(Positions, predecessor, "[n, v] vertex before it");
    FIELD(std::int64_t, vertices, "v");
    FIELD(Numbers, entries, "[n] lines under way at home agents; none, 0: not limited");
    FIELD(bool, directory_in_memory, "its updates are writes", false);
    FIELD(Numbers, answer_ps, "[2L] wire time of a message without data; none: as request_ps");
    FIELD(std::int64_t, limits, "of transfers, which messages take behind the links", 0);
    FIELD(std::int64_t, snooping, "m: the first nodes, whose reads make the messages below", 0);
    FIELD(Positions, message_first, "[m*m + 1] first message for a line that a node reads of one");
    FIELD(Positions, message_link, "[M] that it crosses, or 2L + the limit that it takes");
    FIELD(Numbers, message_ps, "[M] time there, for each line read");
    FIELD(Numbers, stream_slots, "[n] lines under way of a core that streams");
    FIELD(Numbers, line_max_ps, "[n, n] that a line of a stream takes it at most; 0: not limited");
    FIELD(Numbers, stream_stall, "[n] part of a stream's time that work does not hide; none: 0");
    END_OF_FIELDS;

    bool operator==(const ServiceMachine&) const = default;
    // Throws std::invalid_argument, with the field's name, where shapes or values are wrong.
    void check() const;
};

// Lines of one node's memory, per unit of a piece. `slots` are read at a time.
struct MemoryUse {
    std::uint32_t home;
    double read, written;
    double slots;
};

// A loop over the entries of a unit. Within it, instructions and misses overlap.
struct Loop {
    double instructions_ps;
    std::vector<MemoryUse> memory;
};

// A limit of the machine, as 2L + lock, that a unit holds for a part of its separate time.
struct Held {
    std::int64_t lock;
    double ps;
};

// What a unit of a piece takes. Where it has several `loops`, one after the other, these have all
// of its instructions and memory.
struct PieceDemand {
    double instructions_ps, separate_ps;  // separate: overlaps with nothing
    std::span<const MemoryUse> memory;
    std::span<const Loop> loops = {};
    std::span<const Held> held = {};

    // All of it as numbers. Throws std::invalid_argument, with the field's name, where the machine
    // has no such node, or values are wrong.
    Numbers checked(const ServiceMachine& machine) const;
};

// Latency over that without load, where load times this is so much; at most that at full load.
double settled_ratio(const ServiceMachine& of, double under_way);

// How long a line waits before a link (M/D/1) that has this load, where lines waited so long: such
// that as many are under way as now. Where waits have settled, `latency` does not matter: it damps
// only. A load beyond LINK_LOAD_MAX of ../costs.py counts as that.
double settled_link_wait(double line, double latency, double load, double waited);

namespace service {

// Throws std::invalid_argument: "field: expected ...".
void require(bool holds, const char* field, const char* expected);
// Finite, and at least 0.
bool is_amount(double value);

}  // namespace service

}  // namespace numatwin

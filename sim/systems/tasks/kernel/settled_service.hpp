// How fast running tasks are that share cores, controllers and links, in steady state: the fixed
// point of sim/systems/tasks/service_times.py, where the physics is told.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/max_min.hpp"
#include "machine/kernel/routes.hpp"

namespace numatwin {

// F kinds of tasks on n nodes with L directed links. Matrices are by rows; times in s.
struct ServiceSetup {
    FIELDS_OF(ServiceSetup);
    FIELD(std::vector<double>, idle_s, "(n) latency of each node's own memory");
    FIELD(std::vector<double>, curve_under_way, "(P) lines under way, in parts of full load's");
    FIELD(std::vector<double>, curve_ratio, "(P) latency with these, in parts of the idle one");
    FIELD(std::vector<double>, entries, "(n) of home agents; 0: no limit. Empty: nowhere");
    FIELD(std::vector<double>, held_most_s, "(n) that lines hold an entry without links, at most");
    FIELD(std::vector<double>, capacity, "(n + L) lines, bytes per second");
    FIELD(std::vector<double>, update_lines,
          "(n) controller's time of a directory update, in lines read. Empty: none in memory");
    FIELD(std::vector<double>, line_s, "(links) of a line on each, which are the first of L");
    FIELD(std::vector<std::int64_t>, entering,
          "(n, v) last link on the way from a node to a vertex");
    FIELD(std::vector<std::int64_t>, predecessor, "(n, v) vertex before it");
    FIELD(std::vector<double>, stream_slots, "(n) lines under way of a core that streams");
    FIELD(std::vector<double>, line_max_s, "(n, n) that a line of a stream takes a core at most");
    FIELD(std::vector<double>, stream_stall, "(n) part of a stream's time that work does not hide");
    FIELD(std::vector<double>, cores, "(n) of each node");
    FIELD(std::vector<std::int64_t>, node, "(F) of the worker");
    FIELD(std::vector<double>, latency_s, "(n, n) of each home without load");
    FIELD(std::vector<double>, read, "(F, n) lines by threads, per entry");
    FIELD(std::vector<double>, use, "(F, n + L) of resources, per line");
    FIELD(std::vector<double>, per_line, "(F) lines of an entry that count for fair shares");
    FIELD(std::vector<double>, instructions_s, "(F) of an entry");
    FIELD(std::vector<double>, separate_s, "(F) of an entry");
    FIELD(std::vector<double>, slots, "(F) lines under way at a time");
    FIELD(std::vector<std::int64_t>, loop_first,
          "(F + 1) first loop of each kind with several, and the end. Empty: none has several");
    FIELD(std::vector<double>, loop_read, "(loops, n) lines of each home, per entry");
    FIELD(std::vector<double>, loop_instructions_s, "(loops) of an entry");
    FIELD(std::vector<double>, loop_slots, "(loops) lines under way at a time");
    FIELD(std::vector<std::int64_t>, on_core, "(F) 1: shares cores with others");
    FIELD(std::vector<std::int64_t>, engine, "(F) that copies for it, -1: none. Empty: no kind's");
    FIELD(std::vector<double>, engine_s, "(F) of the engine, per entry");
    FIELD(std::vector<double>, copied, "(F, n) lines read by engines, per entry");
    FIELD(std::vector<double>, copied_slots, "(F) lines under way of a copy");
    FIELD(std::vector<double>, copied_latency_s, "(F, n) of each home to the engine");
    FIELD(std::vector<double>, contexts, "(E) copies that an engine does at a time");
    FIELD(double, tolerance_s, "of waits");
    FIELD(std::int64_t, rounds_max, "of one search");
    FIELD(std::int64_t, newton_rounds, "those at first whose steps may be longer or shorter");
    END_OF_FIELDS;
};

class SettledService {
  public:
    // Throws std::invalid_argument where lengths do not fit together.
    explicit SettledService(const ServiceSetup& setup);

    // With `count` (F) tasks of each kind. Looks for waits from those of the last call, or from
    // none the first time.
    void solve(std::span<const double> count);

    std::vector<double> entry_s;         // (F)
    std::vector<double> entries_per_s;   // (F) of all tasks of a kind
    std::vector<double> held_s;          // (F) of an entry, with miss slots in use
    std::vector<double> copy_s, work_s;  // (F) of an entry, alone
    std::vector<double> load;            // (n) of controllers
    std::vector<double> used;            // (n + L) of resources
    std::vector<double> wait_s;          // (n) of controllers
    std::vector<double> entry_wait_s;    // (n) for entries of home agents
    std::vector<double> room;            // (n) of a controller's time, but for directory updates

  private:
    void choose(std::span<const double> count);
    void take_alone(std::size_t kind);
    void take_alone(std::span<const double> count);
    double misses_s(std::size_t kind, std::span<const double> read, double slots) const;
    double overlapped_s(std::size_t kind) const;
    void copy(std::span<const double> count);
    void share(std::span<const double> count);
    double wait(std::int64_t round);  // the largest change
    double wait_before_links();       // likewise
    double update_directories();      // the largest change of room
    double wait_for_entries(std::span<const double> count, bool newton);
    std::span<const double> row(const std::vector<double>& matrix, std::size_t kind) const;

    const ServiceSetup of_;
    const std::size_t kinds_, nodes_, links_;
    const bool limited_, copies_, updates_;
    const Routes routes_;
    MaxMinSolver solver_;
    std::vector<std::size_t> running_, ways_;  // kinds; node * n + home
    std::vector<std::int64_t> row_ptr_, resource_, binding_;
    std::vector<double> coefficient_, cap_, weight_, rate_;
    std::vector<double> sharing_, alone_s_, before_s_, active_, part_, total_;
    std::vector<double> came_, waited_, fall_, slower_, near_, capacity_;
    std::vector<double> last_wait_s_, last_step_s_, longer_;  // (n) of controllers' waits
    std::vector<double> before_link_s_, before_links_s_;  // (links), (n, n) of the way from a home
};

}  // namespace numatwin

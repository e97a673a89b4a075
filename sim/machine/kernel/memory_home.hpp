// A node as the home of memory that long pieces use: how long its lines wait, by windows of 100 us.
//
// The controller's latency follows its load. At the end of a window it becomes that at which as
// many lines as were under way make the load that has this latency (load times latency is kept:
// Little's law). This settles where latency and load agree, and does not swing as taking the
// latency of the last load does. Changes below `wait_tolerance` of the latency without load are
// left out.
//
// Home agents have so many `entries`, where these are limited. A line that is read holds one from
// the time it enters the controller until it is on its way to the core: while it waits for a link
// that bounds its readers, too. Lines of all readers, from near and far, wait for entries in one
// FIFO queue. The wait W of this queue is the one with which lines have room: in each window
//
//     W += (lines read * S + sum of lines * their wait for links - entries) / lines read
//
// with lines read per time, and S, how long an entry is held without links: a line's latency, and
// no longer than entries suffice for all that the controller can read. So W stays 0 where no link
// is short. Where many wait, near and far readers get lines as they ask for them: if the far ones
// have N_r under way and their links carry L, all get L (1 + N_l / N_r).
//
// Where the directory of lines is kept in memory, its updates are writes. The last reader of a line
// was near with the probability that readers are, each line for itself: of N near and F far lines,
// 2 N F / (N + F) are updated. In the next window pieces have of the controller's time what the
// updates of this one leave them.
#pragma once

#include <cstddef>

#include "kernel/fifo_server.hpp"
#include "machine/kernel/memory_controller.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {

// It keeps no reference to the machine: who owns both may be copied.
class MemoryHome {
  public:
    static constexpr double wait_tolerance = 0.01;
    static constexpr double room_tolerance = 0.002;  // of the controller's time

    MemoryHome(const ServiceMachine& machine, std::size_t node);

    // -- in the window under way
    // Lines of so many units are read and written, by cores of the node itself or of another.
    void use(const MemoryUse& lines, double units, bool near) {
        work_ += rounded_ps(units * (lines.read * read_ps_ + lines.written * write_ps_));
        (near ? near_ : far_) += units * lines.read;
        read_ += units * lines.read;
    }
    // Lines that were read waited so long for a link, each.
    void wait_for_link(double lines, double wait_ps) { link_wait_ps_ += lines * wait_ps; }

    // -- at its end
    // What the directory's updates took, and leave to pieces. Returns whether room() has changed.
    bool settle_directory();
    // Returns whether wait_ps() has changed; `machine` is the one that it was made with.
    bool settle_waits(const ServiceMachine& machine) {
        const bool controller = settle_controller(machine);
        return settle_entries() || controller;
    }

    // How much longer a line takes than without load, and how long it waits for an entry.
    double controller_wait_ps() const { return controller_wait_ps_; }
    double entry_wait_ps() const { return entry_wait_ps_; }
    double wait_ps() const { return controller_wait_ps_ + entry_wait_ps_; }
    // The part of the controller's time that pieces have.
    double room() const { return room_; }
    // How long the directory's updates took, in all windows.
    Time updating() const { return updating_; }

  private:
    bool settle_controller(const ServiceMachine& machine);
    bool settle_entries();

    double read_ps_, write_ps_, idle_ps_, entries_;
    double controller_wait_ps_ = 0, entry_wait_ps_ = 0, room_ = 1;
    Time work_ = 0;              // of the window under way
    double near_ = 0, far_ = 0;  // in it: lines read by the node's cores, and by others
    double read_ = 0;            // all lines read
    double link_wait_ps_ = 0;    // of all lines together
    Time updating_ = 0;
};

}  // namespace numatwin

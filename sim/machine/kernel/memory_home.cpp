#include "machine/kernel/memory_home.hpp"

#include <algorithm>
#include <cmath>

namespace numatwin {

namespace {

constexpr Time window = LoadWindow::window;

}  // namespace

MemoryHome::MemoryHome(const ServiceMachine& machine, std::size_t node)
    : read_ps_(machine.read_ps[node]),
      write_ps_(machine.write_ps[node]),
      idle_ps_(machine.latency_ps[node * machine.read_ps.size() + node]),
      entries_(machine.entries.empty() ? 0.0 : machine.entries[node]) {}

bool MemoryHome::settle_directory() {
    const double updates = near_ + far_ > 0 ? 2 * near_ * far_ / (near_ + far_) : 0.0;
    near_ = far_ = 0;
    const Time updating = rounded_ps(updates * write_ps_);
    const double all = static_cast<double>(work_ + updating);
    const double room = work_ > 0 ? static_cast<double>(work_) / all : 1.0;
    const Time fitting = std::max<Time>(std::min(updating, window - work_), 0);
    work_ += fitting;
    updating_ += fitting;
    if (std::abs(room - room_) <= room_tolerance && !(room == 1 && room_ < 1)) return false;
    room_ = room;
    return true;
}

bool MemoryHome::settle_controller(const ServiceMachine& machine) {
    const double load = std::min(1.0, static_cast<double>(work_) / static_cast<double>(window));
    work_ = 0;
    if (!(idle_ps_ > 0)) return false;
    const double ratio = settled_ratio(machine, load * (1 + controller_wait_ps_ / idle_ps_));
    const double wait_ps = (ratio - 1) * idle_ps_;
    if (std::abs(wait_ps - controller_wait_ps_) <= wait_tolerance * idle_ps_) return false;
    controller_wait_ps_ = wait_ps;
    return true;
}

// The wait for entries follows how many are held.
bool MemoryHome::settle_entries() {
    const double read = read_, link_wait_ps = link_wait_ps_;
    read_ = link_wait_ps_ = 0;
    if (!(entries_ > 0) || (link_wait_ps == 0 && entry_wait_ps_ == 0)) return false;
    const double all_ps = entries_ * read_ps_;
    double held_ps = idle_ps_ + controller_wait_ps_;
    if (all_ps > 0) held_ps = std::min(held_ps, all_ps);
    double wait_ps = 0;
    if (read > 0) {
        const double room_ps = entries_ * static_cast<double>(window);
        wait_ps = std::max(0.0, entry_wait_ps_ + (read * held_ps + link_wait_ps - room_ps) / read);
    }
    if (wait_ps == entry_wait_ps_) return false;
    const double tolerance_ps = wait_tolerance * idle_ps_;
    if (wait_ps > 0 && std::abs(wait_ps - entry_wait_ps_) <= tolerance_ps) return false;
    entry_wait_ps_ = wait_ps;
    return true;
}

}  // namespace numatwin

// A memory controller: serves lines in order of arrival, reads and writes at their own times, and
// answers the later the busier it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/fifo_server.hpp"

namespace numatwin {

// How busy a server was of late: the load of the last window, by which latencies rise.

class LoadWindow {
  public:
    static constexpr Time window = 100'000'000;  // 100 µs

    void add(Time work) { work_ += work; }
    // Forgets the work of the window under way, not when it began.
    void forget() { work_ = 0; }

    // Whether the window under way is over. If so, `load` is the part of it that the work took
    // (at most 1), and the next one begins.
    bool close(Time now, double& load) {
        const Time elapsed = now - start_;
        if (elapsed < window) return false;
        load = std::min(1.0, static_cast<double>(work_) / static_cast<double>(elapsed));
        start_ = now;
        work_ = 0;
        return true;
    }

  private:
    Time start_ = 0, work_ = 0;
};

// Piecewise linear functions.

// y at `at`, of points with rising x; at most the last segment beyond the ends. At least two
// points.
inline double interpolated(double at, const std::vector<double>& x, const std::vector<double>& y) {
    std::size_t k = 1;
    while (k + 1 < x.size() && x[k] < at) ++k;
    return y[k - 1] + (y[k] - y[k - 1]) * (at - x[k - 1]) / (x[k] - x[k - 1]);
}

// Latency of a line under load over its latency without load, by the controller's load: points in
// rising order of load, at least two.
struct LoadCurve {
    std::vector<double> load, ratio;
};

// Times in picoseconds; lines may be fractions of one, as pieces of work hold mean numbers of them.
class MemoryController {
  public:
    MemoryController() = default;
    // How long a line takes the controller to read and to write (0 to read: it never limits
    // anything), and the latency of a line of it without load, from its own node.
    MemoryController(double read_ps, double write_ps, double idle_ps)
        : read_ps_(read_ps), write_ps_(write_ps), idle_ps_(idle_ps) {}

    // A piece of work arrives: so many lines, of which some are written. Returns when the last one
    // is served, after all that arrived before.
    Time serve(Time now, double lines, double written) {
        lines_ += lines;
        if (!(read_ps_ > 0)) return now;
        return serve_work(now, rounded_ps((lines - written) * read_ps_ + written * write_ps_));
    }
    // The same, where the caller knows how long the lines take the controller, and counts them.
    Time serve_work(Time now, Time work) {
        load_.add(work);
        return server_.serve(now, work);
    }
    void count_lines(double lines) { lines_ += lines; }

    // How much longer a line takes than without load: by the load of the last window that is over.
    double wait_ps(Time now, const LoadCurve& curve) {
        if (double load = 0; load_.close(now, load))
            wait_ps_ = (interpolated(load, curve.load, curve.ratio) - 1.0) * idle_ps_;
        return wait_ps_;
    }
    // As it was when it was last asked for.
    double last_wait_ps() const { return wait_ps_; }

    // -- counted since start_counting()
    double lines() const { return lines_; }
    Time arrived() const { return server_.taken(); }  // work that arrived
    Time done(Time now) const { return server_.done(now); }
    void start_counting(Time now) {
        server_.start_counting(now);
        lines_ = 0;
    }
    // The load of the window under way counts from now on only.
    void forget_load() { load_.forget(); }

  private:
    double read_ps_ = 0, write_ps_ = 0, idle_ps_ = 0;
    Backlog server_;
    LoadWindow load_;
    double wait_ps_ = 0;
    double lines_ = 0;
};

}  // namespace numatwin

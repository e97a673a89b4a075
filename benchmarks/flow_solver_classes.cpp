// The closed loop of flow_solver.py with the shares that the event planes keep up to date: flows of
// one route are members of one class of ClassSharing, as pieces of work are in SharedService.
//
// Usage: flow_solver_classes FLOWS TIMES WINDOW; see flow_solver_simgrid.cpp.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "flow_solver_list.hpp"
#include "kernel/class_sharing.hpp"
#include "kernel/indexed_heap.hpp"

namespace {

using numatwin::ClassSharing;
using Index = ClassSharing::Index;

// A class's clock says how much each member has been sent since the start, in units of what a link
// carries in a second; a flow that starts at clock V with volume v ends at V + v.
struct Route {
    double clock = 0, since = 0, pace = ClassSharing::infinity;
    std::vector<std::pair<double, std::size_t>> ends;  // (clock, flow), a heap, the first on top

    void advance(double now) {
        clock += (now - since) / pace;
        since = now;
    }
};

class ClosedLoop {
  public:
    explicit ClosedLoop(const FlowList& list)
        : list_(list), unit_(list.capacity.at(0)), class_of_pair_(list.nodes * list.nodes, none) {
        for (std::size_t r = 0; r < list.capacity.size(); ++r) sharing_.add_resource();
    }

    std::vector<double> play(std::size_t window) {
        std::vector<double> times(list_.volume.size());
        std::size_t next = 0;
        while (next < std::min(window, times.size())) start(next++);
        share();
        while (!ends_.empty()) {
            now_ = ends_.top().key;
            const std::size_t flow = finish(ends_.top().index);
            times[flow] = now_;
            if (next < times.size()) start(next++);
            share();
        }
        return times;
    }

  private:
    static constexpr Index none = ClassSharing::none;

    Index class_of(std::size_t flow) {
        Index& found = class_of_pair_[static_cast<std::size_t>(list_.source[flow]) * list_.nodes +
                                      static_cast<std::size_t>(list_.target[flow])];
        if (found != none) return found;
        std::vector<ClassSharing::Need> needs;
        for (auto k = list_.row_ptr[flow]; k < list_.row_ptr[flow + 1]; ++k) {
            const auto link = list_.resource[static_cast<std::size_t>(k)];
            const double capacity = list_.capacity[static_cast<std::size_t>(link)];
            needs.push_back({static_cast<Index>(link), unit_ / capacity});
        }
        route_.emplace_back();
        ends_.reserve(route_.size());
        return found = sharing_.add_class(needs);
    }

    void start(std::size_t flow) {
        const Index of = class_of(flow);
        Route& route = route_[of];
        route.advance(now_);
        route.ends.emplace_back(route.clock + list_.volume[flow] / unit_, flow);
        std::ranges::push_heap(route.ends, std::greater<>{});
        change(of);
    }

    std::size_t finish(Index of) {
        Route& route = route_[of];
        route.advance(now_);
        std::ranges::pop_heap(route.ends, std::greater<>{});
        const std::size_t flow = route.ends.back().second;
        route.ends.pop_back();
        change(of);
        return flow;
    }

    void change(Index of) {
        sharing_.change(of, static_cast<std::uint32_t>(route_[of].ends.size()), 0.0);
        changed_.push_back(of);
    }

    void share() {
        for (const Index of : sharing_.share()) {
            route_[of].advance(now_);
            route_[of].pace = sharing_.pace(of);
            plan(of);
        }
        for (const Index of : changed_) plan(of);
        changed_.clear();
    }

    void plan(Index of) {
        const Route& route = route_[of];
        if (route.ends.empty()) return ends_.erase(of);
        const double left = route.ends.front().first - route.clock;
        ends_.set(of, route.since + std::max(left, 0.0) * route.pace);
    }

    const FlowList& list_;
    double unit_, now_ = 0;
    ClassSharing sharing_;
    numatwin::IndexedHeap ends_;  // classes by the time of their first end
    std::vector<Route> route_;    // of each class
    std::vector<Index> class_of_pair_, changed_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return std::fprintf(stderr, "usage: %s FLOWS TIMES WINDOW\n", argv[0]), 2;
    const FlowList list = FlowList::read(argv[1]);
    ClosedLoop loop(list);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<double> times = loop.play(std::stoul(argv[3]));
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    write_times(argv[2], times);
    std::printf("%.9g\n", wall.count());
    return 0;
}

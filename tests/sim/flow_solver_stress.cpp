// Plays random programs on FlowNetwork and holds every rate and use to a full solve.
//
// Usage: flow_solver_stress SEED PROGRAMS. A program is a random sequence of starts, cancels,
// changes of capacity and steps in time. Exits with 1 at the first difference and prints its seed:
// flow_solver_stress SEED 1 plays that program again. Built with sanitizers by
// test_flow_solver_native.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernel/flow_network.hpp"
#include "kernel/max_min.hpp"

namespace {

using namespace numatwin;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Listed {
    std::vector<std::int64_t> resource;
    std::vector<double> coefficient;
    double cap;
    double weight;
    double ready;  // when its latency has passed
};

class Program {
  public:
    explicit Program(std::uint64_t seed) : random_(seed) {}

    // The largest difference found, as a part of what rounding may leave; above 1 it is wrong.
    double play() {
        ties_ = chance(0.5);
        decades_ = chance(0.2) ? uniform(0, 4) : 0;
        const std::size_t resources = static_cast<std::size_t>(whole(1, chance(0.5) ? 6 : 30));
        for (std::size_t r = 0; r < resources; ++r) {
            capacity_.push_back(draw_capacity());
            network_.add_resource(capacity_.back());
        }
        const auto pool = static_cast<std::size_t>(whole(1, 60));
        double worst = 0;
        for (std::int64_t step = whole(1, 80); step > 0; --step) {
            for (std::int64_t change = whole(1, 3); change > 0; --change) {
                const double kind = uniform(0, 1);
                if (kind < 0.15) {
                    change_capacity();
                } else if (kind < 0.6) {
                    if (listed_.size() < pool) start();
                } else if (kind < 0.9) {
                    cancel();
                } else {
                    pass_time();
                }
            }
            worst = std::max(worst, compare());
        }
        return worst;
    }

  private:
    double uniform(double from, double to) {
        return std::uniform_real_distribution<double>(from, to)(random_);
    }
    std::int64_t whole(std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
    }
    bool chance(double part) { return uniform(0, 1) < part; }
    // Whole numbers meet in ties, others do not.
    double size(double from, double to) {
        return ties_ ? static_cast<double>(whole(static_cast<std::int64_t>(std::ceil(from)),
                                                 static_cast<std::int64_t>(to)))
                     : uniform(from, to);
    }
    // Spreads weights and coefficients over some decades.
    double scale() {
        return decades_ > 0 && chance(0.5) ? std::pow(10.0, uniform(-decades_, decades_)) : 1;
    }
    double draw_capacity() {
        if (chance(0.05)) return 0;
        return size(0.1, 5) * (chance(0.05) ? std::pow(10.0, uniform(-3, 3)) : 1.0);
    }

    void start() {
        Listed flow;
        const std::int64_t needs = whole(0, 6);
        for (std::int64_t k = 0; k < needs; ++k) {
            flow.resource.push_back(whole(0, static_cast<std::int64_t>(capacity_.size()) - 1));
            flow.coefficient.push_back((ties_ ? 1.0 : uniform(0.1, 2)) * scale());
        }
        flow.cap = needs > 0 && chance(0.7) ? infinity : size(0, 2);
        flow.weight = (chance(0.6) ? 1.0 : uniform(0.1, 3)) * scale();
        const double latency = chance(0.1) ? uniform(0, 2) : 0.0;
        flow.ready = network_.now() + latency;
        const double volume = chance(0.3) ? size(0, 4) : 1e30;
        const auto id = network_.start(
            {{flow.resource, flow.coefficient, flow.cap, flow.weight}, volume, latency});
        listed_.emplace(id, std::move(flow));
    }

    void cancel() {
        if (listed_.empty()) return;
        auto chosen = listed_.begin();
        std::advance(chosen, whole(0, static_cast<std::int64_t>(listed_.size()) - 1));
        network_.cancel(chosen->first);
        listed_.erase(chosen);
    }

    void change_capacity() {
        const auto r =
            static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(capacity_.size()) - 1));
        capacity_[r] = draw_capacity();
        network_.set_capacity(static_cast<std::int64_t>(r), capacity_[r]);
    }

    void pass_time() {
        completions_.clear();
        network_.advance(network_.now() + uniform(0, 2), completions_);
        for (const Completion& completion : completions_) listed_.erase(completion.flow);
    }

    double compare() {
        std::vector<std::int64_t> ids, row_ptr{0}, resource;
        std::vector<double> coefficient, cap, weight;
        for (const auto& [id, flow] : listed_) {
            if (flow.ready > network_.now()) continue;
            ids.push_back(id);
            resource.insert(resource.end(), flow.resource.begin(), flow.resource.end());
            coefficient.insert(coefficient.end(), flow.coefficient.begin(), flow.coefficient.end());
            row_ptr.push_back(static_cast<std::int64_t>(resource.size()));
            cap.push_back(flow.cap);
            weight.push_back(flow.weight);
        }
        std::vector<double> rate(ids.size()), use(capacity_.size());
        std::vector<std::int64_t> binding(ids.size());
        const MaxMinProblem problem{capacity_, row_ptr, resource, coefficient, cap, weight};
        problem.validate();
        solver_.solve(problem, {rate, binding, use});

        // A rate is a difference of capacities, and as exact as those of its own resource.
        const double largest = *std::max_element(capacity_.begin(), capacity_.end());
        double worst = 0;
        for (std::size_t f = 0; f < ids.size(); ++f) {
            const double full =
                binding[f] < 0 ? 0 : capacity_[static_cast<std::size_t>(binding[f])];
            const double allowed = 1e-9 * rate[f] + 1e-12 * full + 1e-16 * largest * (full > 0);
            worst = std::max(worst, part(network_.rate(ids[f]) - rate[f], allowed));
        }
        for (std::size_t r = 0; r < capacity_.size(); ++r) {
            worst = std::max(worst, part(network_.use(r) - use[r], 1e-9 * capacity_[r]));
        }
        return worst;
    }

    static double part(double difference, double allowed) {
        if (difference == 0) return 0;
        return allowed > 0 && std::isfinite(difference) ? std::abs(difference) / allowed : infinity;
    }

    std::mt19937_64 random_;
    bool ties_ = false;
    double decades_ = 0;
    std::vector<double> capacity_;
    std::map<std::int64_t, Listed> listed_;
    std::vector<Completion> completions_;
    FlowNetwork network_;
    MaxMinSolver solver_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: %s SEED PROGRAMS\n", argv[0]), 2;
    const std::uint64_t seed = std::stoull(argv[1]), programs = std::stoull(argv[2]);
    double worst = 0;
    for (std::uint64_t number = seed; number < seed + programs; ++number) {
        const double found = Program(number).play();
        worst = std::max(worst, found);
        if (!(found <= 1)) {
            std::printf("seed %llu: %g times what rounding may leave\n",
                        static_cast<unsigned long long>(number), found);
            return 1;
        }
    }
    std::printf("%llu programs, at most %.3g of what rounding may leave\n",
                static_cast<unsigned long long>(programs), worst);
    return 0;
}

// Plays random programs on ClassSharing and compares every pace and use with a full solve.
//
// Usage: class_sharing_stress SEED PROGRAMS. A program is a random sequence of members that come
// and go, of least paces and of rooms that change. Exits with 1 at the first difference and prints
// its seed: class_sharing_stress SEED 1 plays that program again. Built with sanitizers by
// test_kernel_native.py.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernel/class_sharing.hpp"
#include "kernel/max_min.hpp"

namespace {

using namespace numatwin;
using Index = ClassSharing::Index;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tolerance = 1e-9;

struct Listed {
    std::vector<ClassSharing::Need> needs;
    std::uint32_t members = 0;
    double least_pace = 0;
    double pace = infinity;  // as share() has reported it
};

class Program {
  public:
    explicit Program(std::uint64_t seed) : random_(seed) {}

    // The largest difference found, as a part of the tolerance; above 1 it is wrong.
    double play() {
        ties_ = chance(0.5);
        room_.assign(static_cast<std::size_t>(whole(1, chance(0.5) ? 6 : 30)), 1.0);
        for (std::size_t r = 0; r < room_.size(); ++r) sharing_.add_resource();
        for (std::int64_t c = whole(1, 40); c > 0; --c) add_class();
        double worst = 0;
        for (std::int64_t step = whole(1, 60); step > 0; --step) {
            for (std::int64_t change = whole(1, 3); change > 0; --change) {
                if (chance(0.1))
                    change_room();
                else
                    change_class();
            }
            for (const Index of : sharing_.share()) class_[of].pace = sharing_.pace(of);
            worst = std::max(worst, compare());
        }
        return worst;
    }

  private:
    std::int64_t whole(std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
    }
    bool chance(double part) { return std::bernoulli_distribution(part)(random_); }
    // A multiple of 2^-20, as ClassSharing rounds times to these; whole numbers meet in ties.
    double time() {
        return ties_ ? static_cast<double>(whole(1, 4))
                     : static_cast<double>(whole(1 << 16, 1 << 22)) * 0x1p-20;
    }

    void add_class() {
        Listed of;
        std::vector<Index> resources(room_.size());
        for (std::size_t r = 0; r < resources.size(); ++r) resources[r] = static_cast<Index>(r);
        std::ranges::shuffle(resources, random_);
        resources.resize(std::min<std::size_t>(resources.size(), whole(0, 6)));
        for (const Index resource : resources) of.needs.push_back({resource, time()});
        sharing_.add_class(of.needs);
        class_.push_back(of);
    }

    void change_class() {
        const auto c =
            static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(class_.size()) - 1));
        Listed& of = class_[c];
        of.members = chance(0.3) ? 0 : static_cast<std::uint32_t>(whole(1, 6));
        of.least_pace = of.needs.empty() || chance(0.6) ? time() : 0;
        sharing_.change(static_cast<Index>(c), of.members, of.least_pace);
    }

    void change_room() {
        const auto r =
            static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(room_.size()) - 1));
        room_[r] = static_cast<double>(whole(1, 16)) / 16;
        sharing_.limit(static_cast<Index>(r), room_[r]);
    }

    double compare() {
        std::vector<std::size_t> present;
        std::vector<std::int64_t> row_ptr{0}, resource;
        std::vector<double> coefficient, cap, weight;
        double worst = 0;
        for (std::size_t c = 0; c < class_.size(); ++c) {
            const Listed& of = class_[c];
            if (sharing_.pace(static_cast<Index>(c)) != of.pace) return infinity;  // not reported
            if (of.members == 0) {
                if (of.pace != infinity) return infinity;
                continue;
            }
            present.push_back(c);
            for (const ClassSharing::Need& need : of.needs) {
                resource.push_back(need.resource);
                coefficient.push_back(need.time);
            }
            row_ptr.push_back(static_cast<std::int64_t>(resource.size()));
            cap.push_back(of.least_pace > 0 ? of.members / of.least_pace : infinity);
            weight.push_back(of.members);
        }
        std::vector<double> rate(present.size()), use(room_.size());
        std::vector<std::int64_t> binding(present.size());
        const MaxMinProblem problem{room_, row_ptr, resource, coefficient, cap, weight};
        problem.validate();
        solver_.solve(problem, {rate, binding, use});
        for (std::size_t k = 0; k < present.size(); ++k) {
            const Listed& of = class_[present[k]];
            worst = std::max(worst, std::abs(of.members / of.pace / rate[k] - 1) / tolerance);
        }
        for (std::size_t r = 0; r < room_.size(); ++r) {
            const double found = sharing_.use(static_cast<Index>(r));
            worst = std::max(worst, std::abs(found - use[r]) / tolerance);
        }
        return worst;
    }

    std::mt19937_64 random_;
    bool ties_ = false;
    std::vector<double> room_;
    std::vector<Listed> class_;
    ClassSharing sharing_;
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
            std::printf("seed %llu: %g times the tolerance\n",
                        static_cast<unsigned long long>(number), found);
            return 1;
        }
    }
    std::printf("%llu programs, at most %.3g of the tolerance\n",
                static_cast<unsigned long long>(programs), worst);
    return 0;
}

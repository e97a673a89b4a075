// Python's view of functions of arrays: max-min and water-filling solvers, traffic of links, means
// of a binomially distributed number.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernel/arrays.hpp"
#include "kernel/max_min.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {

// Means of a binomially distributed number that is divided into parts of a size.

// Of N successes in `trials` of a chance, put into parts of `size` one after another:
// parts: E ceil(N / size). squares: mean sum of the squares of what parts hold. begun: how likely
// the last part is not full.
//
// Relative to the mode, the probability of each number is its neighbour's times the ratio
// (trials - k) p / (k + 1) / (1 - p): no logarithms of huge factorials lose digits. Each side ends
// where a number is 1e-20 times as likely as the mode; beyond it ratios only fall, and less than
// 1e-20 is left out in all.
class BinomialParts {
  public:
    static constexpr double negligible = 1e-20;

    // Throws std::invalid_argument for trials or a size below 1.
    BinomialParts(std::int64_t trials, std::int64_t size)
        : trials_(static_cast<double>(trials)), size_(static_cast<double>(size)) {
        if (trials < 1) throw std::invalid_argument("trials: expected 1 or more");
        if (size < 1) throw std::invalid_argument("size: expected 1 or more");
    }

    struct Means {
        double parts, squares, begun;
    };

    // Throws std::invalid_argument unless 0 <= chance <= 1.
    Means operator()(double chance) const {
        if (!(chance >= 0 && chance <= 1)) {
            throw std::invalid_argument("chance: expected 0 to 1");
        }
        const double mode = std::min(std::floor((trials_ + 1) * chance), trials_);
        Sums sums;
        Filled filled{std::floor(mode / size_), std::fmod(mode, size_)};
        add(sums, filled, 1.0);
        double likely = 1.0;
        const double odds = chance / (1 - chance);  // unused where the chance is 1
        for (double k = mode; k < trials_ && likely > negligible; ++k) {
            likely *= (trials_ - k) * odds / (k + 1);
            if (++filled.rest == size_) filled = {filled.full + 1, 0};
            add(sums, filled, likely);
        }
        likely = 1.0;
        filled = {std::floor(mode / size_), std::fmod(mode, size_)};
        const double against = (1 - chance) / chance;  // unused where the chance is 0
        for (double k = mode; k > 0 && likely > negligible; --k) {
            likely *= k * against / (trials_ - k + 1);
            if (--filled.rest < 0) filled = {filled.full - 1, size_ - 1};
            add(sums, filled, likely);
        }
        return {sums.parts / sums.likely, sums.squares / sums.likely, sums.begun / sums.likely};
    }

  private:
    struct Sums {
        double likely = 0, parts = 0, squares = 0, begun = 0;
    };
    // A number of successes: full parts, and what the last one holds. Whole numbers, as doubles.
    struct Filled {
        double full, rest;
    };

    void add(Sums& sums, const Filled& filled, double likely) const {
        const double begun = filled.rest > 0 ? 1.0 : 0.0;
        sums.likely += likely;
        sums.parts += likely * (filled.full + begun);
        sums.squares += likely * (filled.full * size_ * size_ + filled.rest * filled.rest);
        sums.begun += likely * begun;
    }

    double trials_, size_;
};

namespace {

py::tuple solve_max_min(const Doubles& capacity, const Indices& row_ptr, const Indices& resource,
                        const Doubles& coefficient, const Doubles& cap, const Doubles& weight) {
    const MaxMinProblem problem{view(capacity, "capacity"), view(row_ptr, "row_ptr"),
                                view(resource, "resource"), view(coefficient, "coefficient"),
                                view(cap, "cap"),           view(weight, "weight")};
    Doubles rate(cap.size());
    Indices binding(cap.size());
    Doubles use(capacity.size());
    const MaxMinShares shares{written(rate), written(binding), written(use)};
    {
        const py::gil_scoped_release released;
        thread_local MaxMinSolver solver;
        problem.validate();
        solver.solve(problem, shares);
    }
    return py::make_tuple(rate, binding, use);
}

// Water-filling: a shared amount poured over columns that stand at different heights.
//
// What each column gets of an amount of 1 that raises it by its cost a unit, from its height, until
// all that get any stand at one level; the others stand higher. The sum is 1 but for rounding.
// Takes O(n log n) for n columns. Costs must be above 0, heights numbers; throws
// std::invalid_argument.
Doubles water_filling(const Doubles& heights, const Doubles& costs) {
    const auto height = view(heights, "height"), cost = view(costs, "cost");
    Doubles shares(heights.size());
    const std::span<double> share = written(shares);
    const std::size_t count = height.size();
    if (count == 0 || cost.size() != count) {
        throw std::invalid_argument("cost: expected as many as heights, " + std::to_string(count) +
                                    ", and at least one");
    }
    for (std::size_t k = 0; k < count; ++k) {
        if (!(cost[k] > 0)) throw std::invalid_argument("cost: expected above 0");
        if (std::isnan(height[k])) throw std::invalid_argument("height: expected a number");
    }
    thread_local std::vector<std::size_t> order;
    order.resize(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return height[a] < height[b]; });
    // Only differences count, and only in proportion to the cost. With the first k columns taking
    // part, the level is (1 + sum height/cost) / (sum 1/cost).
    const double lowest = height[order.front()];
    for (std::size_t k = 0; k < count; ++k) share[k] = (height[k] - lowest) / cost[k];
    double weighted = 0.0, rate = 0.0, level = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
        weighted += share[order[k]];
        rate += 1.0 / cost[order[k]];
        const double here = (1.0 + weighted) / rate;
        // It falls as long as the next column is below it, and rises from there on.
        if (k == 0 || here < level) level = here;
    }
    for (std::size_t k = 0; k < count; ++k) share[k] = std::max(level / cost[k] - share[k], 0.0);
    return shares;
}

// Traffic of links, where a node's traffic between others is a product of two rows: use k of links
// is of the directed links[k], on the route from the node starts[k] to the node ends[k].
//
// For each row r of n what each link carries where factor[i][r] * value[j][r] goes from i to j:
// [links][n], added to in the order of the uses. Rows stand beside each other, so that a compiler
// makes several at a time. Throws std::invalid_argument for arrays that do not fit together, and
// for indices out of range. Takes O(n * uses).
Doubles link_rows(const Indices& links, const Indices& starts, const Indices& ends,
                  std::size_t nodes, std::size_t count, const Doubles& factor,
                  const Doubles& value) {
    const auto link = view(links, "link"), from = view(starts, "start"), to = view(ends, "end");
    const auto factors = view(factor, "factor"), values = view(value, "value");
    if (from.size() != link.size() || to.size() != link.size())
        throw std::invalid_argument("link, from and to: expected as many of each");
    if (factors.size() != nodes * nodes || values.size() != nodes * nodes)
        throw std::invalid_argument("factor and value: expected a row for each node");
    const auto below = [](std::int64_t index, std::size_t end) {
        return index >= 0 && static_cast<std::size_t>(index) < end;
    };
    for (std::size_t k = 0; k < link.size(); ++k)
        if (!below(link[k], count) || !below(from[k], nodes) || !below(to[k], nodes))
            throw std::invalid_argument("link, from and to: expected indices");
    Doubles total(static_cast<py::ssize_t>(nodes * count));
    const std::span<double> rows = written(total);
    std::ranges::fill(rows, 0.0);
    for (std::size_t k = 0; k < link.size(); ++k) {
        const double* of_start = factors.data() + static_cast<std::size_t>(from[k]) * nodes;
        const double* of_end = values.data() + static_cast<std::size_t>(to[k]) * nodes;
        double* sums = rows.data() + static_cast<std::size_t>(link[k]) * nodes;
        for (std::size_t r = 0; r < nodes; ++r) sums[r] += of_start[r] * of_end[r];
    }
    return total;
}

// Routes are trees, by the node where they begin: a walk back stops where it has been.
Doubles route_means(const Indices& entering, const Indices& predecessor, const Doubles& value,
                    const Doubles& weight) {
    constexpr std::size_t values = 3;
    const auto links = view(entering, "entering"), before = view(predecessor, "predecessor");
    const auto each = view(value, "value"), part = view(weight, "weight");
    const std::size_t nodes = part.size(), vertices = nodes ? links.size() / nodes : 0;
    if (vertices < nodes || links.size() != nodes * vertices || before.size() != links.size() ||
        std::ranges::any_of(
            links, [&](auto k) { return k >= std::ssize(each) / 3; }) ||
        std::ranges::any_of(before, [&](auto k) { return std::cmp_greater_equal(k, vertices); }))
        throw std::invalid_argument("routes: columns do not fit together");
    Doubles means(static_cast<py::ssize_t>(2 * nodes * values));
    const auto mean = written(means);
    std::ranges::fill(mean, 0.0);
    std::vector<double> sum(vertices * values);
    std::vector<std::size_t> known_from(vertices, nodes), way;
    for (std::size_t root = 0; root < nodes; ++root) {
        std::fill_n(sum.data() + root * values, values, 0.0);
        known_from[root] = root;
        for (std::size_t to = 0; to < nodes; ++to) {
            std::size_t at = to;
            for (; known_from[at] != root && before[root * vertices + at] >= 0;
                 at = static_cast<std::size_t>(before[root * vertices + at])) {
                way.push_back(at);
                known_from[at] = root;
            }
            for (; !way.empty(); at = way.back(), way.pop_back()) {
                const auto link = static_cast<std::size_t>(links[root * vertices + way.back()]);
                for (std::size_t k = 0; k < values; ++k)
                    sum[way.back() * values + k] = sum[at * values + k] + each[link * values + k];
            }
            for (std::size_t k = 0; k < values && known_from[to] == root; ++k) {
                mean[root * values + k] += part[to] * sum[to * values + k];
                mean[(nodes + to) * values + k] += part[root] * sum[to * values + k];
            }
        }
    }
    return means;
}

py::tuple parts_of(std::int64_t trials, std::int64_t size, const Doubles& chances) {
    const BinomialParts means(trials, size);
    const auto given = view(chances, "chances");
    Doubles parts(chances.size()), squares(chances.size()), begun(chances.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
        const auto found = means(given[k]);
        written(parts)[k] = found.parts;
        written(squares)[k] = found.squares;
        written(begun)[k] = found.begun;
    }
    return py::make_tuple(parts, squares, begun);
}

void register_functions(py::module_& module) {
    module.def("solve_max_min", &solve_max_min, py::arg("capacity"), py::arg("row_ptr"),
               py::arg("resource"), py::arg("coefficient"), py::arg("cap"), py::arg("weight"),
               R"(Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).

Flow f uses coefficient[k] * rate[f] of resource[k], for k in row_ptr[f]:row_ptr[f + 1]; a
resource that appears twice adds up. All rate / weight rise together; a flow stops when one of
its resources is full (binding: that resource's index) or at its cap (binding: -1). Ties go to
caps first, then to the lowest index.

Shapes: capacity [R], row_ptr [F + 1], resource and coefficient [NNZ], cap and weight [F].
Units are the caller's: cap and rate share one, capacity is coefficient * rate. A capacity may
be 0 (then its users rest) or infinite; a cap may be 0 or infinite; a weight is above 0.
The result is exact but for rounding: no resource is overused by more than 1e-12 of itself.
Releases the GIL; float64 and int64 arrays are read without a copy.

Raises ValueError, naming the first wrong value, for shapes and values out of range and for a
flow with neither a finite cap nor a resource of finite capacity.)");
    module.def("water_filling", &water_filling, py::arg("height"), py::arg("cost"),
               R"(Shares of 1 that raise columns to one level: share[N].

Column k stands at height[k], and rises by cost[k] for each unit that it gets. The lowest ones are
filled up to a common level; columns above it get nothing. The sum is 1 but for rounding.

Raises ValueError for no column, for arrays of different lengths, for a cost that is not above 0
and for a height that is no number.)");
    module.def("link_rows", &link_rows, py::arg("link"), py::arg("start"), py::arg("end"),
               py::arg("nodes"), py::arg("links"), py::arg("factor"), py::arg("value"),
               R"(What each link carries for each of n rows: total[links * n].

In row r, factor[i * n + r] * value[j * n + r] goes from node i to node j. Use k says that the
route from start[k] to end[k] takes link[k]; products are added up in the order of the uses.

Raises ValueError for arrays that do not fit together, and for indices out of range.)");
    module.def("route_means", &route_means, py::arg("entering"), py::arg("predecessor"),
               py::arg("value"), py::arg("weight"),
               "By weight[n], means of what value[links * 3] adds up to over all routes from each "
               "node, then to each: mean[2 * n * 3]. entering, predecessor[n * v]: see Routes.");
    module.def(
        "binomial_parts", &parts_of, py::arg("trials"), py::arg("size"), py::arg("chances"),
        R"(Means of a binomially distributed number in parts: (parts[N], squares[N], begun[N]).

Of the successes in so many trials of each chance, put into parts of the size one after another: how
many parts there are on average, the mean sum of the squares of what they hold, and how likely the
last one is not full.

Raises ValueError for trials or a size below 1, and for a chance that is not 0 to 1.)");
}

const Registration registration("functions", register_functions);

}  // namespace

}  // namespace numatwin

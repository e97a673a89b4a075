// Commits on this host: what a run is made with, its board, its processes or threads.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "fabric/fabric_binding.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/measure_steps.hpp"
#include "systems/commits/roles.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace numatwin::native {
namespace {

constexpr const char* sabotages[] = {"none", "no-validation", "bit-before-write", "torn-reads"};

Sabotage sabotage_named(const std::string& name) {
    for (std::size_t k = 0; k < std::size(sabotages); ++k)
        if (name == sabotages[k]) return static_cast<Sabotage>(k);
    throw std::invalid_argument("sabotage: " + name);
}

py::list steps(const std::vector<StepCost>& costs) {
    py::list found;
    for (const auto& cost : costs)
        found.append(py::dict("name"_a = cost.name, "bytes"_a = cost.bytes,
                              "region"_a = cost.region, "count"_a = cost.count,
                              "samples_ns"_a = cost.samples_ns));
    return found;
}

// Of all roles together; busy_ns by role.
py::dict counts(Board& board) {
    std::vector<std::uint64_t> aborts(causes), messages(message_types), busy;
    std::vector<std::int64_t> latencies(Counters::buckets);
    std::uint64_t commits = 0, given_up = 0, torn = 0, updates = 0, bytes = 0, total_ps = 0;
    for (std::uint32_t role = 0; role < board.roles(); ++role) {
        const auto& from = board.counters(role);
        commits += from.commits.get();
        given_up += from.given_up.get();
        torn += from.torn.get();
        updates += from.updates.get();
        bytes += from.bytes.get();
        total_ps += from.latency_total_ps.get();
        for (std::size_t k = 0; k < aborts.size(); ++k) aborts[k] += from.aborts[k].get();
        for (std::size_t k = 0; k < messages.size(); ++k) messages[k] += from.messages[k].get();
        busy.push_back(from.busy_ns.get());
        if (from.commits.get() == 0) continue;
        for (std::size_t k = 0; k < Counters::buckets; ++k)
            latencies[k] += static_cast<std::int64_t>(from.latencies[k].get());
    }
    return py::dict("commits"_a = commits, "given_up"_a = given_up, "torn"_a = torn,
                    "updates"_a = updates, "bytes"_a = bytes, "latency_total_ps"_a = total_ps,
                    "aborts"_a = aborts, "messages"_a = messages, "busy_ns"_a = busy,
                    "latencies"_a = latencies);
}

py::array_t<std::int64_t> trace(const Board& board) {
    return array_of<std::int64_t>(board.trace(), &Row::time_ps, &Row::kind, &Row::client,
                                  &Row::transaction, &Row::a, &Row::b);
}

void register_setup(py::module_& module) {
    using S = RunSetup;
    auto run = def_struct<S>(module, "CommitRun",
                             "What a run of a commit protocol is made with; times are real.");
    def_fabric_options<S>(run);
    def_fabric_option<S>(run, "populate", &FabricOptions::populate);
    run.def_property(
           "sabotage",
           [](const S& setup) { return sabotages[static_cast<std::size_t>(setup.sabotage)]; },
           [](S& setup, const std::string& name) { setup.sabotage = sabotage_named(name); })
        .def_property_readonly("block_bytes", &S::block_bytes)
        .def_property_readonly("blocks", &S::blocks)
        .def_property_readonly("board_bytes", [](const S& setup) { return Board::bytes(setup); });
}

void register_rsi(py::module_& module) {
    register_setup(module);
    py::enum_<Phase>(module, "Phase", "Of a run, in this order.")
        .value("starting", Phase::starting)
        .value("running", Phase::running)
        .value("stopping", Phase::stopping)
        .value("finished", Phase::finished);
    py::class_<Board>(module, "CommitBoard", "What the roles of a run share: clients, then nodes.")
        .def(py::init<const RunSetup&, int>(), "run"_a, "descriptor"_a)
        .def_property("phase", &Board::phase, &Board::set_phase)
        .def("begin", &Board::begin, "Clients begin; time counts from now.")
        .def_property_readonly("now_ns", &Board::now_ns)
        .def_property_readonly(
            "all_connected",
            [](const Board& board) { return board.all_roles(RoleState::connected); })
        .def_property_readonly(
            "clients_done", [](const Board& board) { return board.all_clients(RoleState::done); })
        .def_property_readonly("failure", &Board::failure, "Empty where nothing failed.")
        .def(
            "counts", &counts,
            "Sums over all roles; ``busy_ns`` by role, ``latencies`` by the kernel's buckets (ps).")
        .def("trace", &trace, "(rows, 6): as in sim/systems/commits/history.py.")
        .def(
            "killed",  // by role: the signal that ended it; 0: none
            [](Board& board) {
                std::vector<std::uint32_t> found;
                for (std::uint32_t role = 0; role < board.roles(); ++role)
                    found.push_back(std::max(board.role(role).killed.load(), 1u) - 1);
                return found;
            },
            "By role: the signal that ended it, or 0.")
        .def(
            "pid", [](Board& board, std::uint32_t role) { return board.role(role).pid.load(); },
            "role"_a)
        .def(
            "installing",
            [](Board& board, std::uint32_t role) {
                return board.role(role).installing.load() != 0;
            },
            "role"_a, "Whether it is, or died, in the middle of an install.");
    py::class_<ThreadCluster>(module, "ThreadCommits", "A run by threads of this process.")
        .def(py::init<const RunSetup&>(), "run"_a)
        .def_property_readonly("board", &ThreadCluster::board,
                               py::return_value_policy::reference_internal)
        .def("start", &ThreadCluster::start, py::call_guard<py::gil_scoped_release>())
        .def("stop", &ThreadCluster::stop, py::call_guard<py::gil_scoped_release>());
    using Numbers = std::vector<std::uint64_t>;
    module.def(
        "measure_blocks",
        [](const RunSetup&, const Numbers& sizes, const Numbers& regions,
           const std::vector<int>& cpus, std::uint32_t windows, std::int64_t window_ns) {
            return steps(measure_blocks(sizes, regions, cpus, {windows, window_ns}));
        },
        "run"_a, "sizes"_a, "regions"_a, "cpus"_a, "windows"_a, "window_ns"_a,
        R"(Forks: see systems/commits/measure_steps.hpp; here and below, samples_ns of each name and
size.)");
    module.def(
        "measure_ends",
        [](const RunSetup& run, const Numbers& sizes, const Numbers& counts, std::uint32_t windows,
           std::int64_t window_ns) {
            return steps(measure_ends(run, sizes, counts, {windows, window_ns}));
        },
        "run"_a, "sizes"_a, "counts"_a, "windows"_a, "window_ns"_a,
        "See systems/commits/measure_steps.hpp.");
    module.def(
        "measure_turns",
        [](const RunSetup& run, std::uint64_t bytes, const std::vector<int>& cpus,
           std::uint32_t windows, std::int64_t window_ns) {
            return steps(measure_turns(run, bytes, cpus, {windows, window_ns}));
        },
        "run"_a, "bytes"_a, "cpus"_a, "windows"_a, "window_ns"_a,
        "Forks: see systems/commits/measure_steps.hpp.");
    module.def("launch_commits", &launch, "run"_a, "board"_a, "control"_a,
               "Runs all roles as children of this process: systems/commits/roles.hpp.");
}

const Registration registration("rsi", register_rsi);

}  // namespace

}  // namespace numatwin::native

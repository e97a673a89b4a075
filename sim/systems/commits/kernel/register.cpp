// Python's view of commit protocols: CommitSetup, TwoPhaseCommits, OneSidedCommits.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/commits/kernel/history_checker.hpp"
#include "systems/commits/kernel/one_sided.hpp"
#include "systems/commits/kernel/two_phase.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

std::vector<std::int64_t> plain(const std::vector<Wide>& values) {
    return {values.begin(), values.end()};
}

template <class Model>
void register_model(py::module_& module, const char* name, const char* doc) {
    using Held = Runnable<Model>;
    py::class_<Held> bound(module, name, doc);
    bound.def(py::init([](const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
                          const Durations& compute, std::uint64_t seed, std::uint64_t replication) {
                  return std::make_unique<Held>(setup, keys, think, compute, seed, replication);
              }),
              py::arg("setup"), py::arg("keys"), py::arg("think"), py::arg("compute"),
              py::arg("seed") = 0, py::arg("replication") = 0,
              "Raises ValueError for a setup that does not fit together.");
    def_running<Model>(bound);
    const auto def_count = [&bound](const char* of, auto method, const char* doc) {
        bound.def_property_readonly(of, held<Model>(method), doc);
    };
    def_count("findings", &Model::findings, "What breaks snapshot isolation, in a checked run.");
    def_count("busy_clients", &Model::busy_clients,
              "Of those that live, who has begun a transaction and not ended it.");
    def_count("stopped_clients", &Model::stopped_clients,
              "Of all clients, those that died or were fenced.");
    def_count("locked_records", &Model::locked_records, "Records, and who has locked them.");
    def_count("rejoins", &Model::rejoins,
              "Storage servers that have their records again: when, in ps, and on which machine.");
    def_count("degraded_ps", &Model::degraded_ps,
              "For how long a storage server was stopped or out, where records have replicas.");
    def_count("commits", &Model::committed, "Transactions whose clients know that they committed.");
    def_count("given_up", &Model::given_up, "Transactions that aborted once too often.");
    def_count("aborts", &Model::aborts, "By cause.");
    def_count("sent", &Model::sent, "Messages by type.");
    bound.def("end_check", held<Model>(&Model::end_check), "Nothing is under way any more.")
        .def(
            "trace", [](Held& self) { return table_of(self->trace()); },
            "[rows, 6]: see numatwin.sim.systems.commits.history.")
        .def_property_readonly(
            "outgoing_busy_ps", [](Held& self) { return plain(self->outgoing_busy_ps()); },
            "By machine, up to now.")
        .def_property_readonly(
            "incoming_busy_ps", [](Held& self) { return plain(self->incoming_busy_ps()); },
            "By machine, up to now.")
        .def_property_readonly(
            "threads_busy_ps", [](Held& self) { return plain(self->threads_busy_ps()); },
            "By place, clients first, then nodes, up to now.")
        .def_property_readonly(
            "latency_buckets", [](Held& self) { return array_of(self->latency_ps().buckets()); },
            "Counts of latencies by bucket of a Histogram, from 0 on.")
        .def_property_readonly(
            "latency_total_ps",
            [](Held& self) { return static_cast<std::int64_t>(self->latency_total_ps()); },
            "Sum, from each transaction's first begin to its client's knowing that it committed.");
}

void register_checker(py::module_& module) {
    py::class_<HistoryChecker>(module, "HistoryChecker",
                               "Checks a history of transactions as it comes, in bounded memory.")
        .def(py::init<std::size_t, std::int64_t, std::size_t>(), py::arg("clients"),
             py::arg("records"), py::arg("versions"))
        .def(
            "add",
            [](HistoryChecker& self,
               const py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>& given) {
                if (given.ndim() != 2 || given.shape(1) != std::tuple_size_v<Row>)
                    throw std::invalid_argument("rows: expected [n, 6]");
                const std::int64_t* from = given.data();
                for (py::ssize_t r = 0; r < given.shape(0); ++r, from += std::tuple_size_v<Row>) {
                    Row row;
                    std::copy_n(from, row.size(), row.begin());
                    self.add(row);
                }
            },
            py::arg("rows"), "[n, 6]: see numatwin.sim.systems.commits.history.")
        .def("end", &HistoryChecker::end, "Nothing is under way any more.")
        .def_property_readonly("findings", &HistoryChecker::findings, "A line each, the first 20.")
        .def_property_readonly("unchecked_reads", &HistoryChecker::unchecked_reads,
                               "Reads of versions too old to be known here.")
        .def_property_readonly("held", &HistoryChecker::held, "Transactions in memory.");
}

void register_commits(py::module_& module) {
    register_checker(module);
    def_value(def_struct<RecordWork>(module, "RecordWork", "Thread time of a server on records."));
    def_value(
        def_struct<ClockFault>(module, "ClockFault", "The clock of a machine is off for a time."));
    def_struct<CommitSetup>(
        module, "CommitSetup",
        "What a commit protocol is run with: sim/systems/commits/parameters.py, in plain numbers.");
    register_model<TwoPhaseCommits>(module, "TwoPhaseCommits", "Snapshot isolation by 2PC.");
    register_model<OneSidedCommits>(module, "OneSidedCommits",
                                    "RSI: snapshot isolation with one-sided verbs.");
}

const Registration registration("commits", register_commits);

}  // namespace

}  // namespace numatwin

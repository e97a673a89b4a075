// Python's view of commit protocols: CommitSetup, TwoPhaseCommits, OneSidedCommits.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "systems/commits/kernel/commits.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

std::vector<std::int64_t> plain(const std::vector<Wide>& values) {
    return {values.begin(), values.end()};
}

py::array_t<std::int64_t> rows(const std::vector<Row>& trace) {
    py::array_t<std::int64_t> array({trace.size(), std::tuple_size_v<Row>});
    std::int64_t* to = array.mutable_data();
    for (const Row& row : trace) to = std::copy(row.begin(), row.end(), to);
    return array;
}

template <class Value>
void def_processor(py::class_<CommitSetup>& setup, const char* name, Value ProcessorSetup::* part) {
    setup.def_property(
        name, [part](const CommitSetup& self) { return self.processors.*part; },
        [part](CommitSetup& self, Value value) { self.processors.*part = value; });
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
              py::arg("seed") = 0, py::arg("replication") = 0);
    def_running<Model>(bound);
    bound.def("trace", [](Held& self) { return rows(self->trace()); })
        .def_property_readonly("commits", [](Held& self) { return self->committed(); })
        .def_property_readonly("given_up", [](Held& self) { return self->given_up(); })
        .def_property_readonly("aborts", [](Held& self) { return self->aborts(); })
        .def_property_readonly("sent", [](Held& self) { return self->sent(); })
        .def_property_readonly("touched_records",
                               [](Held& self) { return self->touched_records(); })
        .def_property_readonly("outgoing_busy_ps",
                               [](Held& self) { return plain(self->outgoing_busy_ps()); })
        .def_property_readonly("incoming_busy_ps",
                               [](Held& self) { return plain(self->incoming_busy_ps()); })
        .def_property_readonly("threads_busy_ps",
                               [](Held& self) { return plain(self->threads_busy_ps()); })
        .def_property_readonly("latency_buckets",
                               [](Held& self) { return self->latency_ps().buckets(); })
        .def_property_readonly(
            "latency_total_ps",
            [](Held& self) { return static_cast<std::int64_t>(self->latency_total_ps()); })
        .def(
            "latency_quantile_ps",
            [](Held& self, double q) { return self->latency_ps().quantile(q); }, py::arg("q"));
}

}  // namespace

void register_commits(py::module_& module) {
    py::class_<CommitSetup> setup(module, "CommitSetup", "What a commit protocol is run with.");
    def_processor(setup, "processors", &ProcessorSetup::count);
    def_processor(setup, "processor_slice_ps", &ProcessorSetup::slice);
    def_processor(setup, "processor_switch_ps", &ProcessorSetup::switch_over);
    def_processor(setup, "processor_look_ps", &ProcessorSetup::look);
    def_processor(setup, "processor_connection_ps", &ProcessorSetup::connection);
    def_processor(setup, "processor_spin_ps", &ProcessorSetup::spin);
    def_processor(setup, "processor_sleep_ps", &ProcessorSetup::sleep);
    def_processor(setup, "processor_wake_ps", &ProcessorSetup::wake);
    def_processor(setup, "processor_notify_ps", &ProcessorSetup::notify);
    def_processor(setup, "processor_tick_ps", &ProcessorSetup::tick);
    def_processor(setup, "processor_across_ps", &ProcessorSetup::across);
    def_processor(setup, "processor_interrupt_ps", &ProcessorSetup::interrupt);
    def_processor(setup, "processor_homes", &ProcessorSetup::homes);
    def_processor(setup, "processor_yield_ps", &ProcessorSetup::yield);
    setup.def(py::init<>())
        .def_readwrite("machines", &CommitSetup::machines)
        .def_readwrite("client_machine", &CommitSetup::client_machine)
        .def_readwrite("client_factor", &CommitSetup::client_factor)
        .def_readwrite("node_machine", &CommitSetup::node_machine)
        .def_readwrite("node_threads", &CommitSetup::node_threads)
        .def_readwrite("storage", &CommitSetup::storage)
        .def_readwrite("managers", &CommitSetup::managers)
        .def_readwrite("timestamps", &CommitSetup::timestamps)
        .def_readwrite("costs", &CommitSetup::costs)
        .def_readwrite("cost_entries", &CommitSetup::cost_entries)
        .def_readwrite("records", &CommitSetup::records)
        .def_readwrite("reads", &CommitSetup::reads)
        .def_readwrite("updates", &CommitSetup::updates)
        .def_readwrite("inserts", &CommitSetup::inserts)
        .def_readwrite("backoff_ps", &CommitSetup::backoff_ps)
        .def_readwrite("poll_ps", &CommitSetup::poll_ps)
        .def_readwrite("retries", &CommitSetup::retries)
        .def_readwrite("read_work_ps", &CommitSetup::read_work_ps)
        .def_readwrite("check_work_ps", &CommitSetup::check_work_ps)
        .def_readwrite("install_work_ps", &CommitSetup::install_work_ps)
        .def_readwrite("every_rm", &CommitSetup::every_rm)
        .def_readwrite("versions", &CommitSetup::versions)
        .def_readwrite("timestamp_bits", &CommitSetup::timestamp_bits)
        .def_readwrite("send_queue", &CommitSetup::send_queue)
        .def_readwrite("snapshot_every", &CommitSetup::snapshot_every)
        .def_readwrite("death_client", &CommitSetup::death_client)
        .def_readwrite("death_ps", &CommitSetup::death_ps)
        .def_readwrite("lease_ps", &CommitSetup::lease_ps)
        .def_readwrite("skip_after_ps", &CommitSetup::skip_after_ps)
        .def_readwrite("start_ps", &CommitSetup::start_ps)
        .def_readwrite("timestamp_reach", &CommitSetup::timestamp_reach)
        .def_readwrite("in_step", &CommitSetup::in_step)
        .def_readwrite("doorbell", &CommitSetup::doorbell)
        .def_readwrite("processor_gives_way", &CommitSetup::gives_way)
        .def_readwrite("processor_awake_ps", &CommitSetup::awake_ps)
        .def_readwrite("streams", &CommitSetup::streams)
        .def_readwrite("traced", &CommitSetup::traced);
    register_model<TwoPhaseCommits>(module, "TwoPhaseCommits", "Snapshot isolation by 2PC.");
    register_model<OneSidedCommits>(module, "OneSidedCommits",
                                    "RSI: snapshot isolation with one-sided verbs.");
}

}  // namespace numatwin

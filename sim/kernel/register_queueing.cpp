// Python's view of networks of queues: QueueingNetwork.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/arrays.hpp"
#include "kernel/queueing.hpp"
#include "kernel/register.hpp"
#include "kernel/running.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Network = Runnable<QueueingNetwork>;
using Index = QueueingNetwork::Index;

Index add_station(Network& self, StationKind kind, const Durations& service, const Stream& stream,
                  std::size_t servers) {
    return self->add_station({kind, {service, stream}, servers});
}

// A fact of each station, as an array.
template <double (QueueingNetwork::*fact)(Index) const>
Doubles facts(Network& self) {
    Doubles values(static_cast<py::ssize_t>(self->stations()));
    const auto value = written(values);
    for (std::size_t s = 0; s < value.size(); ++s)
        value[s] = ((*self).*fact)(static_cast<Index>(s));
    return values;
}

template <std::uint64_t QueueingNetwork::StationCounts::* count>
Indices counts(Network& self) {
    Indices values(static_cast<py::ssize_t>(self->stations()));
    const auto value = written(values);
    for (std::size_t s = 0; s < value.size(); ++s)
        value[s] = static_cast<std::int64_t>(self->counts(static_cast<Index>(s)).*count);
    return values;
}

void register_queueing(py::module_& module) {
    using Counts = QueueingNetwork::StationCounts;
    py::class_<Network> network(module, "QueueingNetwork",
                                R"(A network of queues: the kernel's primitives put together.

Customers come from sources (open) or are there from the start (closed), and go from station to
station by chance; from a station without a route they leave. A visit draws its service when it
arrives. Stations are named by their number, from 0. A
network is complete before it runs. Raises ValueError for values out of range.)");
    network.def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"),
                py::arg("replication") = 0,
                "Seed and replication are told in error messages; streams are handed in.");
    def_running<QueueingNetwork>(network);
    network
        .def(
            "add_fifo",
            [](Network& self, const Durations& service, const Stream& stream, std::size_t servers) {
                return add_station(self, StationKind::fifo, service, stream, servers);
            },
            py::arg("service"), py::arg("stream"), py::arg("servers") = 1,
            "Servers with one queue, in order of arrival.")
        .def(
            "add_delay",
            [](Network& self, const Durations& service, const Stream& stream) {
                return add_station(self, StationKind::delay, service, stream, 1);
            },
            py::arg("service"), py::arg("stream"), "Everybody at once.")
        .def(
            "add_source",
            [](Network& self, Index station, const Durations& between, const Stream& stream) {
                self->add_source(station, {between, stream});
            },
            py::arg("station"), py::arg("between"), py::arg("stream"),
            "Customers who come to the station, so far apart.")
        .def(
            "add_customers",
            [](Network& self, Index station, std::size_t count) {
                self->add_customers(station, count);
            },
            py::arg("station"), py::arg("count"),
            "So many customers, who are at the station from the start.")
        .def(
            "set_route",
            [](Network& self, Index station, const Doubles& probability, const Stream& stream) {
                self->set_route(station, view(probability, "probability"), stream);
            },
            py::arg("station"), py::arg("probability"), py::arg("stream"),
            "Where to from the station: probabilities [stations]; what is missing to 1 leaves.");
    network
        .def("arrivals", &counts<&Counts::arrivals>,
             "Customers who arrived, by station: [stations]. All since the last reset.")
        .def("departures", &counts<&Counts::departures>)
        .def("mean_number", &facts<&QueueingNetwork::mean_number>,
             "Customers at each station, averaged over time: [stations].")
        .def("utilisation", &facts<&QueueingNetwork::utilisation>,
             "The part of its servers' time in which they serve; of a delay, its mean number.")
        .def(
            "sojourn_ps",
            [](Network& self, Index station) { return Histogram(self->sojourn_ps(station)); },
            py::arg("station"), "Times from arrival to departure, a copy.")
        .def(
            "response_ps", [](Network& self) { return Histogram(self->response_ps()); },
            "Times from creation to leaving the network, a copy.")
        .def_property_readonly(
            "customers", [](Network& self) { return self->customers(); }, "In the network now.")
        .def_property_readonly("mean_customers",
                               [](Network& self) { return self->mean_customers(); })
        .def(
            "reset_statistics", [](Network& self) { self->reset_statistics(); },
            "Count from now on: the end of a warm-up.")
        .def(
            "keep_trace", [](Network& self, bool kept) { self->trace.keep(kept); },
            py::arg("kept") = true, "Keep what happens from now on.")
        .def(
            "trace", [](Network& self) { return trace_array(self->trace); },
            R"(Rows (time_ps, event, subject, data), a copy.

Events: 0 arrives, 1 departs. Subject: the station. Data: the customer, in the order of
creation.)");
}

const Registration registration("queueing", register_queueing);

}  // namespace

}  // namespace numatwin

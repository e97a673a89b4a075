// Python's view of networks of queues: QueueingNetwork.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <optional>
#include <vector>

#include "kernel/arrays.hpp"
#include "kernel/queueing.hpp"
#include "kernel/register.hpp"
#include "kernel/running.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Network = Runnable<QueueingNetwork>;
using Index = QueueingNetwork::Index;

Index add_servers(Network& self, StationKind kind, const Durations& service, const Stream& stream,
                  std::size_t servers) {
    return self->add_station({kind, {service, stream}, servers});
}

Index add_bounded(Network& self, const Durations& service, const Stream& stream,
                  std::size_t servers, std::optional<std::uint64_t> room) {
    return self->add_station({StationKind::bounded,
                              {service, stream},
                              servers,
                              room.value_or(BoundedQueue<Index>::unlimited)});
}

Index add_transfer(Network& self, const Durations& volume, const Stream& stream,
                   const Indices& route, double cap) {
    const auto links = view(route, "route");
    return self->add_station({StationKind::transfer,
                              {volume, stream},
                              1,
                              BoundedQueue<Index>::unlimited,
                              std::vector<std::int64_t>(links.begin(), links.end()),
                              cap});
}

template <StationKind kind>
auto add_kind() {
    return [](Network& self, const Durations& service, const Stream& stream, std::size_t servers) {
        return add_servers(self, kind, service, stream, servers);
    };
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
arrives (in a bounded station: when it begins). Stations are named by their number, from 0. A
network is complete before it runs. Raises ValueError for values out of range.)");
    network.def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"),
                py::arg("replication") = 0,
                "Seed and replication are told in error messages; streams are handed in.");
    def_running<QueueingNetwork>(network);
    network
        .def(
            "add_link", [](Network& self, double capacity) { return self->add_link(capacity); },
            py::arg("capacity"), "A link of so many units per picosecond, shared max-min fair.")
        .def("add_fifo", add_kind<StationKind::fifo>(), py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1, "Servers with one queue, in order of arrival.")
        .def("add_shared", add_kind<StationKind::shared>(), py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1,
             "Processor sharing: of n customers each gets min(1, servers / n) of a server.")
        .def(
            "add_delay",
            [](Network& self, const Durations& service, const Stream& stream) {
                return add_servers(self, StationKind::delay, service, stream, 1);
            },
            py::arg("service"), py::arg("stream"), "Everybody at once.")
        .def("add_bounded", &add_bounded, py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1, py::arg("room") = py::none(),
             R"(As add_fifo, with room for so many, those in service included.

Full, it loses who comes from a source, and holds who comes from a station, in order; who is
held stays where it was, in a bounded station with its server.)")
        .def("add_transfer", &add_transfer, py::arg("volume"), py::arg("stream"), py::arg("route"),
             py::arg("cap") = std::numeric_limits<double>::infinity(),
             "A transfer of so many units over all links of the route, at a rate of at most cap.")
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
        .def("lost", &counts<&Counts::lost>)
        .def("mean_number", &facts<&QueueingNetwork::mean_number>,
             "Customers at each station, averaged over time: [stations].")
        .def("mean_held", &facts<&QueueingNetwork::mean_held>,
             "Customers held before each station: [stations]. They count where they are, too.")
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

Events: 0 arrives, 1 departs, 2 is held, 3 is lost. Subject: the station. Data: the
customer, in the order of creation.)");
}

const Registration registration("queueing", register_queueing);

}  // namespace

}  // namespace numatwin

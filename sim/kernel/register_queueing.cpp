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

}  // namespace

void register_queueing(py::module_& module) {
    using Counts = QueueingNetwork::StationCounts;
    py::class_<Network> network(module, "QueueingNetwork", "A network of queues.");
    network.def(py::init<std::uint64_t, std::uint64_t>(), py::arg("seed"),
                py::arg("replication") = 0);
    def_running<QueueingNetwork>(network);
    network
        .def(
            "add_link", [](Network& self, double capacity) { return self->add_link(capacity); },
            py::arg("capacity"))
        .def("add_fifo", add_kind<StationKind::fifo>(), py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1)
        .def("add_shared", add_kind<StationKind::shared>(), py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1)
        .def(
            "add_delay",
            [](Network& self, const Durations& service, const Stream& stream) {
                return add_servers(self, StationKind::delay, service, stream, 1);
            },
            py::arg("service"), py::arg("stream"))
        .def("add_bounded", &add_bounded, py::arg("service"), py::arg("stream"),
             py::arg("servers") = 1, py::arg("room") = py::none())
        .def("add_transfer", &add_transfer, py::arg("volume"), py::arg("stream"), py::arg("route"),
             py::arg("cap") = std::numeric_limits<double>::infinity())
        .def(
            "add_source",
            [](Network& self, Index station, const Durations& between, const Stream& stream) {
                self->add_source(station, {between, stream});
            },
            py::arg("station"), py::arg("between"), py::arg("stream"))
        .def(
            "add_customers",
            [](Network& self, Index station, std::size_t count) {
                self->add_customers(station, count);
            },
            py::arg("station"), py::arg("count"))
        .def(
            "set_route",
            [](Network& self, Index station, const Doubles& probability, const Stream& stream) {
                self->set_route(station, view(probability, "probability"), stream);
            },
            py::arg("station"), py::arg("probability"), py::arg("stream"));
    network.def("arrivals", &counts<&Counts::arrivals>)
        .def("departures", &counts<&Counts::departures>)
        .def("lost", &counts<&Counts::lost>)
        .def("mean_number", &facts<&QueueingNetwork::mean_number>)
        .def("mean_held", &facts<&QueueingNetwork::mean_held>)
        .def("utilisation", &facts<&QueueingNetwork::utilisation>)
        .def(
            "sojourn_ps",
            [](Network& self, Index station) { return Histogram(self->sojourn_ps(station)); },
            py::arg("station"))
        .def("response_ps", [](Network& self) { return Histogram(self->response_ps()); })
        .def_property_readonly("customers", [](Network& self) { return self->customers(); })
        .def_property_readonly("mean_customers",
                               [](Network& self) { return self->mean_customers(); })
        .def("reset_statistics", [](Network& self) { self->reset_statistics(); })
        .def(
            "keep_trace", [](Network& self, bool kept) { self->trace.keep(kept); },
            py::arg("kept") = true)
        .def("trace", [](Network& self) { return trace_array(self->trace); });
}

}  // namespace numatwin

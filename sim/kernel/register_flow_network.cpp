// Python's view of the stateful network: FlowNetwork.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "kernel/arrays.hpp"
#include "kernel/flow_network.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A network of which only one thread at a time may take hold: calls release the GIL.
class SharedNetwork {
  public:
    class Hold {
      public:
        explicit Hold(SharedNetwork& shared) : shared_(shared) {
            if (shared_.held_.test_and_set(std::memory_order_acquire)) {
                throw std::runtime_error("the network is in use by another thread");
            }
        }
        ~Hold() { shared_.held_.clear(std::memory_order_release); }
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;
        FlowNetwork* operator->() const { return &shared_.network_; }

      private:
        SharedNetwork& shared_;
    };

    explicit SharedNetwork(const Doubles& capacity) {
        for (const double value : view(capacity, "capacity")) network_.add_resource(value);
    }
    Hold hold() { return Hold(*this); }

    std::vector<double> coefficients;  // scratch
    std::vector<FlowStart> starts;     // scratch
    std::vector<Completion> completions;

  private:
    FlowNetwork network_;
    std::atomic_flag held_;
};

struct FlowTable {
    const Indices& row_ptr;
    const Indices& resource;
    const Doubles& coefficient;
    const Doubles& volume;
    const Doubles& cap;
    const Doubles& weight;
    const Doubles& latency;
};

// The rows of the table, checked as far as its form goes, in network.starts.
std::span<const FlowStart> read_table(SharedNetwork& network, const FlowTable& table) {
    const auto row_ptr = view(table.row_ptr, "row_ptr");
    const auto resource = view(table.resource, "resource");
    const auto volume = view(table.volume, "volume");
    const std::size_t flows = volume.size();
    const Column coefficient(table.coefficient, resource.size(), "coefficient");
    const Column cap(table.cap, flows, "cap");
    const Column weight(table.weight, flows, "weight");
    const Column latency(table.latency, flows, "latency");
    bool rows = row_ptr.size() == flows + 1 && row_ptr.front() == 0 &&
                static_cast<std::size_t>(row_ptr.back()) == resource.size();
    for (std::size_t f = 0; rows && f < flows; ++f) rows = row_ptr[f] <= row_ptr[f + 1];
    if (!rows) {
        throw std::invalid_argument("row_ptr: expected " + std::to_string(flows + 1) +
                                    " ascending indices from 0 to " +
                                    std::to_string(resource.size()));
    }
    network.coefficients.resize(resource.size());
    for (std::size_t k = 0; k < resource.size(); ++k) network.coefficients[k] = coefficient[k];
    network.starts.clear();
    for (std::size_t f = 0; f < flows; ++f) {
        const auto from = static_cast<std::size_t>(row_ptr[f]);
        const auto count = static_cast<std::size_t>(row_ptr[f + 1]) - from;
        const std::span<const double> coefficients(network.coefficients);
        network.starts.push_back(
            {{resource.subspan(from, count), coefficients.subspan(from, count), cap[f], weight[f]},
             volume[f],
             latency[f]});
    }
    return network.starts;
}

std::int64_t start_flow(SharedNetwork& network, const Indices& resources, double volume,
                        const Doubles& coefficients, double cap, double weight, double latency) {
    const auto held = network.hold();
    const auto resource = view(resources, "resources");
    const Column coefficient(coefficients, resource.size(), "coefficients");
    network.coefficients.resize(resource.size());
    for (std::size_t k = 0; k < resource.size(); ++k) network.coefficients[k] = coefficient[k];
    return held->start({{resource, network.coefficients, cap, weight}, volume, latency});
}

Indices start_flows(SharedNetwork& network, const Indices& row_ptr, const Indices& resource,
                    const Doubles& volume, const Doubles& coefficient, const Doubles& cap,
                    const Doubles& weight, const Doubles& latency) {
    const auto held = network.hold();
    const auto starts =
        read_table(network, {row_ptr, resource, coefficient, volume, cap, weight, latency});
    for (const FlowStart& flow : starts) held->check(flow);
    Indices ids(static_cast<py::ssize_t>(starts.size()));
    const auto id = written(ids);
    for (std::size_t f = 0; f < starts.size(); ++f) id[f] = held->start(starts[f]);
    return ids;
}

Doubles replay(SharedNetwork& network, std::size_t window, const Indices& row_ptr,
               const Indices& resource, const Doubles& volume, const Doubles& coefficient,
               const Doubles& cap, const Doubles& weight, const Doubles& latency) {
    const auto held = network.hold();
    const auto starts =
        read_table(network, {row_ptr, resource, coefficient, volume, cap, weight, latency});
    Doubles ends(static_cast<py::ssize_t>(starts.size()));
    const auto end = written(ends);
    const py::gil_scoped_release released;
    held->replay(starts, window, end);
    return ends;
}

py::tuple completed(const std::vector<Completion>& completions) {
    Doubles times(static_cast<py::ssize_t>(completions.size()));
    Indices flows(static_cast<py::ssize_t>(completions.size()));
    const auto time = written(times);
    const auto flow = written(flows);
    for (std::size_t k = 0; k < completions.size(); ++k) {
        time[k] = completions[k].time;
        flow[k] = completions[k].flow;
    }
    return py::make_tuple(times, flows);
}

py::tuple advance(SharedNetwork& network, std::optional<double> until) {
    const auto held = network.hold();
    network.completions.clear();
    {
        const py::gil_scoped_release released;
        if (until) {
            held->advance(*until, network.completions);
        } else {
            held->advance(network.completions);
        }
    }
    return completed(network.completions);
}

py::tuple advance_tick(SharedNetwork& network, double until) {
    const auto held = network.hold();
    network.completions.clear();
    held->advance_tick(until, network.completions);
    return completed(network.completions);
}

// A fact of each flow, as an array in the order of the ids.
template <typename T, T (FlowNetwork::*fact)(std::int64_t)>
py::array_t<T, py::array::c_style> facts(SharedNetwork& network, const Indices& flows) {
    const auto held = network.hold();
    const auto ids = view(flows, "flows");
    py::array_t<T, py::array::c_style> values(flows.size());
    const auto value = written(values);
    for (std::size_t k = 0; k < ids.size(); ++k) value[k] = (*held.operator->().*fact)(ids[k]);
    return values;
}

Doubles uses(SharedNetwork& network) {
    const auto held = network.hold();
    Doubles values(static_cast<py::ssize_t>(held->resources()));
    const auto value = written(values);
    for (std::size_t r = 0; r < value.size(); ++r) value[r] = held->use(r);
    return values;
}

void register_flow_network(py::module_& module) {
    const py::object one = py::float_(1.0), none = py::float_(infinity), zero = py::float_(0.0);
    py::class_<SharedNetwork>(
        module, "FlowNetwork",
        R"(Flows with volumes that share resources max-min fair while time passes.

Rates are those of solve_max_min at any time (within 1e-9, relative); a change works on what it
reaches only. Changes made at one time count together, once time passes or a rate is asked for.
Time starts at 0. Units are the caller's: volume is rate * time, capacity is coefficient * rate.

A flow's id stays its own for good; the low 32 bits are its slot, which later flows reuse.
Events of one time come in the order of slots. One thread at a time: a second one gets
RuntimeError.)")
        .def(py::init<const Doubles&>(), py::arg("capacity") = Doubles(0),
             "Resources 0 .. R - 1 of these capacities: finite, at least 0.")
        .def_property_readonly(
            "now", [](SharedNetwork& self) { return self.hold()->now(); }, "The time reached.")
        .def_property_readonly(
            "resources", [](SharedNetwork& self) { return self.hold()->resources(); },
            "How many resources there are.")
        .def_property_readonly(
            "active", [](SharedNetwork& self) { return self.hold()->active(); },
            "How many flows have started and not ended.")
        .def(
            "add_resource",
            [](SharedNetwork& self, double capacity) {
                return self.hold()->add_resource(capacity);
            },
            py::arg("capacity"),
            "The index of a new resource. Raises ValueError for a capacity below 0 or infinite.")
        .def(
            "set_capacity",
            [](SharedNetwork& self, std::int64_t resource, double capacity) {
                self.hold()->set_capacity(resource, capacity);
            },
            py::arg("resource"), py::arg("capacity"),
            "Change a capacity from now on; 0 makes the resource's users rest.")
        .def("start_flow", &start_flow, py::arg("resources"), py::arg("volume"), py::kw_only(),
             py::arg("coefficients") = one, py::arg("cap") = infinity, py::arg("weight") = 1.0,
             py::arg("latency") = 0.0,
             R"(The id of a new flow, which takes its share once latency has passed.

It uses coefficient * rate of each resource; one that appears twice adds up. Raises
ValueError for values out of range and for a flow with neither a finite cap nor a resource
that it uses; then nothing has changed.)")
        .def("start_flows", &start_flows, py::arg("row_ptr"), py::arg("resource"),
             py::arg("volume"), py::kw_only(), py::arg("coefficient") = one, py::arg("cap") = none,
             py::arg("weight") = one, py::arg("latency") = zero,
             R"(The ids of new flows, given in compressed rows as solve_max_min takes them.

Shapes: row_ptr [F + 1], resource [NNZ], coefficient [NNZ], the others [F]; a number
stands for a whole column. Raises ValueError as start_flow does, with no flow started.)")
        .def(
            "cancel",
            [](SharedNetwork& self, std::int64_t flow) { return self.hold()->cancel(flow); },
            py::arg("flow"), R"(End a flow early and tell what is left of its volume.

Raises IndexError if it is not active.)")
        .def("rates", &facts<double, &FlowNetwork::rate>, py::arg("flows"),
             "The rates of flows; 0 while latency passes. Raises IndexError if one is not active.")
        .def("remaining", &facts<double, &FlowNetwork::remaining>, py::arg("flows"),
             "What is left of the flows' volumes. Raises IndexError if one is not active.")
        .def("bindings", &facts<std::int64_t, &FlowNetwork::binding>, py::arg("flows"),
             "The full resource that holds each flow back, or -1 for its cap or latency.")
        .def("uses", &uses, "What flows use of each resource: [R].")
        .def(
            "next_event", [](SharedNetwork& self) { return self.hold()->next_event(); },
            "When a flow next ends, or takes its share after its latency; infinity if none does.")
        .def("advance", &advance, py::arg("until") = py::none(),
             R"(Let time pass: (time, id) of the flows that ended, in order.

Without until: to the next completion, with all others of that time; nowhere, and with
empty arrays, if no flow will end. With until: to this time, it included. Releases the
GIL. Raises ValueError if until is before now.)")
        .def("advance_tick", &advance_tick, py::arg("until"),
             R"(The same to until, at most a tick of the caller's clock after next_event.

All that ends by then ends then, at the rates that hold now: they are shared once for all of
them and for what is started next.)")
        .def("replay", &replay, py::arg("window"), py::arg("row_ptr"), py::arg("resource"),
             py::arg("volume"), py::kw_only(), py::arg("coefficient") = one, py::arg("cap") = none,
             py::arg("weight") = one, py::arg("latency") = zero,
             R"(Play a list of flows in a closed loop and tell when each ended: [F].

A window of them is active; each that ends is followed at once by the next of the list.
Infinity stands for a flow that never ends. Columns as in start_flows. Releases the GIL.
Raises ValueError if a flow is active already.)");
}

const Registration registration("flow_network", register_flow_network);

}  // namespace

}  // namespace numatwin

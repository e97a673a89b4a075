// Python's view of the ERIS models: ErisMachine, ErisDemands, ErisTransfer, ErisRouting.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>

#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/eris/kernel/routing.hpp"
#include "systems/eris/kernel/shared.hpp"

namespace py = pybind11;

namespace numatwin {

// What a run of either ERIS model tells Python of the machine: use of cores, controllers and links.

template <class Model>
void add_machine_counts(pybind11::dict& found, const Model& model) {
    const auto& cores = model.cores();
    const auto& memory = model.memory();
    const auto& links = model.links();
    const std::size_t n = memory.size(), count = links.links();
    const Time now = model.clock.now();
    auto held = column_of(cores.size(), [&](std::size_t k) { return cores[k].held(); });
    for (std::size_t i = 0; i < model.workers(); ++i)
        held.mutable_data()[model.core_of(i)] -= model.held_left(i);
    found["held"] = held;
    found["core_executed"] =
        column_of(cores.size(), [&](std::size_t k) { return cores[k].executed(now); });
    found["memory_lines"] = column_of(n, [&](std::size_t k) { return memory[k].lines(); });
    found["memory_arrived"] = column_of(n, [&](std::size_t k) { return memory[k].arrived(); });
    found["memory_done"] = column_of(n, [&](std::size_t k) { return memory[k].done(now); });
    found["link_bytes"] = column_of(count, [&](std::size_t k) { return links.bytes(k); });
    found["link_done"] = column_of(count, [&](std::size_t k) { return links.done(k, now); });
    found["since_ps"] = model.counting_since();
}

namespace {

// What either model offers to Python beside its counts.
template <class Model>
void def_eris(py::class_<Runnable<Model>>& bound) {
    def_running<Model>(bound);
    bound.def("start", held<Model>(&Model::start), "Lets all workers begin.")
        .def("pace", held<Model>(&Model::pace), py::arg("who"), py::arg("factor"),
             "From now on these workers take so many times as long; math.inf: they stop.")
        .def("start_counting", held<Model>(&Model::start_counting), "Forgets what was counted.")
        .def("check", held<Model>(&Model::check),
             "Raises RuntimeError where commands were lost or done twice, or a server did too "
             "much.")
        .def(
            "latency",
            [](Runnable<Model>& self, std::size_t operation) {
                const Histogram& of = self->latency.at(operation);
                return std::pair(array_of(of.buckets()), of.total());
            },
            py::arg("operation"), "Of an operation: latencies by bucket, and their sum; in ps.");
}

using Model = Runnable<ErisRouting>;

py::dict counts(Model& self) {
    const ErisRouting& model = *self;
    const ErisCounts& c = model.counts;
    py::dict found;
    found["executed"] = array_of(c.executed);
    found["done"] = array_of(c.done);
    found["progress"] = array_of(c.progress);
    found["busy"] = column_of(model.workers(), [&](std::size_t i) { return model.busy(i); });
    const char* names[] = {"issue", "flush", "receive", "walk", "scan", "transfer"};
    for (std::size_t k = 0; k < std::size(names); ++k)
        found[names[k]] = column_of(model.workers(), [&](std::size_t i) {
            return model.step_time(static_cast<ErisRouting::Step>(k), i);
        });
    add_machine_counts(found, model);
    const Interconnect& links = model.links();
    found["link_lines"] = column_of(links.links(), [&](std::size_t k) { return links.lines(k); });
    found["link_requests"] =
        column_of(links.links(), [&](std::size_t k) { return links.requests(k); });
    found["made"] = c.made;
    found["flushes"] = c.flushes;
    found["flushed"] = c.flushed;
    found["retries"] = c.retries;
    found["full"] = c.full;
    found["rounds"] = c.rounds;
    found["forwarded"] = c.forwarded;
    found["in_flight"] = model.in_flight();
    return found;
}

py::array_t<std::int64_t> trace(Model& self) {
    const auto& rows = self->trace;
    py::array_t<std::int64_t> table({static_cast<py::ssize_t>(rows.size()), py::ssize_t{5}});
    auto* at = table.mutable_data();
    for (const auto& row : rows) {
        *at++ = row.time;
        for (const auto value : {row.kind, row.worker, row.other, row.amount}) *at++ = value;
    }
    return table;
}

void register_eris(py::module_& module) {
    py::class_<SparseRows>(
        module, "SparseRows",
        "Rows of which few entries are not 0: those of row i are first[i] … first[i + 1] - 1.")
        .def(py::init([](Positions first, Positions column, Numbers value) {
                 return SparseRows{std::move(first), std::move(column), std::move(value)};
             }),
             py::arg("first"), py::arg("column"), py::arg("value"))
        .def(
            "row",
            [](const SparseRows& self, std::size_t row) {
                py::list found;
                self.each(row, [&](std::size_t column, double value, std::size_t) {
                    found.append(py::make_tuple(column, value));
                });
                return found;
            },
            py::arg("row"), "(column, value) of each entry of a row.");
    def_struct<ErisMachine>(module, "ErisMachine",
                            R"(Costs of a machine in ps, and its buffers.

A workers on cores of n nodes with 2L directed links; arrays are flat, row by row.)");
    def_struct<ErisDemands>(
        module, "ErisDemands",
        "What each operation demands of each worker: per command, or per line that a scan reads.");
    def_struct<ErisTransfer>(
        module, "ErisTransfer",
        "A part of an index or column on its way to another worker; per unit.");
    py::class_<Model> model(
        module, "ErisRouting",
        R"(ERIS, every buffer and every exchange of a descriptor (systems/eris/kernel/routing.hpp).)");
    model
        .def(
            py::init([](const ErisMachine& of, std::size_t operations, std::size_t keyed,
                        const StreamKeys& keys, std::uint64_t seed, std::uint64_t replication) {
                return std::make_unique<Model>(of, operations, keyed, streams_of(keys), seed,
                                               replication);
            }),
            py::arg("machine"), py::arg("operations"), py::arg("keyed"), py::arg("keys"),
            py::arg("seed"), py::arg("replication"),
            R"(``keyed``: of the operations, the first ones, by key; the others are scans. ``keys``:
Philox keys of each worker's commands, then of what each forwards.)")
        .def("update", held<ErisRouting>(&ErisRouting::update), py::arg("of"),
             "Other demands from now on.")
        .def(
            "route",
            [](Model& self, Numbers sum, Positions guide,
               const std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, double>>&
                   moves) {
                std::vector<std::vector<ErisMove>> from(self->workers());
                for (const auto& [operation, source, target, part] : moves)
                    from.at(source).push_back({0, operation, target, part});
                self->route({std::move(sum), std::move(guide)}, from);
            },
            py::arg("sum"), py::arg("guide"), py::arg("moves"),
            "Another table. ``moves``: (operation, from, to, part of what was left there).")
        .def("call", held<ErisRouting>(&ErisRouting::call), py::arg("who"),
             "Lets these workers meet; then the run halts.")
        .def_property_readonly("gathered", held<ErisRouting>(&ErisRouting::gathered),
                               "Whether they have met.")
        .def("dismiss", held<ErisRouting>(&ErisRouting::dismiss), py::arg("ps"),
             "Lets them go on; each [A] has so much to do first.")
        .def("begin", held<ErisRouting>(&ErisRouting::begin), py::arg("more"),
             "More transfers; none at all forgets those that are done.")
        .def("halt_after", held<ErisRouting>(&ErisRouting::halt_after), py::arg("units"),
             "Halts each time that so many units more, or all of a transfer, have been rebuilt.")
        .def_property_readonly(
            "rebuilt",
            [](Model& self) {
                const auto& all = self->transfers();
                return column_of(all.size(), [&](std::size_t k) { return all[k].rebuilt; });
            },
            "Units of each transfer that have arrived.")
        .def("counts", &counts,
             "What was counted since start_counting, by name; arrays are copies.")
        .def_property(
            "tracing", [](Model& self) { return self->tracing; },
            [](Model& self, bool on) { self->tracing = on; }, "Whether the trace is kept.")
        .def("trace", &trace, R"([rows, 5]: time, kind, worker, other, amount.

Kinds: 0 round, 3 executed, 4 issued, 6 copied.)");
    def_eris<ErisRouting>(model);
}

const Registration eris_part("eris", register_eris);

}  // namespace

// Python's view of ERIS's baselines: SharedStep, SharedSetup, ErisShared.

namespace {

using SharedModel = Runnable<ErisShared>;

py::dict shared_counts(SharedModel& self) {
    const ErisShared& model = *self;
    py::dict found;
    found["done"] = array_of(model.done);
    py::list steps;
    for (const auto& of_step : model.step) steps.append(array_of(of_step));
    found["steps"] = steps;
    found["busy"] = column_of(model.workers(), [&](std::size_t i) { return model.busy(i); });
    add_machine_counts(found, model);
    return found;
}

void register_eris_shared(py::module_& module) {
    def_struct<SharedStep>(module, "SharedStep",
                           "A step of a worker's loop, per operation of the mix that it does.");
    def_struct<SharedSetup>(module, "SharedSetup", "Workers on data that all share.");
    py::class_<SharedModel> model(
        module, "ErisShared", "ERIS's baselines, event by event (systems/eris/kernel/shared.hpp).");
    model
        .def(py::init([](const SharedSetup& of, const StreamKeys& keys, std::uint64_t seed,
                         std::uint64_t replication) {
                 return std::make_unique<SharedModel>(of, streams_of(keys), seed, replication);
             }),
             py::arg("setup"), py::arg("keys"), py::arg("seed"), py::arg("replication"),
             "``keys``: the Philox key of each worker.")
        .def("update", held<ErisShared>(&ErisShared::update), py::arg("of"),
             "Other demands from now on, for the same workers.")
        .def("counts", &shared_counts,
             "What was counted since start_counting, by name; arrays are copies.");
    def_eris<ErisShared>(model);
}

const Registration eris_shared_part("eris_shared", register_eris_shared);

}  // namespace

}  // namespace numatwin

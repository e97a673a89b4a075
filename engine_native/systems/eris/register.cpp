// ERIS for Python: setup, engine, counters.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "kernel/struct_binding.hpp"
#include "systems/eris/engine.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace numatwin::native {
namespace {

using Words = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;
using Bytes = py::array_t<std::uint8_t, py::array::c_style | py::array::forcecast>;

template <class T>
std::span<const T> span_of(const py::array_t<T, py::array::c_style | py::array::forcecast>& array) {
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <class Kind, std::size_t count>
Kind named(const std::string& name, const char* const (&names)[count], const char* field) {
    for (std::size_t k = 0; k < count; ++k)
        if (name == names[k]) return static_cast<Kind>(k);
    throw py::value_error(std::string(field) + ": unknown '" + name + "'");
}

constexpr const char* objects[] = {"index", "column"};
constexpr const char* operations[] = {"lookup", "upsert", "route", "scan"};
constexpr const char* results[] = {"count", "sum", "bitmap", "positions"};
constexpr const char* layouts[] = {"partitioned", "interleaved", "single-ram"};

// [rows, workers] of what `read(counts, row)` returns; lists, for processes without NumPy.
template <class Value, class Read>
py::list table(const World& world, std::size_t rows, Read read) {
    py::list found;
    for (std::size_t row = 0; row < rows; ++row) {
        py::list of_row;
        for (std::size_t k = 0; k < world.workers(); ++k)
            of_row.append(static_cast<Value>(read(*world.counts[k], row)));
        found.append(of_row);
    }
    return found;
}

py::dict totals(const Engine& engine) {
    const World& world = engine.world();
    const double ns = ps_per_tick() / 1000;
    const std::size_t count = world.setup.operations.size(), stored = world.setup.objects.size();
    py::dict found;
    found["time_s"] = engine.time_s();
    const auto of_operations = [&](const char* name, auto read) {
        found[name] = table<std::uint64_t>(
            world, count,
            [&](const WorkerCounts& counts, std::size_t k) { return read(counts.operation[k]); });
    };
    of_operations("made", [](const OperationCounts& of) { return of.made.read(); });
    of_operations("executed", [](const OperationCounts& of) { return of.executed.read(); });
    of_operations("done", [](const OperationCounts& of) { return of.done.read(); });
    of_operations("latency_sum_ns", [](const OperationCounts& of) { return of.latency.sum_ns(); });
    const auto of_objects = [&](const char* name, auto read) {
        found[name] = table<std::uint64_t>(
            world, stored,
            [&](const WorkerCounts& counts, std::size_t k) { return read(counts.object[k]); });
    };
    of_objects("object_executed", [](const ObjectCounts& of) { return of.executed.read(); });
    of_objects("object_forwarded", [](const ObjectCounts& of) { return of.forwarded.read(); });
    of_objects("object_entries",
               [](const ObjectCounts& of) { return of.entries.load(std::memory_order_relaxed); });
    found["object_execution_ns"] =
        table<double>(world, stored, [&](const WorkerCounts& counts, std::size_t k) {
            return static_cast<double>(counts.object[k].ticks.read()) * ns;
        });
    found["step_ns"] = table<double>(world, steps, [&](const WorkerCounts& counts, std::size_t k) {
        return static_cast<double>(counts.step_ticks[k].read()) * ns;
    });
    const auto of_worker = [&](const char* name, auto read) {
        const auto of_one = [&](const WorkerCounts& counts, std::size_t) { return read(counts); };
        found[name] = table<std::uint64_t>(world, 1, of_one)[py::int_(0)];
    };
    of_worker("busy_ns", [&](const WorkerCounts& of) {
        return static_cast<double>(of.busy_ticks.read()) * ns;
    });
    of_worker("batches", [](const WorkerCounts& of) { return of.batches.read(); });
    of_worker("rounds", [](const WorkerCounts& of) { return of.rounds.read(); });
    of_worker("refused", [](const WorkerCounts& of) { return of.refused.read(); });
    of_worker("retries", [](const WorkerCounts& of) { return of.retries.read(); });
    of_worker("flushes", [](const WorkerCounts& of) { return of.flushes.read(); });
    of_worker("copied_bytes", [](const WorkerCounts& of) { return of.copied_bytes.read(); });
    return found;
}

std::vector<std::uint64_t> latencies(const Engine& engine, std::size_t operation) {
    const World& world = engine.world();
    if (operation >= world.setup.operations.size())
        throw py::value_error("operation: expected one of operations");
    std::vector<std::uint64_t> counts(Latencies::buckets);
    for (const auto& of : world.counts) of->operation[operation].latency.merge_into(counts);
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    return counts;
}

std::vector<MemoryUse> memory(const Engine& engine) {
    std::vector<MemoryUse> found;
    for (const ObjectState& object : engine.world().objects) {
        MemoryUse& all = found.emplace_back();
        for (const auto& manager : object.managers) {
            const MemoryUse use = manager->use();
            all.reserved_bytes += use.reserved_bytes;
            all.used_bytes += use.used_bytes;
            all.huge_bytes += use.huge_bytes;
            all.transparent_bytes += use.transparent_bytes;
            if (all.refusal.empty()) all.refusal = use.refusal;
        }
    }
    return found;
}

// Waits without the lock of Python; a signal ends all.
void load(Engine& engine) {
    engine.begin_load();
    while (true) {
        {
            const py::gil_scoped_release release;
            if (engine.wait_loaded(0.1)) return;
        }
        if (PyErr_CheckSignals() != 0) {
            engine.cancel();
            throw py::error_already_set();
        }
    }
}

std::tuple<Words, Words, Words> execute(Engine& engine, const Bytes& kinds, const Words& stored,
                                        const Words& keys, const Words& values) {
    const auto count = static_cast<std::size_t>(kinds.size());
    for (const auto size : {stored.size(), keys.size(), values.size()})
        if (static_cast<std::size_t>(size) != count)
            throw py::value_error("kinds, objects, keys, values: expected the same length");
    std::vector<Ask> asks(count);
    for (std::size_t k = 0; k < count; ++k) {
        if (span_of(kinds)[k] > static_cast<int>(AskKind::append))
            throw py::value_error("kinds: expected 0 lookup, 1 upsert, 2 scan, 3 append");
        if (span_of(stored)[k] >= engine.world().objects.size())
            throw py::value_error("objects: expected positions of objects");
        asks[k] = {static_cast<AskKind>(span_of(kinds)[k]),
                   static_cast<std::uint16_t>(span_of(stored)[k]), span_of(keys)[k],
                   span_of(values)[k]};
    }
    std::vector<Answer> answers;
    {
        const py::gil_scoped_release release;
        answers = engine.execute(asks);
    }
    const auto size = static_cast<py::ssize_t>(count);
    Words value(size), found(size), times(size);
    for (std::size_t k = 0; k < count; ++k) {
        value.mutable_data()[k] = answers[k].value;
        found.mutable_data()[k] = answers[k].found;
        times.mutable_data()[k] = answers[k].answers;
    }
    return {value, found, times};
}

// Of operations by key.
using Keys = std::vector<std::optional<std::shared_ptr<KeyDraws>>>;

PhaseSetup phase_of(std::vector<double> shares, const Keys& keys) {
    PhaseSetup phase;
    phase.shares = std::move(shares);
    for (const auto& one : keys) phase.keys.push_back(one.value_or(nullptr));
    return phase;
}

void register_setup(py::module_& module) {
    py::class_<KeyDraws, std::shared_ptr<KeyDraws>>(
        module, "KeyDraws",
        R"(A key distribution: ``mass`` (m,) lies evenly on the keys breaks[i]:breaks[i+1]; where
``scattered`` these are ranks of popularity, which a fixed permutation (that of
workloads/zipf.py) spreads over all keys. ValueError for breaks that do not rise from 0.)")
        .def(py::init([](const std::vector<std::uint64_t>& breaks, const std::vector<double>& mass,
                         bool scattered) { return KeyDraws(breaks, mass, scattered); }),
             "breaks"_a, "mass"_a, "scattered"_a = false)
        .def_static("zipf", &KeyDraws::zipf, "keys"_a, "exponent"_a, "scattered"_a = false)
        .def_property_readonly("keys", &KeyDraws::keys)
        .def(
            "draw",
            [](const KeyDraws& draws, std::uint64_t seed, std::uint64_t worker, std::size_t count) {
                Random random(seed, worker);
                py::array_t<std::uint64_t> keys(static_cast<py::ssize_t>(count));
                draws.draw(random, {keys.mutable_data(), count});
                return keys;
            },
            "seed"_a, "worker"_a, "count"_a);
    py::class_<EngineSetup> setup(
        module, "EngineSetup",
        "What an engine is made of; its clients are on once there is a phase.");
    setup
        .def(py::init([](std::vector<std::uint32_t> node, std::vector<int> cpu,
                         std::vector<int> host_node) {
                 EngineSetup setup;
                 setup.node = std::move(node);
                 setup.cpu = std::move(cpu);
                 setup.host_node = std::move(host_node);
                 setup.clients = false;
                 return setup;
             }),
             "node"_a, "cpu"_a, "host_node"_a)
        .def(
            "add_index",
            [](EngineSetup& setup, std::string name, std::uint64_t keys, unsigned key_bits,
               unsigned prefix_bits, std::size_t value_bytes) {
                setup.objects.push_back(
                    {std::move(name), ObjectKind::index, keys, key_bits, prefix_bits, value_bytes});
            },
            "name"_a, "keys"_a, "key_bits"_a = 64, "prefix_bits"_a = 8, "value_bytes"_a = 8)
        .def(
            "add_column",
            [](EngineSetup& setup, std::string name, std::uint64_t entries) {
                setup.objects.push_back({std::move(name), ObjectKind::column, entries});
            },
            "name"_a, "entries"_a)
        .def(
            "add_operation",
            [](EngineSetup& setup, std::string name, const std::string& kind, std::size_t object,
               double selectivity, const std::string& result) {
                setup.operations.push_back(
                    {std::move(name), named<OperationKind>(kind, operations, "kind"), object,
                     selectivity, named<ScanOutput>(result, results, "result")});
            },
            "name"_a, "kind"_a, "object"_a, "selectivity"_a = 0.0, "result"_a = "sum")
        .def(
            "set_phase",
            [](EngineSetup& setup, std::vector<double> shares, const Keys& keys) {
                setup.phase = phase_of(std::move(shares), keys);
                setup.clients = true;
            },
            "shares"_a, "keys"_a)
        .def_property(
            "placement",
            [](const EngineSetup& setup) {
                return layouts[static_cast<std::size_t>(setup.placement)];
            },
            [](EngineSetup& setup, const std::string& name) {
                setup.placement = named<Layout>(name, layouts, "placement");
            });
    def_fields(setup);
}

void register_engine(py::module_& module) {
    register_setup(module);
    const auto free = py::call_guard<py::gil_scoped_release>();
    def_struct<MemoryUse>(module, "ObjectMemory", "Memory of an object, on all nodes.");
    def_struct<CycleReport>(module, "CycleReport", "A balancing cycle that is over.");
    py::class_<Engine>(module, "Engine",
                       R"(ERIS on this host, or its baselines: ``load``, ``start``, …, ``stop``.

Where a worker fails, all halt, and the next call raises what it raised: MemoryError,
RuntimeError. ValueError for what does not fit together. Nothing is left running when the engine
is gone.)")
        .def(py::init<const EngineSetup&>(), "setup"_a, free)
        .def("begin_load", &Engine::begin_load, free)
        .def("wait_loaded", &Engine::wait_loaded, "seconds"_a, free,
             "Waits so long at most; whether all is loaded.")
        .def("load", &load, "Both; a signal ends it.")
        .def_property_readonly("loaded", &Engine::loaded,
                               "Keys and entries loaded so far, of ``to_load``.")
        .def_property_readonly("to_load", &Engine::to_load)
        .def("start", &Engine::start, free)
        .def(
            "set_phase",
            [](Engine& engine, std::vector<double> shares, const Keys& keys) {
                const PhaseSetup phase = phase_of(std::move(shares), keys);
                const py::gil_scoped_release release;
                engine.set_phase(phase);
            },
            "shares"_a, "keys"_a)
        .def("set_making", &Engine::set_making, "on"_a, "Clients pause, or go on.")
        .def("rebalance", &Engine::rebalance, "object"_a, "wanted"_a, free,
             "New bounds [A + 1] of an index, or entries [A] of a column; False: nothing to move.")
        .def("balancing", &Engine::balancing, "object"_a, free)
        .def("cycles", &Engine::cycles, free)
        .def("bounds", &Engine::bounds, "object"_a, free, "[A + 1]; empty of a column.")
        .def(
            "execute", &execute, "kinds"_a, "objects"_a, "keys"_a, "values"_a,
            R"(Does commands as if one after the other: kinds 0 lookup (key), 1 upsert (key, value),
2 scan (entries from key to value), 3 append (value).

Returns values (of a scan, the sum), found (of a scan, the matches), and how often each was
answered.)")
        .def("totals", &totals, "As lists: ``Totals`` of systems/eris/setup.py.")
        .def("latencies", &latencies, "operation"_a,
             "Counts by bucket, in ps, as ``Histogram.of_kernel`` takes them.")
        .def("memory", &memory)
        .def("stop", &Engine::stop, "patience_s"_a = 60.0, free,
             "Lets all that was made be done, then ends. RuntimeError where commands were lost.")
        .def("cancel", &Engine::cancel, free, "Ends at once.")
        .def("check", &Engine::check, "Raises what a worker failed with.")
        .def_property_readonly("running", &Engine::running)
        .def_property_readonly("time_s", &Engine::time_s);
    py::list names;
    for (const char* name : step_names) names.append(name);
    module.attr("STEPS") = py::tuple(names);
}

const Registration registration("engine", register_engine);

}  // namespace

}  // namespace numatwin::native

// The microbenchmarks as Python sees them: blocks, work, teams.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <system_error>

#include "measure/engine_work.hpp"
#include "measure/work.hpp"

namespace numatwin::native {
namespace {

namespace py = pybind11;
using namespace py::literals;

using Table = py::array_t<double>;
using Windows = std::tuple<Table, Table, py::array_t<bool>>;

/// (windows, members) amounts and times, (windows,) whether disturbed.
Windows as_arrays(const std::vector<Window>& windows, std::size_t members) {
    const auto rows = static_cast<py::ssize_t>(windows.size());
    const auto columns = static_cast<py::ssize_t>(members);
    Table amounts({rows, columns}), elapsed_ns({rows, columns});
    py::array_t<bool> disturbed(rows);
    for (py::ssize_t row = 0; row < rows; ++row) {
        const Window& window = windows[static_cast<std::size_t>(row)];
        disturbed.mutable_at(row) = window.disturbed;
        for (py::ssize_t column = 0; column < columns; ++column) {
            const auto at = static_cast<std::size_t>(column);
            amounts.mutable_at(row, column) = window.amounts[at];
            elapsed_ns.mutable_at(row, column) = window.elapsed_ns[at];
        }
    }
    return {amounts, elapsed_ns, disturbed};
}

Windows run(const std::vector<std::pair<int, const Work*>>& members, std::size_t wanted,
            std::int64_t window_ns, std::int64_t limit_ns) {
    std::vector<Member> team;
    for (const auto& [cpu, work] : members) team.push_back({cpu, *work});
    std::vector<Window> windows;
    {
        const py::gil_scoped_release others_run;
        windows = run_team(team, {wanted, window_ns, limit_ns});
    }
    return as_arrays(windows, members.size());
}

// What distributed operators are made of.
void register_passes(py::module_& module) {
    module.def("count_tuples", &count_tuples, "partitions"_a, "Tuples counted by partition.");
    module.def(
        "partition_tuples", &partition_tuples, "partitions"_a, "buffer_bytes"_a,
        "Tuples appended to buffers of their partitions, and these written past the caches.");
    module.def("gather_tuples", &gather_tuples, "message_bytes"_a,
               "Tuples put into a message for their owner.");
    module.def("take_tuples", &take_tuples, "message_bytes"_a,
               "Tuples of messages copied behind what came before.");
    module.def(
        "join_partitions", &join_partitions, "inner"_a, "probe"_a,
        "Inner tuples of partitions, each a hash table built, and looked up for as many others.");
    module.def("add_groups", &add_groups, "groups"_a, "again"_a,
               "Groups added to an empty table that grows; or tuples of the groups that it has.");
    module.def("read_groups", &read_groups, "groups"_a, "result"_a,
               "Groups of a table put into messages; or summed up.");
    module.def(
        "cache_groups", &cache_groups, "table_bytes"_a, "again"_a,
        "Groups added to a table until it is full, read and emptied; or tuples of its groups.");
    module.def("add_to_filter", &add_to_filter, "bytes"_a, "Keys added to a Bloom filter.");
    module.def("probe_filter", &probe_filter, "bytes"_a, "hit"_a,
               "Keys looked up that a Bloom filter has, or has not.");
}

void register_measure(py::module_& module) {
    // Python's OSError carries the errno, from which callers tell a forbidden CPU or node.
    py::register_exception_translator([](std::exception_ptr thrown) {
        try {
            if (thrown) std::rethrow_exception(thrown);
        } catch (const std::system_error& failure) {
            const py::tuple what = py::make_tuple(failure.code().value(), failure.what());
            PyErr_SetObject(PyExc_OSError, what.ptr());
        }
    });

    py::class_<Block>(
        module, "Block",
        R"(A stretch of memory of one node (-1: any) to measure on; MemoryError, OSError if refused.)")
        .def(py::init<std::size_t, int, bool>(), "size_bytes"_a, "node"_a, "huge_pages"_a,
             py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("size_bytes", &Block::bytes)
        .def_property_readonly("huge_bytes", &Block::huge_bytes, "Bytes that lie in huge pages.")
        .def("arrange_cycle", &Block::arrange_cycle, "size_bytes"_a, "seed"_a,
             py::call_guard<py::gil_scoped_release>(),
             "Makes the first bytes a cycle of pointers in random order; returns its lines.");

    py::class_<Work>(
        module, "Work",
        "What a member of a team does; its amount is counted in the unit that its maker says.");
    module.def("chase", &chase, "block"_a, "start_line"_a, "warm_loads"_a, py::keep_alive<0, 1>(),
               "Dependent loads along the block's cycle, the first of which do not count.");
    module.def(
        "random_reads", &random_reads, "block"_a, "lines"_a, py::keep_alive<0, 1>(),
        "Independent loads of random lines; ``lines``, a power of two, is how many there are.");
    module.def(
        "spaced_reads", &spaced_reads, "block"_a, "lines"_a, "additions"_a, py::keep_alive<0, 1>(),
        "The same with 32 or 64 additions between two loads, which wait for nothing either.");
    module.def(
        "spaced_stream", &spaced_stream, "block"_a, "lines"_a, py::keep_alive<0, 1>(),
        "Loads of line after line, ``lines`` of them over and over, 64 additions between two.");
    module.attr("AROUND_ADDITIONS") = kAroundAdditions;
    module.def("system_calls", &system_calls, "System calls that do nothing.");

    py::enum_<Traffic>(
        module, "Traffic",
        "What a stream does with each line, and lines read and written at the memory controller.")
        .value("READ", Traffic::kRead)
        .value("UPDATE", Traffic::kUpdate)
        .value("COPY", Traffic::kCopy)
        .value("TRIAD", Traffic::kTriad)
        .value("NON_TEMPORAL", Traffic::kNonTemporal)
        .value("NON_TEMPORAL_COPY", Traffic::kNonTemporalCopy);
    module.def("has_non_temporal_stores", &has_non_temporal_stores,
               "Whether this processor has stores past the caches.");
    module.def(
        "stream", &stream, "block"_a, "offset"_a, "size_bytes"_a, "traffic"_a, "delay"_a,
        py::keep_alive<0, 1>(),
        "Bytes loaded and stored in a part of the block; ``delay`` additions after each 4 KiB.");
    module.def("copies", &copies, "source"_a, "target"_a, "size_bytes"_a, "spread"_a,
               py::keep_alive<0, 1>(), py::keep_alive<0, 2>(),
               "memcpy, always the same, or from and to ever other places.");
    module.def(
        "fetch_adds",
        [](const Block& block, std::size_t line) { return fetch_adds(counter_on(block, line)); },
        "block"_a, "line"_a, py::keep_alive<0, 1>(), "fetch-add on a counter on that line.");
    module.def(
        "cas_increments",
        [](const Block& block, std::size_t line) {
            return cas_increments(counter_on(block, line));
        },
        "block"_a, "line"_a, py::keep_alive<0, 1>(),
        "Increments of the counter on that line by compare-and-swap.");
    module.def(
        "ping_pong",
        [](const Block& block, std::size_t line, bool serve) {
            return ping_pong(counter_on(block, line), serve);
        },
        "block"_a, "line"_a, "serve"_a, py::keep_alive<0, 1>(),
        R"(One end of an exchange of messages over that line; who serves counts those of both ends.)");
    module.def("additions", &additions, "Additions that wait for one another, one a cycle.");

    module.def(
        "routing", &routing, "targets"_a, "buffer_bytes"_a,
        R"(Commands of 16 bytes routed to so many targets, in batches, through buffers of that size.)");
    py::class_<Index>(
        module, "MeasuredIndex",
        R"(A prefix tree of random 64-bit keys, or of the keys from 0 on (``dense``: no scans).

MemoryError if it does not fit.)")
        .def(py::init<std::size_t, bool>(), "keys"_a, "dense"_a = false,
             py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("keys", &Index::keys)
        .def_property_readonly("size_bytes", &Index::bytes)
        .def("lookups", &Index::lookups, "batch"_a, py::keep_alive<0, 1>(),
             "Keys looked up, so many at a time.")
        .def("upserts", &Index::upserts, "batch"_a, py::keep_alive<0, 1>(),
             "Values of known keys replaced, so many keys at a time.")
        .def("scans", &Index::scans, "pairs"_a, py::keep_alive<0, 1>(),
             "Pairs read in order, so many from each key on.");
    py::enum_<Verb>(module, "Verb", "What is asked of the other end of a fabric.")
        .value("GET", Verb::kGet)
        .value("PUT", Verb::kPut)
        .value("COMPARE_AND_SWAP", Verb::kCompareAndSwap)
        .value("FETCH_ADD", Verb::kFetchAdd)
        .value("MESSAGE", Verb::kMessage);
    py::class_<FabricPair>(
        module, "FabricPair",
        "Two ends of a fabric for two threads; RuntimeError where there is no such transport.")
        .def(py::init<const std::string&, bool>(), "transports"_a, "direct"_a)
        .def("ask", &FabricPair::ask, "verb"_a, "size_bytes"_a, py::keep_alive<0, 1>(),
             "Requests, one after the other; of messages, those of both ways.")
        .def("answer", &FabricPair::answer, py::keep_alive<0, 1>(),
             "What the other end does meanwhile; amounts to nothing.")
        .def("exchange", &FabricPair::exchange, "verb"_a, "size_bytes"_a, "batch"_a, "leads"_a,
             py::keep_alive<0, 1>(),
             "Messages or puts both ways at once, so many at a time; those of one way. One end "
             "leads.");
    register_passes(module);

    module.def(
        "stretches", &stretches, "cpus"_a, "size_bytes"_a, "huge"_a, "times"_a,
        py::call_guard<py::gil_scoped_release>(),
        R"([times, 3] ns of mapping memory, of the first touch of each of its pages, and of unmapping it,
on the first CPU, while a thread of the process computes on each other one.)");
    module.def(
        "gaps", &gaps, "cpus"_a, "seconds"_a, "least_ns"_a,
        py::call_guard<py::gil_scoped_release>(),
        R"([cpus] ns of each time in which a program on that CPU stood still for ``least_ns`` or longer;
OSError where a CPU may not be used.)");
    module.def(
        "run_team", &run, "members"_a, "wanted"_a, "window_ns"_a, "limit_ns"_a,
        R"((windows, members) amounts and ns, (windows,) whether disturbed; each member on its CPU.)");
}

const Registration registration("measure", register_measure);

}  // namespace

}  // namespace numatwin::native

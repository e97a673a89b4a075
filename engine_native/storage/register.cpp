// Scans that a thread copies ahead for.
#include "kernel/register.hpp"

#include <pybind11/stl.h>

#include "storage/chunk_copier.hpp"

namespace py = pybind11;

namespace numatwin::native {
namespace {

// By round: time and whether it was disturbed.
std::vector<std::pair<std::int64_t, bool>> pairs(const std::vector<CopiedScanTimes::Time>& times) {
    std::vector<std::pair<std::int64_t, bool>> found;
    for (const auto& time : times) found.emplace_back(time.ns, time.disturbed);
    return found;
}

void register_copied_scans(py::module_& module) {
    module.def(
        "measure_copied_scan",
        [](std::size_t column_bytes, std::size_t chunk_bytes, std::uint32_t rounds, int scanner_cpu,
           int copier_cpu) {
            CopiedScanTimes times;
            {
                const py::gil_scoped_release released;
                times =
                    measure_copied_scan(column_bytes, chunk_bytes, rounds, scanner_cpu, copier_cpu);
            }
            using namespace py::literals;
            return py::dict(
                "direct_ns"_a = pairs(times.direct), "copies_ns"_a = pairs(times.copies),
                "cached_ns"_a = pairs(times.cached), "overlap_ns"_a = pairs(times.overlap));
        },
        py::arg("column_bytes"), py::arg("chunk_bytes"), py::arg("rounds"), py::arg("scanner_cpu"),
        py::arg("copier_cpu"),
        R"(By round: a column scanned where it lies, copied in chunks, as many chunks scanned in a
cache, and scanned while it is copied: storage/chunk_copier.hpp. Each a time and whether
a processor was taken from one of both meanwhile. CPUs: negative for any. Raises ValueError, and
RuntimeError where two ways find different values.)");
}

const Registration registration("copied_scans", register_copied_scans);

}  // namespace

}  // namespace numatwin::native

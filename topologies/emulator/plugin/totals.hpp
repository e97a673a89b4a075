// Sums of all that was counted, by pair of nodes, and the file that they are written to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "processors.hpp"

namespace numatwin {

// Square matrices: row the processor's node, column the memory's, or another cache's (transfers,
// invalidations). Of downgrades, probes and answers: row and column the sender and the receiver.
inline constexpr std::array MATRICES{"reads_user",
                                     "reads_kernel",
                                     "writes_user",
                                     "writes_kernel",
                                     "read_bytes_user",
                                     "read_bytes_kernel",
                                     "written_bytes_user",
                                     "written_bytes_kernel",
                                     "read_misses_user",
                                     "read_misses_kernel",
                                     "write_misses_user",
                                     "write_misses_kernel",
                                     "memory_reads",
                                     "transfers",
                                     "upgrades",
                                     "invalidations",
                                     "write_backs",
                                     "downgrades",
                                     "probes",
                                     "answers",
                                     "streamed_misses",
                                     "serial_misses",
                                     "home_downgrades",
                                     "branch_misses"};

// Of each processor: what `Executed` and `Hierarchy` have of it.
inline constexpr std::array BY_PROCESSOR{
    "instructions",      "fused",         "mispredictions", "calls",
    "call_instructions", "interruptions", "looked_ahead"};

// A moment's counts; those of a span are the difference of two.
class Totals {
  public:
    Totals(std::size_t nodes, std::size_t levels, std::size_t processors)
        : nodes_(nodes),
          levels_(levels),
          pairs_(MATRICES.size() * nodes * nodes),
          found_(nodes * (levels + 1)),
          crossings_(nodes),
          executed_(processors * BY_PROCESSOR.size()),
          waits_(processors * levels) {}

    static Totals now(const Processors& processors, const HierarchyShape& shape) {
        Totals made(shape.nodes, shape.levels.size(), processors.size());
        for (unsigned cpu = 0; cpu < processors.size(); ++cpu)
            made.add_cpu(processors, cpu, shape.cpu_node[cpu]);
        if (const Hierarchy* caches = processors.caches())
            for (std::size_t from = 0; from < shape.nodes; ++from)
                for (std::size_t to = 0; to < shape.nodes; ++to) {
                    made.pair(17, from, to) += caches->downgrades().get(from, to);
                    made.pair(22, from, to) += caches->home_downgrades().get(from, to);
                    made.pair(18, from, to) += caches->probes().get(from, to);
                    made.pair(19, from, to) += caches->answers().get(from, to);
                }
        return made;
    }

    // Adds what was counted from `before` until `after`.
    void add(const Totals& before, const Totals& after) {
        add_to(pairs_, before.pairs_, after.pairs_);
        add_to(found_, before.found_, after.found_);
        add_to(crossings_, before.crossings_, after.crossings_);
        add_to(executed_, before.executed_, after.executed_);
        add_to(waits_, before.waits_, after.waits_);
        unknown_ += after.unknown_ - before.unknown_;
    }

    // Lines `NAME ROW COLUMN COUNT`, zeros left out; `found NODE LEVEL COUNT`, level 1 the second
    // cache, the highest what no cache of the domain had.
    void write(std::FILE* file) const {
        for (std::size_t name = 0; name < MATRICES.size(); ++name)
            for (std::size_t row = 0; row < nodes_; ++row)
                for (std::size_t column = 0; column < nodes_; ++column)
                    if (const std::uint64_t count = pair(name, row, column))
                        std::fprintf(file, "%s %zu %zu %llu\n", MATRICES[name], row, column,
                                     static_cast<unsigned long long>(count));
        for (std::size_t node = 0; node < nodes_; ++node) {
            for (std::size_t level = 0; level <= levels_; ++level)
                if (const std::uint64_t count = found_[node * (levels_ + 1) + level])
                    std::fprintf(file, "found %zu %zu %llu\n", node, level,
                                 static_cast<unsigned long long>(count));
            if (crossings_[node])
                std::fprintf(file, "crossings %zu 0 %llu\n", node,
                             static_cast<unsigned long long>(crossings_[node]));
        }
        for (std::size_t at = 0; at < executed_.size(); ++at)
            if (executed_[at])
                std::fprintf(file, "%s %zu 0 %llu\n", BY_PROCESSOR[at % BY_PROCESSOR.size()],
                             at / BY_PROCESSOR.size(),
                             static_cast<unsigned long long>(executed_[at]));
        for (std::size_t at = 0; at < waits_.size(); ++at)
            if (waits_[at])
                std::fprintf(file, "waits %zu %zu %llu\n", at / levels_, at % levels_,
                             static_cast<unsigned long long>(waits_[at]));
        std::fprintf(file, "unknown 0 0 %llu\n", static_cast<unsigned long long>(unknown_));
    }

  private:
    using Values = std::vector<std::uint64_t>;

    static void add_to(Values& sums, const Values& before, const Values& after) {
        for (std::size_t at = 0; at < sums.size(); ++at) sums[at] += after[at] - before[at];
    }

    std::uint64_t& pair(std::size_t name, std::size_t row, std::size_t column) {
        return pairs_[(name * nodes_ + row) * nodes_ + column];
    }
    std::uint64_t pair(std::size_t name, std::size_t row, std::size_t column) const {
        return pairs_[(name * nodes_ + row) * nodes_ + column];
    }

    void add_cpu(const Processors& processors, unsigned cpu, std::size_t row) {
        const Hierarchy* caches = processors.caches();
        for (std::size_t node = 0; node < nodes_; ++node) {
            for (const Mode mode : {USER, KERNEL}) {
                const Accesses& counted = processors.accesses(cpu, mode, node);
                pair(mode, row, node) += counted.reads.get();
                pair(2 + mode, row, node) += counted.writes.get();
                pair(4 + mode, row, node) += counted.read_bytes.get();
                pair(6 + mode, row, node) += counted.written_bytes.get();
                if (!caches) continue;
                const LineCounts& lines = caches->lines(cpu, node);
                pair(8 + mode, row, node) += lines.read_misses[mode].get();
                pair(10 + mode, row, node) += lines.write_misses[mode].get();
            }
            if (!caches) continue;
            const LineCounts& lines = caches->lines(cpu, node);
            pair(12, row, node) += lines.memory_reads.get();
            pair(13, row, node) += lines.transfers.get();
            pair(14, row, node) += lines.upgrades.get();
            pair(15, row, node) += lines.invalidations.get();
            pair(16, row, node) += lines.write_backs.get();
            pair(20, row, node) += lines.streamed_misses.get();
            pair(21, row, node) += lines.serial_misses.get();
            pair(23, row, node) += lines.branch_misses.get();
        }
        if (caches)
            for (std::size_t level = 1; level <= levels_; ++level)
                found_[row * (levels_ + 1) + level] += caches->found_at(cpu, level);
        crossings_[row] += processors.crossings(cpu);
        unknown_ += processors.unknown(cpu);
        const Executed& executed = processors.executed(cpu);
        const std::array<std::uint64_t, BY_PROCESSOR.size()> counts{
            executed.instructions.get(),           executed.fused.get(),
            executed.mispredictions.get(),         executed.system_calls.get(),
            executed.call_instructions.get(),      executed.interruptions.get(),
            caches ? caches->looked_ahead(cpu) : 0};
        for (std::size_t at = 0; at < counts.size(); ++at)
            executed_[cpu * counts.size() + at] += counts[at];
        for (std::size_t level = 0; level < levels_; ++level)
            waits_[cpu * levels_ + level] += executed.waits[level].get();
    }

    std::size_t nodes_, levels_;
    Values pairs_, found_, crossings_, executed_, waits_;
    std::uint64_t unknown_ = 0;
};

}  // namespace numatwin

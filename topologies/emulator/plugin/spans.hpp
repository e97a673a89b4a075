// What is counted when: from the command's start to its end, and within its regions.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "processors.hpp"

namespace numatwin {

// Sums of all that was counted, by pair of nodes, and the file that they are written to.

// Square matrices: row the processor's node, column the memory's, or another cache's (transfers,
// invalidations). Of downgrades, probes and answers: row and column the sender and the receiver.
inline constexpr std::array MATRICES{
#include "matrices.inc"
};

// Of each processor: what `Executed` and `Hierarchy` have of it.
inline constexpr std::array BY_PROCESSOR{
#include "by_processor.inc"
};

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

// What a marked instruction says.
// Before the command begins, who runs it tries system calls that do nothing, one between two marks.
enum class Mark : unsigned {
    REGION_BEGIN = 1,
    REGION_END,
    COMMAND_BEGIN,
    COMMAND_END,
    TRY_BEGIN,
    TRY_END,
    NOT_STARTED,  // in place of COMMAND_END: there is no such command
    LAST = NOT_STARTED
};

// Caches are played, and counts run on, while the command runs; a span takes the counts at both of
// its ends. Regions that overlap, of several threads, are one from the first begin to the last end.
class Spans {
  public:
    // `interval`: instructions of one processor after which an interval ends, 0 without intervals.
    Spans(Processors& processors, HierarchyShape shape, std::string out, std::uint64_t interval)
        : processors_(processors),
          shape_(std::move(shape)),
          out_(std::move(out)),
          interval_(interval),
          whole_(shape_.nodes, shape_.levels.size(), processors.size()),
          regions_(whole_) {}

    bool running() const { return running_.load(std::memory_order_relaxed); }

    void mark(Mark mark) {
        const std::lock_guard locked(lock_);
        switch (mark) {
            case Mark::COMMAND_BEGIN:
                if (!running()) begin();
                break;
            case Mark::COMMAND_END:
                end();
                break;
            case Mark::NOT_STARTED:
                started_ = false;
                end();
                break;
            case Mark::REGION_BEGIN:
                if (running() && depth_++ == 0) begin_region();
                break;
            case Mark::REGION_END:
                if (running() && depth_ > 0 && --depth_ == 0) end_region();
                break;
            case Mark::TRY_BEGIN:
                tried_ = 0;
                trying_.store(!running(), std::memory_order_relaxed);
                break;
            case Mark::TRY_END:
                // Interrupts come on top in some.
                if (trying_.exchange(false) && tried_ > 0)
                    call_instructions_ = std::min(call_instructions_, tried_);
                break;
        }
    }

    // Of a processor that begins to execute a block.
    void executed(unsigned cpu, const Block& block) {
        if (!running()) {
            if (trying_.load(std::memory_order_relaxed)) tried(block);
            return;
        }
        const std::uint64_t at = interval_number_.load(std::memory_order_relaxed);
        if (processors_.executed(cpu, block, at) < interval_) return;
        const std::lock_guard locked(lock_);
        if (running() && at == interval_number_.load(std::memory_order_relaxed))
            next_interval(region_count_ == 0 || depth_ > 0);
    }

    // Where the guest stopped before the command did.
    void finish() {
        const std::lock_guard locked(lock_);
        end();
    }

  private:
    // Another processor's kernel may run meanwhile: then its instructions are among them, too.
    void tried(const Block& block) {
        if (!block.of_kernel()) return;
        const std::lock_guard locked(lock_);
        tried_ += block.instructions;
    }
    // Intervals are those of the regions, from the first one on.
    void begin_region() {
        region_began_ = now();
        if (region_count_ == 0) intervals_.clear();
        interval_began_ = region_began_;
        interval_number_.fetch_add(1, std::memory_order_relaxed);
    }
    void next_interval(bool counted) {
        interval_number_.fetch_add(1, std::memory_order_relaxed);
        if (!counted) return;
        const Totals ended = now();
        intervals_.emplace_back(shape_.nodes, shape_.levels.size(), processors_.size());
        intervals_.back().add(*interval_began_, ended);
        interval_began_ = ended;
    }

    Totals now() const { return Totals::now(processors_, shape_); }

    void begin() {
        began_ = interval_began_ = now();
        running_.store(true, std::memory_order_relaxed);
    }
    void end_region() {
        regions_.add(*region_began_, now());
        if (interval_ > 0) next_interval(true);
        region_count_ += 1;
    }
    void end() {
        if (!running()) return;
        if (depth_ > 0) end_region();
        if (region_count_ == 0 && interval_ > 0) next_interval(true);
        depth_ = 0;
        running_.store(false, std::memory_order_relaxed);
        whole_.add(*began_, now());
        write();
    }
    void write() const {
        std::FILE* file = std::fopen(out_.c_str(), "w");
        if (!file) {
            std::fprintf(stderr, "%s: cannot be written\n", out_.c_str());
            return;
        }
        std::fprintf(file, "numatwin-traffic 1\nnodes %zu\nlevels %zu\n", shape_.nodes,
                     shape_.levels.size());
        if (started_) write_spans(file);
        const bool whole = std::fprintf(file, "end\n") > 0 && !std::ferror(file);
        if (std::fclose(file) != 0 || !whole)
            std::fprintf(stderr, "%s: cannot be written\n", out_.c_str());
    }
    void write_spans(std::FILE* file) const {
        std::fprintf(file, "span command 1\n");
        whole_.write(file);
        if (call_instructions_ != NOT_TRIED)
            std::fprintf(file, "tried_call 0 0 %llu\n",
                         static_cast<unsigned long long>(call_instructions_));
        if (region_count_ > 0) {
            std::fprintf(file, "span regions %u\n", region_count_);
            regions_.write(file);
        }
        for (std::size_t at = 0; at < intervals_.size(); ++at) {
            std::fprintf(file, "span interval %zu\n", at);
            intervals_[at].write(file);
        }
    }

    static constexpr std::uint64_t NOT_TRIED = ~std::uint64_t{0};

    Processors& processors_;
    HierarchyShape shape_;
    std::string out_;
    std::uint64_t interval_;
    std::atomic<std::uint64_t> interval_number_{1};
    std::vector<Totals> intervals_;
    std::mutex lock_;
    std::atomic<bool> running_{false}, trying_{false};
    std::uint64_t tried_ = 0, call_instructions_ = NOT_TRIED;
    unsigned depth_ = 0, region_count_ = 0;
    bool started_ = true;
    std::optional<Totals> began_, region_began_, interval_began_;
    Totals whole_, regions_;
};

}  // namespace numatwin

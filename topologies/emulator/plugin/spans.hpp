// What is counted when: from the command's start to its end, and within its regions.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "totals.hpp"

namespace numatwin {

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

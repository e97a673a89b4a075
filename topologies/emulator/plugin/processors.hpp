// The guest's processors: from a virtual address to counts and caches, fast for what was just used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cache_sets.hpp"
#include "counters.hpp"
#include "hierarchy.hpp"
#include "settings.hpp"

namespace numatwin {

// Branches, and a predictor of them that is played for each processor, as caches are.

// Instructions that are executed one after the other, up to a branch. Returns are no branches here:
// processors keep a stack of where they go.
struct Block {
    enum Ending : std::uint8_t { OTHER, CONDITIONAL, INDIRECT, SYSTEM_CALL };

    std::uint64_t begin = 0, end = 0;  // addresses: of the first instruction, behind the last
    unsigned instructions = 0;
    Ending ending = OTHER;
    bool fused = false;  // a comparison and the branch behind it, which processors execute as one

    // What the kernel executes lies in the upper half of the addresses.
    bool of_kernel() const { return begin >> 63; }
    unsigned operations() const { return instructions - fused; }
};

// Two predictors of whether a branch is taken, counters by its address and by that and the branches
// before it, and a third that chooses the better one (McFarling, Combining Branch Predictors,
// 1993). Where an indirect jump goes: where it went last after the same branches. Newer ones know
// longer histories; what depends on data alone, none predicts.
class BranchPredictor {
  public:
    // Nothing is taken at first, and addresses alone count.
    BranchPredictor() : by_address_(SIZE), by_history_(SIZE), chosen_(SIZE), to_(SIZE) {}

    // `next` follows the block of the last call; returns whether the branch between them, if there
    // is one, was predicted wrongly.
    bool mispredicts(const Block& next) {
        const Block last = last_;
        last_ = next;
        if (last.ending == Block::CONDITIONAL) return decides(last.end, next.begin != last.end);
        if (last.ending == Block::INDIRECT) return jumps(last.end, next.begin);
        return false;
    }

  private:
    // Some KiB, as in hardware, of counters of three bits, as in TAGE (Seznec and Michaud 2006):
    // one of two bits follows chance where a branch goes one way three times in four.
    static constexpr std::size_t SIZE = 1U << 14;
    static constexpr std::uint8_t TAKEN = 4, COUNTED_TO = 7;

    bool decides(std::uint64_t address, bool taken) {
        std::uint8_t& plain = by_address_[address % SIZE];
        std::uint8_t& after = by_history_[(address ^ history_) % SIZE];
        std::uint8_t& choice = chosen_[address % SIZE];
        const bool plain_right = (plain >= TAKEN) == taken, after_right = (after >= TAKEN) == taken;
        const bool right = choice >= TAKEN ? after_right : plain_right;
        if (plain_right != after_right) count(choice, after_right);
        count(plain, taken);
        count(after, taken);
        history_ = history_ << 1 | taken;
        return !right;
    }

    bool jumps(std::uint64_t address, std::uint64_t to) {
        std::uint64_t& expected = to_[(address ^ history_) % SIZE];
        const bool right = expected == to;
        expected = to;
        history_ = history_ << 2 ^ to;
        return !right;
    }

    static void count(std::uint8_t& counter, bool up) {
        if (up && counter < COUNTED_TO) ++counter;
        if (!up && counter > 0) --counter;
    }

    std::vector<std::uint8_t> by_address_, by_history_, chosen_;
    std::vector<std::uint64_t> to_;
    std::uint64_t history_ = 0;
    Block last_;
};

// From an address that QEMU reports to a node and a line, memory of all nodes taken as one.

class MemoryMap {
  public:
    static constexpr unsigned BLOCK_SHIFT = 20;  // ranges begin and end at whole mebibytes

    explicit MemoryMap(const Settings& settings) : line_shift_(settings.line_shift) {
        for (const MemoryRange& range : settings.memory) {
            if ((range.first | range.bytes) & ((std::uint64_t{1} << BLOCK_SHIFT) - 1))
                throw std::runtime_error("memory: expected whole mebibytes");
            const std::size_t first = range.first >> BLOCK_SHIFT;
            const std::size_t blocks = range.bytes >> BLOCK_SHIFT;
            if (place_.size() < first + blocks) place_.resize(first + blocks, NONE);
            for (std::size_t at = first; at < first + blocks; ++at) {
                if (place_[at] != NONE) throw std::runtime_error("memory: ranges overlap");
                place_[at] = static_cast<std::uint32_t>(homes_.size());
                homes_.push_back(static_cast<std::uint16_t>(range.node));
            }
        }
    }

    const std::vector<std::uint16_t>& homes() const { return homes_; }
    unsigned lines_shift() const { return BLOCK_SHIFT - line_shift_; }  // lines per block

    bool known(std::uint64_t address) const {
        const std::size_t block = address >> BLOCK_SHIFT;
        return block < place_.size() && place_[block] != NONE;
    }
    unsigned node(std::uint64_t address) const { return homes_[place_[address >> BLOCK_SHIFT]]; }
    Line line(std::uint64_t address) const {
        const std::uint64_t within = address & ((std::uint64_t{1} << BLOCK_SHIFT) - 1);
        return (Line{place_[address >> BLOCK_SHIFT]} << lines_shift()) + (within >> line_shift_);
    }

  private:
    static constexpr std::uint32_t NONE = ~std::uint32_t{0};
    unsigned line_shift_;
    std::vector<std::uint32_t> place_;  // of each block of addresses, NONE where there is no memory
    std::vector<std::uint16_t> homes_;  // the node of each block of memory
};

// What one instruction does to memory.
struct Access {
    std::uint64_t address;  // virtual
    unsigned bytes;
    bool write;
    bool read_too;        // a locked read-modify-write
    bool serial = false;  // a read whose address the next one depends on
};

// What one processor executes. `waits`: mispredicted branches by the farthest level of cache that
// their block read from.
struct Executed {
    Count instructions, fused, mispredictions;
    Count system_calls, call_instructions;  // and what the kernel executes for them
    Count interruptions;  // of programs by the kernel: interrupts, and faults, which look the same
    std::vector<Count> waits;
};

// Each processor is used by its own thread alone.
//
// Two tables remember translations, one of lines (with their place in the first-level cache) and
// one of pages. A user program's mapping changes only by kernel code, which on another processor
// interrupts this one first: when the kernel has run here, all that was remembered of user
// addresses is forgotten. Of the kernel's own addresses the last line alone is remembered.
class Processors {
  public:
    explicit Processors(const Settings& settings)
        : map_(settings), line_shift_(settings.line_shift), cpus_(settings.shape.cpu_node.size()) {
        if (!settings.shape.levels.empty())
            caches_ = std::make_unique<Hierarchy>(settings.shape, map_.homes(), map_.lines_shift());
        for (unsigned cpu = 0; cpu < cpus_.size(); ++cpu) {
            if (caches_) cpus_[cpu].first = &caches_->first_level(cpu);
            if (settings.interval > 0) cpus_[cpu].predictor = std::make_unique<BranchPredictor>();
            cpus_[cpu].executed.waits = std::vector<Count>(settings.shape.levels.size());
            for (auto& accesses : cpus_[cpu].accesses)
                accesses = std::vector<Accesses>(settings.shape.nodes);
        }
    }

    std::size_t size() const { return cpus_.size(); }
    const Hierarchy* caches() const { return caches_.get(); }
    const Accesses& accesses(unsigned cpu, Mode mode, std::size_t node) const {
        return cpus_[cpu].accesses[mode][node];
    }
    std::uint64_t crossings(unsigned cpu) const { return cpus_[cpu].crossings.get(); }
    std::uint64_t unknown(unsigned cpu) const { return cpus_[cpu].unknown.get(); }
    const Executed& executed(unsigned cpu) const { return cpus_[cpu].executed; }

    // A block that a processor begins to execute; returns how many instructions it has executed,
    // with these, since it was told of `interval`.
    std::uint64_t executed(unsigned index, const Block& block, std::uint64_t interval) {
        Cpu& cpu = cpus_[index];
        Executed& executed = cpu.executed;
        enter(cpu, block);
        const bool mispredicted = cpu.predictor->mispredicts(block);
        if (mispredicted) executed.mispredictions.add();
        if (caches_) {
            const std::size_t level = caches_->block_ended(index, mispredicted, block.operations());
            if (mispredicted && cpu.has_read && level != Hierarchy::MISSED)
                executed.waits[level].add();
            cpu.has_read = false;
        }
        executed.instructions.add(block.instructions);
        if (cpu.runs == CALL)
            executed.call_instructions.add(block.instructions);
        else if (block.fused)
            executed.fused.add();
        if (cpu.interval != interval) {
            cpu.interval = interval;
            cpu.interval_began = executed.instructions.get();
        }
        return executed.instructions.get() - cpu.interval_began;
    }

    // The kernel has run: from now on pages may lie elsewhere.
    void kernel_ran(unsigned index) { cpus_[index].in_kernel = true; }

    // `translate(address)`: the address as QEMU reports it, NO_MEMORY for a device.
    template <Mode MODE, typename Translate>
    void access(unsigned index, Access a, Translate translate) {
        Cpu& cpu = cpus_[index];
        const Remembered* found = remembered<MODE>(cpu, a);
        if (!found) return look_up<MODE>(index, a, translate);
        count(cpu, *found->accesses, a);
        if (caches_ && !found->in_first.used_last()) cpu.first->touch(found->slot);
    }

    static constexpr std::uint64_t NO_MEMORY = ~std::uint64_t{0};

  private:
    static constexpr std::size_t LINES = 256, PAGES = 512;
    static constexpr unsigned PAGE_SHIFT = 12;
    // User addresses have 47 bits (56 with five levels): epochs stand above those of a line.
    static constexpr unsigned EPOCH_SHIFT = 51;
    static constexpr std::uint64_t EPOCHS = 1U << 12, NO_KEY = ~std::uint64_t{0};

    enum Runs : std::uint8_t { PROGRAM, CALL, INTERRUPTION };

    struct alignas(64) Remembered {
        std::uint64_t key = NO_KEY;
        std::size_t slot = 0;
        CacheSets::Use in_first;  // of the slot
        CacheSets::Word tag = 0;
        Accesses* accesses = nullptr;
    };
    struct Page {
        std::uint64_t key = NO_KEY, address = 0;
    };
    struct alignas(64) Cpu {
        CacheSets* first = nullptr;
        std::uint64_t epoch = 0;
        bool in_kernel = false;
        bool has_read = false;  // in this block
        Runs runs = PROGRAM;
        Block::Ending last_ending = Block::OTHER;
        std::array<Remembered, LINES> lines;
        std::array<Page, PAGES> pages;
        Remembered kernel_line;
        std::array<std::vector<Accesses>, MODES> accesses;
        Count crossings;  // accesses to two lines
        Count unknown;    // accesses to memory of no node
        Executed executed;
        std::unique_ptr<BranchPredictor> predictor;  // where instructions are counted
        std::uint64_t interval = 0, interval_began = 0;
    };

    // Whether the kernel begins, and what for, or a program goes on.
    static void enter(Cpu& cpu, const Block& block) {
        if (!block.of_kernel()) {
            cpu.runs = PROGRAM;
        } else if (cpu.runs == PROGRAM) {
            cpu.runs = cpu.last_ending == Block::SYSTEM_CALL ? CALL : INTERRUPTION;
            (cpu.runs == CALL ? cpu.executed.system_calls : cpu.executed.interruptions).add();
        }
        cpu.last_ending = block.ending;
    }

    [[gnu::noinline]] static void forget(Cpu& cpu) {
        cpu.in_kernel = false;
        if (++cpu.epoch < EPOCHS) return;
        cpu.epoch = 0;
        cpu.lines.fill({});
        cpu.pages.fill({});
    }

    template <Mode MODE, typename Translate>
    std::uint64_t translated(Cpu& cpu, std::uint64_t address, Translate translate) {
        if constexpr (MODE == KERNEL) return translate(address);
        const std::uint64_t page = address >> PAGE_SHIFT;
        const std::uint64_t key = page | cpu.epoch << EPOCH_SHIFT;
        Page& known = cpu.pages[page % PAGES];
        const std::uint64_t within = address & ((1U << PAGE_SHIFT) - 1);
        if (known.key != key) {
            const std::uint64_t found = translate(address);
            if (found == NO_MEMORY) return found;
            known = {key, found - within};
        }
        return known.address + within;
    }

    // Where a line is remembered, and by which key.
    template <Mode MODE>
    static Remembered& place(Cpu& cpu, std::uint64_t line) {
        return MODE == USER ? cpu.lines[line % LINES] : cpu.kernel_line;
    }
    template <Mode MODE>
    static std::uint64_t key(const Cpu& cpu, std::uint64_t line) {
        return MODE == USER ? line | cpu.epoch << EPOCH_SHIFT : line;
    }

    // What is known of an access to a single line that the first-level cache holds as it is wanted,
    // nullptr of others. What most accesses do is this, and short.
    template <Mode MODE>
    const Remembered* remembered(Cpu& cpu, const Access& a) const {
        const std::uint64_t line = a.address >> line_shift_;
        const Remembered& found = place<MODE>(cpu, line);
        if (found.key != key<MODE>(cpu, line) || (MODE == USER && cpu.in_kernel)) return nullptr;
        if ((a.address + a.bytes - 1) >> line_shift_ != line) return nullptr;
        if (MODE == KERNEL) cpu.in_kernel = true;
        const bool permitted =
            !caches_ || Hierarchy::permits(found.in_first.word(), found.tag, a.write);
        return permitted ? &found : nullptr;
    }

    static void count(Cpu& cpu, Accesses& to, const Access& a) {
        cpu.has_read |= !a.write;
        if (!a.write || a.read_too) {
            to.reads.add();
            to.read_bytes.add(a.bytes);
        }
        if (a.write) {
            to.writes.add();
            to.written_bytes.add(a.bytes);
        }
    }

    // Finds a line by its page, and brings it into the first-level cache.
    template <Mode MODE, typename Translate>
    [[gnu::noinline]] void look_up(unsigned index, Access a, Translate translate) {
        Cpu& cpu = cpus_[index];
        if (MODE == USER && cpu.in_kernel) forget(cpu);
        if (MODE == KERNEL) cpu.in_kernel = true;
        const std::uint64_t virtual_line = a.address >> line_shift_;
        Remembered& found = place<MODE>(cpu, virtual_line);
        const std::uint64_t address = translated<MODE>(cpu, a.address, translate);
        if (address == NO_MEMORY || !map_.known(address)) {
            cpu.has_read |= !a.write;
            if (address != NO_MEMORY) cpu.unknown.add();
            return;
        }
        found.key = key<MODE>(cpu, virtual_line);
        found.accesses = &cpu.accesses[MODE][map_.node(address)];
        if (caches_) {
            const Line line = map_.line(address);
            const CacheSets::Place place = cpu.first->place(line);
            found.tag = place.tag;
            found.slot = caches_->access(index, line, place, a.write, MODE, a.serial);
            found.in_first = cpu.first->use_of(found.slot);
            if ((a.address + a.bytes - 1) >> line_shift_ != virtual_line)
                touch_next<MODE>(cpu, index, a, translate);
        }
        count(cpu, *found.accesses, a);
    }

    // The second line of an access that lies in two. In the next page it is not looked for: QEMU
    // tells where a page is that was just used, and of two only one is known to have been.
    template <Mode MODE, typename Translate>
    [[gnu::noinline]] void touch_next(Cpu& cpu, unsigned index, const Access& a,
                                      Translate translate) {
        const std::uint64_t end = a.address + a.bytes - 1;
        if (end >> PAGE_SHIFT != a.address >> PAGE_SHIFT) return;
        const std::uint64_t address = translated<MODE>(cpu, end, translate);
        if (address == NO_MEMORY || !map_.known(address)) return;
        cpu.crossings.add();
        const Line line = map_.line(address);
        caches_->access(index, line, cpu.first->place(line), a.write, MODE);
    }

    MemoryMap map_;
    unsigned line_shift_;
    std::unique_ptr<Hierarchy> caches_;
    std::vector<Cpu> cpus_;
};

}  // namespace numatwin

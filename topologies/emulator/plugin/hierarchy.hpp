// Caches of a machine and how they agree: a line's way through private caches, the last-level cache
// of its processor's domain, and the directory at its home.
//
// A domain is a last-level cache and the private caches above it, which it includes. An `exclusive`
// one, of the size of them all, gives up what no private cache holds first: its last level would
// have nothing else to give up. Domains follow
// MESI, and the directory knows exactly who holds what (evictions of clean lines need no message):
//
//   read that misses   nobody, or others have it unmodified: home's memory sends it
//                      (new state: Exclusive if nobody else has it, else Shared)
//                      another has it Modified: its cache sends it, and writes it back home (in
//                      one message to a reader who is there, where none snoops); both Shared
//   write that misses  the same, but all others lose it, and a Modified line is not written back;
//                      new state: Modified
//   write, Shared      others lose it, no data move (upgrade): Modified
//   write, Exclusive   Modified, silently
//   eviction           a Modified line is written back home; others go silently
//
// With `owned` (MOESI) who has a line Modified keeps it as its owner when another reads it: nothing
// is written back, and it sends the line to whoever misses it next, until it evicts it (and writes
// it back) or loses it to a write.
//
// Messages without data, for each other domain that has to be asked: home → holder (probe), and the
// holder's answer: to the home if it keeps its clean copy, to the writer if it loses it; data are
// answer enough. Where the snoops of a miss have reached the holder anyway (same snoop domain),
// none is counted here: snoops follow from misses and upgrades.
//
// Locking: a line's words in a domain's caches are changed under the domain's lock of its stripe.
// A stripe is the low bits of the line's number, and those choose among the sets of all caches as
// they are: what is evicted to make room is of the same stripe. Hits in the first level take no
// lock. A miss that takes nothing from another domain takes its own domain's lock, which no other
// domain's processors want; one that does lets it go, and takes those of all domains concerned, in
// their order. A line's row of the directory has a lock of its own, the last that is taken, and
// never two: what is evicted leaves the directory before the row of the line that is wanted is
// locked. Who finds, with the row locked, that a domain holds the line whose lock it lacks, starts
// again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "cache_sets.hpp"
#include "counters.hpp"
#include "directory.hpp"

namespace numatwin {

// Which misses of a processor follow one another in memory, as a prefetcher would see it.

// As many streams as a core's prefetcher follows, about (AMD, Software Optimization Guide for
// Family 19h: the L2's has some tens; Intel's has 32), upwards or downwards.
class LineStreams {
  public:
    static constexpr std::size_t STREAMS = 32;

    LineStreams() { last_.fill(~Line{0} / 2); }

    // Whether `line` goes on with a stream; else it begins one, in the place of the oldest. A line
    // that was lost and is wanted again does neither.
    bool follows(Line line) {
        for (Line& last : last_)
            if (line - last + 1 <= 2) {  // the one before, the same, the next
                const bool next = line != last;
                last = line;
                return next;
            }
        last_[next_] = line;
        next_ = (next_ + 1) % STREAMS;
        return false;
    }

  private:
    std::array<Line, STREAMS> last_;
    std::size_t next_ = 0;
};

struct CacheShape {
    std::size_t instances, sets, ways;
};

// `levels`: the first, those between, the last. `cpu_instance[l][cpu]`: its cache of level l.
struct HierarchyShape {
    std::size_t nodes = 0;
    std::vector<CacheShape> levels;
    std::vector<std::vector<unsigned>> cpu_instance;
    std::vector<unsigned> cpu_node;
    std::vector<unsigned> snoop_domain;  // by node; nodes of the same one (not 0) snoop each other
    bool coherent = true;
    bool owned = false;
    bool exclusive = false;  // the last level and the private ones above it share what they hold
    std::uint64_t window = ~std::uint64_t{0};  // operations that a core looks ahead

    // Whether counts of one processor depend on what others do meanwhile.
    bool interacts() const {
        return !levels.empty() && (coherent || levels.back().instances < cpu_node.size());
    }
};

class Hierarchy {
  public:
    using Word = CacheSets::Word;
    using Place = CacheSets::Place;
    static constexpr Word WRITABLE = 1;    // in a private cache: this core may write it
    static constexpr Word HAS_WRITER = 1;  // in the last level: a private copy is writable
    // In the last level: modified, where there is no coherence; else, of a shared line: its
    // owner's.
    static constexpr Word DIRTY = 2;

    // `homes`: the node of each block of 2^block_shift lines of memory.
    Hierarchy(HierarchyShape shape, std::vector<std::uint16_t> homes, unsigned block_shift);

    unsigned home(Line line) const { return homes_[line >> block_shift_]; }
    CacheSets& first_level(unsigned cpu) { return *first_[cpu]; }

    // The word of a first-level slot says that this access needs nothing from anybody.
    static bool permits(Word word, Word tag, bool write) {
        return (word | (write ? 0 : WRITABLE)) == (tag | WRITABLE);
    }

    // An access of `cpu`; returns the slot of its first-level cache that now holds the line, which
    // is at this place there.
    // `serial`: the next such access cannot begin before this one has ended.
    std::size_t access(unsigned cpu, Line line, Place place, bool write, Mode mode,
                       bool serial = false) {
        CacheSets& first = *first_[cpu];
        cpus_[cpu].serial = serial;
        const std::size_t slot = first.find(place);
        if (slot != CacheSets::NONE && permits(first.value(slot), place.tag, write)) {
            first.touch(slot);
            return slot;
        }
        return miss(cpu, line, place, slot, write, mode);
    }

    static constexpr std::size_t MISSED = ~std::size_t{0};

    // The branch behind what `cpu` has just executed is known, and so many operations begin. Where
    // it was mispredicted, and its block missed a line, it most likely waited for that one, and
    // what came next could not begin. Returns the farthest level that the block read from, MISSED
    // where that is none.
    std::size_t block_ended(unsigned cpu, bool mispredicted, unsigned operations) {
        Cpu& of = cpus_[cpu];
        of.executed += operations;
        if (mispredicted && of.missed) {
            of.missed->serial_misses.add();
            of.missed->branch_misses.add();
        }
        const std::size_t farthest = of.missed ? MISSED : of.read_from;
        of.missed = nullptr;
        of.read_from = 0;
        return farthest;
    }

    // -- counted, by cpu and node or level
    const LineCounts& lines(unsigned cpu, std::size_t node) const { return cpus_[cpu].lines[node]; }
    // Lines of `cpu` found at a level below the first (position 0), or past the last.
    std::uint64_t found_at(unsigned cpu, std::size_t level) const {
        return cpus_[cpu].found_at[level].get();
    }
    // Operations from each miss that no prefetcher foresees to the next, as far as a core looks.
    std::uint64_t looked_ahead(unsigned cpu) const { return cpus_[cpu].looked_ahead.get(); }
    const PairCounts& downgrades() const { return downgrades_; }  // holder → home: write-backs
    // Of these, those that the reader's data bring home, as it is there, and none snoops.
    const PairCounts& home_downgrades() const { return home_downgrades_; }
    const PairCounts& probes() const { return probes_; }    // home → holder
    const PairCounts& answers() const { return answers_; }  // holder → home or writer
    const HierarchyShape& shape() const { return shape_; }

  private:
    struct alignas(64) Cpu {
        std::vector<CacheSets*> privates;  // by level
        std::vector<LineCounts> lines;
        std::vector<Count> found_at;  // by level from the second on, and past the last
        LineStreams streams;
        bool serial = false;              // of the access that is looked for
        bool alone = true;                // nobody else puts lines into its first-level cache
        std::vector<unsigned> concerned;  // domains whose locks it needs, in their order
        LineCounts* missed = nullptr;     // of a read in this block, neither streamed nor serial
        std::size_t read_from = 0;        // the farthest level of this block's reads
        std::uint64_t executed = 0;       // operations
        std::uint64_t last_miss = 0;      // of these, when one was missed last
        Count looked_ahead;
    };
    // A last-level cache, and which of its cores may hold each line of it.
    struct Domain {
        Domain(const CacheShape& shape, unsigned node, std::size_t in_order)
            : node(node), cache(shape.sets, shape.ways, in_order, true) {}
        // Of a slot's line: a bit each, cores 32 apart share one.
        std::uint32_t& cores(std::size_t slot) const { return cache.mark(slot); }
        unsigned node;
        CacheSets cache;
        std::vector<unsigned> cpus;  // one of each core, by its place in the domain
    };

    static constexpr unsigned CORE_BITS = 32;

    // The domains whose locks of a line's stripe are held, in their order; locked while it lives.
    class Locked;
    using Row = Directory::Row;

    std::size_t miss(unsigned cpu, Line line, Place place, std::size_t in_first, bool write,
                     Mode mode);
    std::size_t attempt(unsigned cpu, Line line, Place place, std::size_t in_first, bool write,
                        Mode mode, const Locked& locked);
    std::span<const unsigned> find_concerned(unsigned cpu, Line line);
    void count_miss(unsigned cpu, Line line, bool write, Mode mode, bool streamed);
    static bool lacks_lock(const Row& row, bool write, const Locked& locked);
    void find_below(unsigned cpu, Line line, bool write, std::size_t slot, Row* row);
    void fetch(unsigned cpu, Line line, Word tag, bool write, std::size_t slot, Row* row);
    bool sent_by_cache(unsigned cpu, Line line, bool write, Row& row);
    void take_from_others(unsigned cpu, Line line, bool data, Row& row);
    std::size_t victim(Domain& domain, std::size_t set);
    bool held_above(const Domain& domain, std::size_t slot);
    bool owns(unsigned holder, Line line);
    void make_own(unsigned cpu, Line line, std::size_t slot, Row* row);
    void ask(unsigned node, unsigned home, unsigned holder);
    void downgrade_cores(Domain& domain, std::size_t slot, Line line);
    void take_from_cores(Domain& domain, Line line, std::uint32_t cores, unsigned keeper);
    void evict(unsigned cpu, Domain& domain, std::size_t slot);
    std::size_t put(unsigned cpu, Line line, Place place, bool writable, bool fetched);

    // Calls `see` with a processor of each of the `cores` of a domain.
    template <typename See>
    void each_core(const Domain& domain, std::uint32_t cores, See see) const {
        for (; cores; cores &= cores - 1)
            for (std::size_t at = std::countr_zero(cores); at < domain.cpus.size(); at += CORE_BITS)
                see(domain.cpus[at]);
    }
    bool snoops(unsigned node, unsigned other) const {
        return node != other && shape_.snoop_domain[node] != 0 &&
               shape_.snoop_domain[node] == shape_.snoop_domain[other];
    }
    CacheSets& private_cache(std::size_t level, unsigned cpu) const {
        return *cpus_[cpu].privates[level];
    }
    std::uint32_t core_bit(unsigned cpu) const { return 1U << (core_of_[cpu] % CORE_BITS); }
    unsigned domain_of(unsigned cpu) const { return shape_.cpu_instance.back()[cpu]; }
    SpinLock& lock_of(unsigned domain, Line line) {
        return locks_[domain * (stripe_mask_ + 1) + (line & stripe_mask_)];
    }

    HierarchyShape shape_;
    std::size_t last_;                             // the last level's position
    std::vector<std::deque<CacheSets>> privates_;  // by level and instance
    std::deque<Domain> domains_;
    std::vector<CacheSets*> first_;  // by cpu
    std::vector<unsigned> core_of_;  // by cpu: the place of its first-level cache in its domain
    std::vector<Cpu> cpus_;
    std::vector<std::uint16_t> homes_;
    unsigned block_shift_;
    Directory directory_;
    PairCounts downgrades_, home_downgrades_, probes_, answers_;
    std::uint64_t stripe_mask_;
    std::unique_ptr<SpinLock[]> locks_;  // by domain and stripe
};

}  // namespace numatwin

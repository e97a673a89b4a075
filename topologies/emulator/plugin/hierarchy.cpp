// What a line goes through that is not in the first-level cache as it is wanted.
#include "hierarchy.hpp"

#include <mutex>
#include <stdexcept>
#include <utility>

namespace numatwin {

namespace {

constexpr unsigned NO_CPU = ~0U;
// Lines in a row whose sets a last level does not hash: of a page. Stripes are of them.
constexpr std::size_t IN_ORDER = 64;

std::size_t stripes_of(const HierarchyShape& shape) {
    std::size_t stripes = IN_ORDER;
    for (const CacheShape& level : shape.levels) stripes = std::min(stripes, level.sets);
    return stripes;
}

}  // namespace

Hierarchy::Hierarchy(HierarchyShape shape, std::vector<std::uint16_t> homes, unsigned block_shift)
    : shape_(std::move(shape)),
      last_(shape_.levels.size() - 1),
      cpus_(shape_.cpu_node.size()),
      homes_(std::move(homes)),
      block_shift_(block_shift),
      directory_(shape_.coherent ? homes_.size() << block_shift : 0,
                 shape_.levels.back().instances),
      downgrades_(shape_.nodes),
      home_downgrades_(shape_.nodes),
      probes_(shape_.nodes),
      answers_(shape_.nodes),
      stripe_mask_(stripes_of(shape_) - 1),
      stripes_(new SpinLock[stripe_mask_ + 1]) {
    if (last_ == 0) throw std::invalid_argument("caches: expected two levels at least");
    const std::size_t cpus = shape_.cpu_node.size();
    privates_.resize(last_);
    for (std::size_t level = 0; level < last_; ++level)
        for (std::size_t n = 0; n < shape_.levels[level].instances; ++n)
            privates_[level].emplace_back(shape_.levels[level].sets, shape_.levels[level].ways);
    std::vector<unsigned> node_of(shape_.levels.back().instances);
    for (std::size_t cpu = 0; cpu < cpus; ++cpu)
        node_of[shape_.cpu_instance.back()[cpu]] = shape_.cpu_node[cpu];
    for (const unsigned node : node_of) domains_.emplace_back(shape_.levels.back(), node, IN_ORDER);
    std::vector<unsigned> place(shape_.levels[0].instances, NO_CPU);
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
        const unsigned instance = shape_.cpu_instance[0][cpu];
        Domain& domain = domains_[domain_of(cpu)];
        if (place[instance] == NO_CPU) {
            place[instance] = static_cast<unsigned>(domain.cpus.size());
            domain.cpus.push_back(cpu);
        }
        first_.push_back(&privates_[0][instance]);
        core_of_.push_back(place[instance]);
        cpus_[cpu].lines = std::vector<LineCounts>(shape_.nodes);
        cpus_[cpu].found_at = std::vector<Count>(last_ + 2);
    }
}

std::size_t Hierarchy::miss(unsigned cpu, Line line, bool write, Mode mode) {
    const std::lock_guard locked(stripes_[line & stripe_mask_]);
    CacheSets& first = *first_[cpu];
    Domain& domain = domains_[domain_of(cpu)];
    const std::size_t slot = first.find(line);
    if (slot == CacheSets::NONE) return find_below(cpu, line, write, mode);
    first.touch(slot);
    // Else another thread of its core was faster.
    if (!permits(first.value(slot), line, write)) {
        make_own(cpu, line, domain.cache.find(line));
        first.set(slot, CacheSets::tag(line) | WRITABLE);
    }
    return slot;
}

// Not in the first level: the private ones below it, then the last, then other caches or memory.
std::size_t Hierarchy::find_below(unsigned cpu, Line line, bool write, Mode mode) {
    Domain& domain = domains_[domain_of(cpu)];
    CacheSets& last = domain.cache;
    cpus_[cpu].streamed = cpus_[cpu].streams.follows(line);
    std::size_t slot = last.find(line);
    const bool fetched = slot == CacheSets::NONE;
    if (fetched) {
        slot = fetch(cpu, line, write, mode);
        last.set(slot, last.value(slot) | (write ? HAS_WRITER : 0));
    } else {
        std::size_t level = 1;
        while (level < last_ && private_cache(level, cpu).find(line) == CacheSets::NONE) ++level;
        cpus_[cpu].found_at[level].add();
        if (level == last_) last.touch(slot);
        if (write)
            make_own(cpu, line, slot);
        else if (domain.cores[slot] != core_bit(cpu) || domain.cpus.size() > 64)
            downgrade_cores(domain, slot, line);
        domain.cores[slot] |= core_bit(cpu);
    }
    // A line that was evicted from the first level alone may still be written.
    return put(cpu, line, last.value(slot) & HAS_WRITER, fetched);
}

// Brings a line into the last level that is not there; returns its slot.
std::size_t Hierarchy::fetch(unsigned cpu, Line line, bool write, Mode mode) {
    const unsigned at = domain_of(cpu), from = home(line);
    Domain& domain = domains_[at];
    LineCounts& counted = cpus_[cpu].lines[from];
    cpus_[cpu].found_at[last_ + 1].add();
    (write ? counted.write_misses : counted.read_misses)[mode].add();
    if (cpus_[cpu].streamed)
        counted.streamed_misses.add();
    else if (cpus_[cpu].serial)
        counted.serial_misses.add();
    const std::size_t slot = victim(domain, line);
    evict(cpu, domain, slot);
    if (!shape_.coherent || !sent_by_cache(cpu, line, write)) counted.memory_reads.add();
    if (shape_.coherent) {
        if (write)
            directory_.set_only(line, at, Directory::MODIFIED);
        else if (directory_.empty(line))
            directory_.set_only(line, at, Directory::EXCLUSIVE);
        else
            directory_.add(line, at);
    }
    domain.cache.set(slot, CacheSets::tag(line) | (write && !shape_.coherent ? DIRTY : 0));
    domain.cache.touch(slot);
    domain.cores[slot] = core_bit(cpu);
    return slot;
}

// The slot of a last level to make room in. Of an exclusive one, what a private cache holds counts
// as used now; where one holds each line of the set, the one that came first goes.
std::size_t Hierarchy::victim(Domain& domain, Line line) {
    CacheSets& cache = domain.cache;
    std::size_t slot = cache.victim(line);
    if (!shape_.exclusive) return slot;
    for (std::size_t way = 0; way < shape_.levels.back().ways; ++way) {
        if (cache.value(slot) == 0 || !held_above(domain, slot)) return slot;
        cache.touch(slot);
        slot = cache.victim(line);
    }
    return slot;
}

// Whether a private cache holds the line of a slot.
bool Hierarchy::held_above(const Domain& domain, std::size_t slot) {
    const Line line = CacheSets::line_of(domain.cache.value(slot));
    bool found = false;
    each_core(domain, domain.cores[slot], [&](unsigned cpu) {
        for (std::size_t level = 0; level < last_; ++level)
            found |= private_cache(level, cpu).find(line) != CacheSets::NONE;
    });
    return found;
}

// What a miss does to the other domains that hold the line; returns whether one sends it.
bool Hierarchy::sent_by_cache(unsigned cpu, Line line, bool write) {
    const unsigned node = shape_.cpu_node[cpu], from = home(line);
    const Directory::State state = directory_.state(line);
    if (write) {
        take_from_others(cpu, line, true);
    } else if (state != Directory::SHARED) {
        directory_.each_holder(line, [&](unsigned holder) {
            if (state == Directory::OWNED && !owns(holder, line)) return;
            Domain& domain = domains_[holder];
            const unsigned there = domain.node;
            ask(node, from, there);
            if (state == Directory::EXCLUSIVE) {
                if (!snoops(node, there)) answers_.add(there, from);
                return;
            }
            cpus_[cpu].lines[there].transfers.add();
            if (!shape_.owned) {
                downgrades_.add(there, from);
                if (node == from && !snoops(node, there)) home_downgrades_.add(there, from);
            }
            const std::size_t slot = domain.cache.find(line);
            downgrade_cores(domain, slot, line);
            if (shape_.owned) domain.cache.set(slot, domain.cache.value(slot) | DIRTY);
        });
        const bool kept = shape_.owned && state != Directory::EXCLUSIVE;
        directory_.set_state(line, kept ? Directory::OWNED : Directory::SHARED);
    }
    return state == Directory::MODIFIED || state == Directory::OWNED;
}

// Whether a domain is the owner of a line in state OWNED that it holds.
bool Hierarchy::owns(unsigned holder, Line line) {
    CacheSets& cache = domains_[holder].cache;
    return cache.value(cache.find(line)) & DIRTY;
}

// All other domains lose the line to a write of `cpu`; where it wants the `data`, one that has
// modified it sends them.
void Hierarchy::take_from_others(unsigned cpu, Line line, bool data) {
    const unsigned node = shape_.cpu_node[cpu], own = domain_of(cpu);
    const Directory::State state = directory_.state(line);
    directory_.each_holder(line, [&](unsigned holder) {
        if (holder == own) return;
        const bool modified = state == Directory::MODIFIED ||
                              (data && state == Directory::OWNED && owns(holder, line));
        Domain& domain = domains_[holder];
        ask(node, home(line), domain.node);
        LineCounts& counted = cpus_[cpu].lines[domain.node];
        counted.invalidations.add();
        if (modified)
            counted.transfers.add();
        else if (!snoops(node, domain.node))
            answers_.add(domain.node, node);
        const std::size_t slot = domain.cache.find(line);
        take_from_cores(domain, line, domain.cores[slot], NO_CPU);
        domain.cache.clear(slot);
    });
}

// The right to write a line that the last level holds: nobody else keeps a copy.
void Hierarchy::make_own(unsigned cpu, Line line, std::size_t slot) {
    Domain& domain = domains_[domain_of(cpu)];
    if (!shape_.coherent) {
        domain.cache.set(slot, domain.cache.value(slot) | DIRTY | HAS_WRITER);
        return;
    }
    take_from_cores(domain, line, domain.cores[slot], cpu);
    domain.cores[slot] = core_bit(cpu);
    domain.cache.set(slot, CacheSets::tag(line) | HAS_WRITER);
    const Directory::State state = directory_.state(line);
    if (state == Directory::SHARED || state == Directory::OWNED) {
        cpus_[cpu].lines[home(line)].upgrades.add();
        take_from_others(cpu, line, false);
        directory_.set_only(line, domain_of(cpu), Directory::MODIFIED);
    } else {
        directory_.set_state(line, Directory::MODIFIED);
    }
}

// A message from the home to a holder, unless the snoops of `node`'s miss have reached it.
void Hierarchy::ask(unsigned node, unsigned home, unsigned holder) {
    if (!snoops(node, holder)) probes_.add(home, holder);
}

// A domain's cores keep the line, but must ask before they write it again.
void Hierarchy::downgrade_cores(Domain& domain, std::size_t slot, Line line) {
    if (!(domain.cache.value(slot) & HAS_WRITER) || !shape_.coherent) return;
    domain.cache.set(slot, domain.cache.value(slot) & ~HAS_WRITER);
    each_core(domain, domain.cores[slot], [&](unsigned cpu) {
        const std::size_t found = first_[cpu]->find(line);
        if (found != CacheSets::NONE) first_[cpu]->set(found, CacheSets::tag(line));
    });
}

// The private caches of `cores` lose the line, but for those that `keeper` uses.
void Hierarchy::take_from_cores(Domain& domain, Line line, std::uint64_t cores, unsigned keeper) {
    each_core(domain, cores, [&](unsigned cpu) {
        for (std::size_t level = 0; level < last_; ++level)
            if (keeper == NO_CPU || &private_cache(level, cpu) != &private_cache(level, keeper))
                private_cache(level, cpu).remove(line);
    });
}

// Makes room in a last level of `cpu`'s domain; what it holds no more, its private caches neither.
void Hierarchy::evict(unsigned cpu, Domain& domain, std::size_t slot) {
    const std::uint64_t word = domain.cache.value(slot);
    if (word == 0) return;
    const Line line = CacheSets::line_of(word);
    take_from_cores(domain, line, domain.cores[slot], NO_CPU);
    domain.cache.clear(slot);
    bool modified = word & DIRTY;
    if (shape_.coherent) {
        const Directory::State state = directory_.state(line);
        modified = state == Directory::MODIFIED || (state == Directory::OWNED && (word & DIRTY));
        directory_.remove(line, domain_of(cpu));
        if (modified && !directory_.empty(line)) directory_.set_state(line, Directory::SHARED);
    }
    if (modified) cpus_[cpu].lines[home(line)].write_backs.add();
}

// Puts a line into all private caches of `cpu`, of which the first does not hold it, and none if it
// was fetched; returns its slot in the first.
std::size_t Hierarchy::put(unsigned cpu, Line line, bool writable, bool fetched) {
    for (std::size_t level = last_ - 1; level > 0; --level) {
        CacheSets& cache = private_cache(level, cpu);
        std::size_t slot = fetched ? CacheSets::NONE : cache.find(line);
        if (slot == CacheSets::NONE) slot = cache.victim(line);
        cache.set(slot, CacheSets::tag(line));
        cache.touch(slot);
    }
    CacheSets& first = *first_[cpu];
    const std::size_t slot = first.victim(line);
    first.set(slot, CacheSets::tag(line) | (writable ? WRITABLE : 0));
    first.touch(slot);
    return slot;
}

}  // namespace numatwin

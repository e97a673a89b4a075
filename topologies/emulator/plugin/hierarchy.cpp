// What a line goes through that is not in the first-level cache as it is wanted.
#include "hierarchy.hpp"

#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace numatwin {

namespace {

constexpr unsigned NO_CPU = ~0U;
// Lines in a row whose sets a last level does not hash: of a page. Stripes are of them.
constexpr std::size_t IN_ORDER = 64;

std::size_t stripes_of(const HierarchyShape& shape) {
    std::size_t stripes = IN_ORDER;
    for (const CacheShape& level : shape.levels)
        stripes = std::min(stripes, CacheSets::row_of(level.sets, IN_ORDER));
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
      locks_(new SpinLock[shape_.levels.back().instances * (stripe_mask_ + 1)]) {
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
    const std::uint64_t lines = std::uint64_t{homes_.size()} << block_shift_;
    bool hold = domains_.front().cache.holds(lines);
    for (const std::deque<CacheSets>& level : privates_) hold &= level.front().holds(lines);
    if (!hold) throw std::invalid_argument("caches: too few sets for so much memory");
    std::vector<unsigned> place(shape_.levels[0].instances, NO_CPU);
    for (unsigned cpu = 0; cpu < cpus; ++cpu) {
        const unsigned instance = shape_.cpu_instance[0][cpu];
        Domain& domain = domains_[domain_of(cpu)];
        if (place[instance] == NO_CPU) {
            place[instance] = static_cast<unsigned>(domain.cpus.size());
            domain.cpus.push_back(cpu);
        } else {
            for (unsigned other = 0; other <= cpu; ++other)
                if (shape_.cpu_instance[0][other] == instance) cpus_[other].alone = false;
        }
        first_.push_back(&privates_[0][instance]);
        core_of_.push_back(place[instance]);
        for (std::size_t level = 0; level < last_; ++level)
            cpus_[cpu].privates.push_back(&privates_[level][shape_.cpu_instance[level][cpu]]);
        cpus_[cpu].lines = std::vector<LineCounts>(shape_.nodes);
        cpus_[cpu].found_at = std::vector<Count>(last_ + 2);
    }
}

class Hierarchy::Locked {
  public:
    Locked(Hierarchy& all, Line line, std::span<const unsigned> domains)
        : all_(all), line_(line), domains_(domains) {
        for (const unsigned domain : domains_) all_.lock_of(domain, line_).lock();
    }
    ~Locked() {
        for (const unsigned domain : domains_) all_.lock_of(domain, line_).unlock();
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    bool holds(unsigned domain) const { return std::ranges::binary_search(domains_, domain); }

  private:
    Hierarchy& all_;
    Line line_;
    std::span<const unsigned> domains_;
};

std::size_t Hierarchy::miss(unsigned cpu, Line line, Place place, std::size_t in_first, bool write,
                            Mode mode) {
    const unsigned own = domain_of(cpu);
    for (std::span<const unsigned> concerned(&own, 1);; concerned = find_concerned(cpu, line)) {
        const Locked locked(*this, line, concerned);
        const std::size_t slot = attempt(cpu, line, place, in_first, write, mode, locked);
        if (slot != CacheSets::NONE) return slot;
    }
}

// The domain of a processor, and those that hold the line now.
std::span<const unsigned> Hierarchy::find_concerned(unsigned cpu, Line line) {
    std::vector<unsigned>& concerned = cpus_[cpu].concerned;
    const unsigned own = domain_of(cpu);
    concerned.assign(1, own);
    Row(directory_, line).each_holder([&](unsigned holder) {
        if (holder != own) concerned.push_back(holder);
    });
    std::ranges::sort(concerned);
    return concerned;
}

// Whether an access takes something from a domain whose lock is not held. Who reads what is shared
// joins the others and changes nothing of theirs.
bool Hierarchy::lacks_lock(const Row& row, bool write, const Locked& locked) {
    if (!write && row.state() == Directory::SHARED) return false;
    bool lacks = false;
    row.each_holder([&](unsigned holder) { lacks |= !locked.holds(holder); });
    return lacks;
}

// The slot of the first level that now holds the line, NONE where more has to be locked first.
std::size_t Hierarchy::attempt(unsigned cpu, Line line, Place place, std::size_t in_first,
                               bool write, Mode mode, const Locked& locked) {
    CacheSets& first = *first_[cpu];
    Domain& domain = domains_[domain_of(cpu)];
    CacheSets& last = domain.cache;
    // Between then and now, others may have taken it, and threads of the same core brought it.
    if (in_first != CacheSets::NONE || !cpus_[cpu].alone) in_first = first.find(place);
    if (in_first != CacheSets::NONE && permits(first.value(in_first), place.tag, write)) {
        first.touch(in_first);
        return in_first;
    }
    const Place in_last = last.place(line);
    std::size_t slot = last.find(in_last);
    const bool fetches = slot == CacheSets::NONE;
    if (fetches) {
        if (shape_.coherent) directory_.prefetch(line);
        slot = victim(domain, in_last.set);
        evict(cpu, domain, slot);
    }
    std::optional<Row> row;
    if (shape_.coherent && (fetches || write)) {
        row.emplace(directory_, line);
        if (lacks_lock(*row, write, locked)) return CacheSets::NONE;
    }
    Row* known = row ? &*row : nullptr;
    if (in_first != CacheSets::NONE) {
        first.touch(in_first);
        make_own(cpu, line, slot, known);
        first.set(in_first, place.tag | WRITABLE);
        return in_first;
    }
    const bool streamed = cpus_[cpu].streams.follows(line);
    if (fetches) {
        count_miss(cpu, line, write, mode, streamed);
        fetch(cpu, line, in_last.tag, write, slot, known);
    } else {
        find_below(cpu, line, write, slot, known);
    }
    // A line that was evicted from the first level alone may still be written.
    return put(cpu, line, place, last.value(slot) & HAS_WRITER, fetches);
}

// Not in the first level, but in a slot of the last, and perhaps in a private one between.
void Hierarchy::find_below(unsigned cpu, Line line, bool write, std::size_t slot, Row* row) {
    Domain& domain = domains_[domain_of(cpu)];
    std::size_t level = 1;
    while (level < last_ && private_cache(level, cpu).find(line) == CacheSets::NONE) ++level;
    cpus_[cpu].found_at[level].add();
    if (!write) cpus_[cpu].read_from = std::max(cpus_[cpu].read_from, level);
    if (level == last_) domain.cache.touch(slot);
    if (write)
        make_own(cpu, line, slot, row);
    else if (domain.cores(slot) != core_bit(cpu) || domain.cpus.size() > CORE_BITS)
        downgrade_cores(domain, slot, line);
    domain.cores(slot) |= core_bit(cpu);
}

void Hierarchy::count_miss(unsigned cpu, Line line, bool write, Mode mode, bool streamed) {
    LineCounts& counted = cpus_[cpu].lines[home(line)];
    cpus_[cpu].found_at[last_ + 1].add();
    (write ? counted.write_misses : counted.read_misses)[mode].add();
    if (streamed) {
        counted.streamed_misses.add();
        return;
    }
    Cpu& of = cpus_[cpu];
    of.looked_ahead.add(std::min(of.executed - of.last_miss, shape_.window));
    of.last_miss = of.executed;
    if (of.serial)
        counted.serial_misses.add();
    else if (!write)
        of.missed = &counted;
}

// Brings a line into an empty slot of the last level.
void Hierarchy::fetch(unsigned cpu, Line line, Word tag, bool write, std::size_t slot, Row* row) {
    const unsigned at = domain_of(cpu);
    Domain& domain = domains_[at];
    if (!row || !sent_by_cache(cpu, line, write, *row))
        cpus_[cpu].lines[home(line)].memory_reads.add();
    if (row) {
        if (write)
            row->set_only(at, Directory::MODIFIED);
        else if (row->state() == Directory::NOBODY)
            row->set_only(at, Directory::EXCLUSIVE);
        else
            row->add(at);
    }
    const Word flags = write ? HAS_WRITER | (row ? 0 : DIRTY) : 0;
    domain.cache.set(slot, tag | flags);
    domain.cache.touch(slot);
    domain.cores(slot) = core_bit(cpu);
}

// The slot of a last level to make room in. Of an exclusive one, what a private cache holds counts
// as used now; where one holds each line of the set, the one that came first goes.
std::size_t Hierarchy::victim(Domain& domain, std::size_t set) {
    CacheSets& cache = domain.cache;
    std::size_t slot = cache.victim(set);
    if (!shape_.exclusive) return slot;
    for (std::size_t way = 0; way < shape_.levels.back().ways; ++way) {
        if (cache.value(slot) == 0) return slot;
        if (shape_.coherent) directory_.prefetch(cache.line(slot));
        if (!held_above(domain, slot)) {
            domain.cores(slot) = 0;
            return slot;
        }
        cache.touch(slot);
        slot = cache.victim(set);
    }
    return slot;
}

// Whether a private cache holds the line of a slot.
bool Hierarchy::held_above(const Domain& domain, std::size_t slot) {
    const Line line = domain.cache.line(slot);
    bool found = false;
    each_core(domain, domain.cores(slot), [&](unsigned cpu) {
        for (std::size_t level = 0; level < last_; ++level)
            found |= private_cache(level, cpu).find(line) != CacheSets::NONE;
    });
    return found;
}

// What a miss does to the other domains that hold the line; returns whether one sends it.
bool Hierarchy::sent_by_cache(unsigned cpu, Line line, bool write, Row& row) {
    const unsigned node = shape_.cpu_node[cpu], from = home(line);
    const Directory::State state = row.state();
    if (write) {
        take_from_others(cpu, line, true, row);
    } else if (state != Directory::SHARED && state != Directory::NOBODY) {
        row.each_holder([&](unsigned holder) {
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
        row.set_state(kept ? Directory::OWNED : Directory::SHARED);
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
void Hierarchy::take_from_others(unsigned cpu, Line line, bool data, Row& row) {
    const unsigned node = shape_.cpu_node[cpu], own = domain_of(cpu);
    const Directory::State state = row.state();
    row.each_holder([&](unsigned holder) {
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
        take_from_cores(domain, line, domain.cores(slot), NO_CPU);
        domain.cache.clear(slot);
    });
}

// The right to write a line that the last level holds: nobody else keeps a copy.
void Hierarchy::make_own(unsigned cpu, Line line, std::size_t slot, Row* row) {
    Domain& domain = domains_[domain_of(cpu)];
    if (!row) {
        domain.cache.set(slot, domain.cache.value(slot) | DIRTY | HAS_WRITER);
        return;
    }
    take_from_cores(domain, line, domain.cores(slot), cpu);
    domain.cores(slot) = core_bit(cpu);
    domain.cache.set(slot, (domain.cache.value(slot) & ~CacheSets::FLAGS) | HAS_WRITER);
    if (row->state() == Directory::SHARED || row->state() == Directory::OWNED) {
        cpus_[cpu].lines[home(line)].upgrades.add();
        take_from_others(cpu, line, false, *row);
        row->set_only(domain_of(cpu), Directory::MODIFIED);
    } else {
        row->set_state(Directory::MODIFIED);
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
    each_core(domain, domain.cores(slot), [&](unsigned cpu) {
        const Place place = first_[cpu]->place(line);
        const std::size_t found = first_[cpu]->find(place);
        if (found != CacheSets::NONE) first_[cpu]->set(found, place.tag);
    });
}

// The private caches of `cores` lose the line, but for those that `keeper` uses.
void Hierarchy::take_from_cores(Domain& domain, Line line, std::uint32_t cores, unsigned keeper) {
    each_core(domain, cores, [&](unsigned cpu) {
        for (std::size_t level = 0; level < last_; ++level)
            if (keeper == NO_CPU || &private_cache(level, cpu) != &private_cache(level, keeper))
                private_cache(level, cpu).remove(line);
    });
}

// Makes room in a last level of `cpu`'s domain; what it holds no more, its private caches neither.
void Hierarchy::evict(unsigned cpu, Domain& domain, std::size_t slot) {
    const Word word = domain.cache.value(slot);
    if (word == 0) return;
    const Line line = domain.cache.line(slot);
    take_from_cores(domain, line, domain.cores(slot), NO_CPU);
    domain.cache.clear(slot);
    bool modified = word & DIRTY;
    if (shape_.coherent) {
        Row row(directory_, line);
        modified = row.state() == Directory::MODIFIED ||
                   (row.state() == Directory::OWNED && (word & DIRTY));
        row.remove(domain_of(cpu));
        if (modified && row.state() != Directory::NOBODY) row.set_state(Directory::SHARED);
    }
    if (modified) cpus_[cpu].lines[home(line)].write_backs.add();
}

// Puts a line into all private caches of `cpu`, of which the first does not hold it, and none if it
// was fetched; returns its slot in the first.
std::size_t Hierarchy::put(unsigned cpu, Line line, Place place, bool writable, bool fetched) {
    for (std::size_t level = last_ - 1; level > 0; --level) {
        CacheSets& cache = private_cache(level, cpu);
        const Place there = cache.place(line);
        std::size_t slot = fetched ? CacheSets::NONE : cache.find(there);
        if (slot == CacheSets::NONE) slot = cache.victim(there.set);
        cache.set(slot, there.tag);
        cache.touch(slot);
    }
    CacheSets& first = *first_[cpu];
    const std::size_t slot = first.victim(place.set);
    first.set(slot, place.tag | (writable ? WRITABLE : 0));
    first.touch(slot);
    return slot;
}

}  // namespace numatwin

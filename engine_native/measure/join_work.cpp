// Single passes of distributed operators over tuples: see engine_work.hpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "fabric/streaming_copy.hpp"
#include "kernel/philox.hpp"
#include "measure/engine_work.hpp"
#include "systems/joins/bloom_filter.hpp"
#include "systems/joins/group_table.hpp"
#include "systems/joins/partition_buffers.hpp"
#include "systems/joins/partition_join.hpp"

namespace numatwin::native {
namespace {

using Entry = Tuple<std::uint64_t>;
using Entries = std::vector<Entry>;
constexpr std::uint64_t table_tuples = 1 << 20, turn_tuples = 4'096;

unsigned bits_of(std::uint64_t count) {
    return static_cast<unsigned>(std::bit_width(count)) - 1;
}

// Keys 0 … count - 1 in random order.
Entries shuffled(std::uint64_t count) {
    Entries made(count);
    Stream stream(1, 2);
    for (std::uint64_t k = 0; k < count; ++k) {
        made[k] = {k, k};
        std::swap(made[k], made[stream.below(k + 1)]);
    }
    return made;
}

// The same, partition by partition; also where each begins, and the end.
std::pair<Entries, std::vector<std::size_t>> partitioned(std::uint64_t count, unsigned bits) {
    Entries made = shuffled(count);
    const auto partition = [bits](const Entry& tuple) {
        return bits == 0 ? 0 : partition_of(scattered(tuple.key), bits);
    };
    std::ranges::stable_sort(made, {}, partition);
    std::vector<std::size_t> ends((std::size_t{1} << bits) + 1, 0);
    for (const Entry& tuple : made) ++ends[partition(tuple) + 1];
    for (std::size_t p = 1; p < ends.size(); ++p) ends[p] += ends[p - 1];
    return {std::move(made), std::move(ends)};
}

// Work that goes through a table, a piece in each turn, from the beginning again at the end.
template <class Step, class Wrap = decltype([] {})>
Work through(Entries table, Step step, Wrap wrap = {}) {
    return [table = std::move(table), step = std::move(step), wrap = std::move(wrap),
            at = std::size_t{0}](std::int64_t end_ns) mutable {
        return turns_until(end_ns, [&] {
            const std::size_t piece = std::min<std::size_t>(turn_tuples, table.size() - at);
            step(std::span(table).subspan(at, piece));
            at += piece;
            if (at == table.size()) {
                wrap();
                at = 0;
            }
            return static_cast<double>(piece);
        });
    };
}

// Turns whose amount is always the same.
template <class Turn>
Work turns(double amount, Turn turn) {
    return [amount, turn = std::move(turn)](std::int64_t end_ns) mutable {
        return turns_until(end_ns, [&] {
            turn();
            return amount;
        });
    };
}

// Keeps what is measured from being left out.
void used(const void* what) {
    asm volatile("" : : "g"(what) : "memory");
}

// What PartitionBuffers write to: memory of this process, each partition as large as its share.
class Partitioner {
  public:
    Partitioner(const Entries& table, unsigned bits, std::uint32_t buffer_bytes)
        : bits_(bits),
          fabric_(local_fabric()),
          buffers_(*fabric_, {buffer_bytes, 1, true}),
          counts_(std::size_t{1} << bits, 0),
          lines_(zeroed_lines(table.size() * sizeof(Entry) + counts_.size() * line_bytes)) {
        for (const Entry& tuple : table) ++counts_[partition_of(scattered(tuple.key), bits)];
        begin();
    }
    void append(std::span<const Entry> tuples) {
        for (const Entry& tuple : tuples)
            buffers_.append(partition_of(scattered(tuple.key), bits_), tuple);
    }
    void end() {
        buffers_.finish();
        begin();
    }

  private:
    void begin() {
        std::vector<PartitionPlace> places;
        std::byte* at = lines_.get();
        for (const std::uint64_t count : counts_) {
            places.push_back({at, 0, 0, count});
            at += (count * sizeof(Entry) + line_bytes - 1) / line_bytes * line_bytes;
        }
        buffers_.open(std::move(places));
    }
    unsigned bits_;
    std::unique_ptr<Fabric> fabric_;
    PartitionBuffers<Entry> buffers_;
    std::vector<std::uint64_t> counts_;
    Lines<> lines_;
};

GroupTable filled(std::uint64_t groups, std::uint64_t slots) {
    GroupTable table(slots, GroupTable::own_share);
    for (std::uint64_t key = 0; key < groups; ++key) table.add({key, 1, key});
    return table;
}

}  // namespace

Work count_tuples(std::uint32_t partitions) {
    const unsigned bits = bits_of(partitions);
    return through(shuffled(table_tuples),
                   [bits, counts = std::vector<std::uint64_t>(partitions, 0)](
                       std::span<const Entry> tuples) mutable {
                       for (const Entry& tuple : tuples)
                           ++counts[partition_of(scattered(tuple.key), bits)];
                       used(counts.data());
                   });
}

Work partition_tuples(std::uint32_t partitions, std::uint32_t buffer_bytes) {
    Entries table = shuffled(table_tuples);
    const auto to = std::make_shared<Partitioner>(table, bits_of(partitions), buffer_bytes);
    return through(
        std::move(table), [to](std::span<const Entry> tuples) { to->append(tuples); },
        [to] { to->end(); });
}

Work gather_tuples(std::uint32_t message_bytes) {
    struct Message {
        std::vector<std::byte> bytes;
        std::size_t end = 0;
    };
    return through(
        shuffled(table_tuples),
        [messages = std::vector<Message>(
             2, {std::vector<std::byte>(message_bytes / sizeof(Entry) * sizeof(Entry))})](
            std::span<const Entry> tuples) mutable {
            for (const Entry& tuple : tuples) {
                auto& message = messages[owner_of(partition_of(scattered(tuple.key), 8), 8, 2)];
                std::memcpy(&message.bytes[message.end], &tuple, sizeof tuple);
                message.end += sizeof tuple;
                if (message.end == message.bytes.size()) message.end = 0;
            }
            used(&messages);
        });
}

Work take_tuples(std::uint32_t message_bytes) {
    const std::size_t each = message_bytes / sizeof(Entry);
    Entries received(table_tuples + each);  // all of its pages are used before it is measured
    return turns(static_cast<double>(each),
                 [each, message = Entries(each), received = std::move(received)]() mutable {
                     if (received.size() >= table_tuples) received.clear();
                     const std::size_t before = received.size();
                     received.resize(before + each);
                     std::memcpy(&received[before], message.data(), each * sizeof(Entry));
                     used(received.data());
                 });
}

Work join_partitions(std::uint32_t inner, bool probe) {
    const std::uint64_t count = std::max<std::uint64_t>(table_tuples, inner);
    const unsigned bits = bits_of(count / inner);
    struct State {
        Entries inner, outer;
        std::vector<std::size_t> ends;
        PartitionJoin<std::uint64_t> join;
        ResultTotals found;
        std::size_t at = 0;
    };
    auto [table, ends] = partitioned(count, std::max(bits, 1u));
    Entries outer;
    if (probe) {
        outer = table;
        // As outer tuples come, in no order within their partition.
        Stream stream(3, 4);
        for (std::size_t p = 0; p + 1 < ends.size(); ++p)
            for (std::size_t k = ends[p]; k < ends[p + 1]; ++k)
                std::swap(outer[k], outer[ends[p] + stream.below(k - ends[p] + 1)]);
    }
    const auto state = std::make_shared<State>(State{
        std::move(table), std::move(outer), std::move(ends), {std::max(bits, 1u), false}, {}});
    return [state](std::int64_t end_ns) {
        return turns_until(end_ns, [&] {
            const std::size_t from = state->ends[state->at];
            const std::size_t size = state->ends[state->at + 1] - from;
            const std::span<const Entry> inner = std::span(state->inner).subspan(from, size);
            std::span<const Entry> outer;
            if (!state->outer.empty()) outer = std::span(state->outer).subspan(from, size);
            state->join.join(std::span(&inner, 1), std::span(&outer, 1), state->found);
            if (++state->at + 1 == state->ends.size()) state->at = 0;
            used(&state->found);
            return static_cast<double>(size);
        });
    };
}

Work add_groups(std::uint64_t groups, bool again) {
    if (!again)
        return turns(static_cast<double>(groups), [groups, keys = shuffled(groups)] {
            GroupTable table(1'024, GroupTable::own_share);
            for (const Entry& tuple : keys) table.add({tuple.key, 1, tuple.payload});
            used(&table);
        });
    Entries tuples(table_tuples);
    Stream stream(5, 6);
    for (Entry& tuple : tuples) tuple = {stream.below(groups), 1};
    return through(std::move(tuples),
                   [table = filled(groups, 1'024)](std::span<const Entry> piece) mutable {
                       for (const Entry& tuple : piece) table.add({tuple.key, 1, tuple.payload});
                       used(&table);
                   });
}

Work read_groups(std::uint64_t groups, bool result) {
    const auto table = std::make_shared<GroupTable>(filled(groups, 1'024));
    if (result)
        return turns(static_cast<double>(groups), [table] {
            ResultTotals found;
            table->for_each([&](const Group& group) {
                found += {group.count, scattered(group.key) * group.sum};
            });
            used(&found);
        });
    return turns(static_cast<double>(groups),
                 [table, message = std::vector<std::byte>(85 * sizeof(Group))]() mutable {
                     std::size_t end = 0;
                     table->for_each([&](const Group& group) {
                         std::memcpy(&message[end], &group, sizeof group);
                         end += sizeof group;
                         if (end == message.size()) end = 0;
                     });
                     used(message.data());
                 });
}

Work cache_groups(std::uint64_t table_bytes, bool again) {
    GroupTable table(std::bit_floor(table_bytes / sizeof(Group)), GroupTable::own_share);
    // Some of many groups, as come between two emptyings: neighbours would hardly ever collide.
    Entries keys;
    Stream stream(7, 8);
    while (!table.is_full()) {
        const std::uint64_t key = stream.bits() >> 40, before = table.used();
        table.place({key, 1, 1});
        if (table.used() > before) keys.push_back({key, 1});
    }
    if (again) {
        Entries tuples(table_tuples);
        for (Entry& tuple : tuples) tuple = keys[stream.below(keys.size())];
        return through(std::move(tuples),
                       [table = std::move(table)](std::span<const Entry> piece) mutable {
                           for (const Entry& tuple : piece)
                               table.place({tuple.key, 1, tuple.payload});
                           used(&table);
                       });
    }
    table.clear();
    const auto groups = static_cast<double>(keys.size());
    return turns(groups, [table = std::move(table), keys = std::move(keys)]() mutable {
        for (const Entry& tuple : keys) table.place({tuple.key, 1, tuple.payload});
        ResultTotals found;
        table.for_each([&](const Group& group) { found += {group.count, group.key}; });
        used(&found);
        table.clear();
    });
}

namespace {

constexpr double filter_error = 0.05;
std::uint64_t keys_of_filter(std::uint64_t bytes) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * 8.0 * 0.4804530139182014 /
                                      -std::log(filter_error));
}

}  // namespace

Work add_to_filter(std::uint64_t bytes) {
    return through(shuffled(table_tuples),
                   [filter = BloomFilter(keys_of_filter(bytes), filter_error)](
                       std::span<const Entry> tuples) mutable {
                       for (const Entry& tuple : tuples) filter.add(tuple.key);
                       used(&filter);
                   });
}

Work probe_filter(std::uint64_t bytes, bool hit) {
    const std::uint64_t keys = keys_of_filter(bytes);
    BloomFilter filter(keys, filter_error);
    for (std::uint64_t key = 0; key < keys; ++key) filter.add(key);
    Entries tuples(table_tuples);
    Stream stream(9, 10);
    for (Entry& tuple : tuples) tuple = {stream.below(keys) + (hit ? 0 : keys), 1};
    return through(std::move(tuples), [filter = std::move(filter)](std::span<const Entry> piece) {
        std::uint64_t found = 0;
        for (const Entry& tuple : piece) found += filter.may_have(tuple.key);
        used(&found);
    });
}

}  // namespace numatwin::native

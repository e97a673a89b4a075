// The inner loops of ERIS, as one would write them for its machines (SSE2, no later vector
// instructions), for instruction_counts.py to count their instructions under callgrind.
//
// Usage: valgrind --tool=callgrind --collect-atstart=no … instruction_counts UNITS
// Each loop runs on UNITS and on 2 * UNITS units; callgrind writes a dump named "CASE UNITS" for
// each run, so that the difference is free of what a run costs once. What a loop must have done is
// checked; the status is 1 where it has not.
#include <emmintrin.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

using Key = std::uint64_t;
constexpr std::size_t line_bytes = 64;
constexpr std::size_t group_size = 16;  // keys under way at once: more than a core's load misses

[[gnu::always_inline]] inline void prefetch(const void* address) { __builtin_prefetch(address); }

// Lines of 64 bytes, both ends aligned. memcpy and memset would choose the widest vectors of the
// machine at hand.
[[gnu::always_inline]] inline void copy_lines(std::byte* to, const std::byte* from,
                                              std::size_t lines) {
    auto* target = reinterpret_cast<__m128i*>(to);
    auto* source = reinterpret_cast<const __m128i*>(from);
    for (const __m128i* end = source + 4 * lines; source != end; source += 4, target += 4) {
        const __m128i a = _mm_load_si128(source), b = _mm_load_si128(source + 1);
        const __m128i c = _mm_load_si128(source + 2), d = _mm_load_si128(source + 3);
        _mm_store_si128(target, a);
        _mm_store_si128(target + 1, b);
        _mm_store_si128(target + 2, c);
        _mm_store_si128(target + 3, d);
    }
}

[[gnu::always_inline]] inline void clear_lines(void* at, std::size_t lines) {
    auto* target = static_cast<__m128i*>(at);
    const __m128i zero = _mm_setzero_si128();
    for (const __m128i* end = target + 4 * lines; target != end; target += 4) {
        for (int part = 0; part < 4; ++part) _mm_store_si128(target + part, zero);
    }
}

// ---- Commands -----------------------------------------------------------------------------------

struct Command {
    Key key;
    std::uint32_t value;
    std::uint16_t object;
    std::uint16_t type;
};
static_assert(sizeof(Command) == 16);

constexpr unsigned types = 4;  // lookup, upsert, scan, control

// xoshiro256** (Blackman and Vigna), as load generators use it.
class Random {
  public:
    explicit Random(std::uint64_t seed) {
        for (auto& word : state_) {  // splitmix64
            std::uint64_t z = seed += 0x9e3779b97f4a7c15;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
            z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
            word = z ^ (z >> 31);
        }
    }
    std::uint64_t next() {
        auto& s = state_;
        const std::uint64_t result = std::rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = std::rotl(s[3], 45);
        return result;
    }
    // Uniform below `bound`, by multiply and shift.
    std::uint64_t below(std::uint64_t bound) {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }

  private:
    std::uint64_t state_[4];
};

[[gnu::noinline]] void generate(Random& random, Key domain, std::span<Command> commands) {
    for (Command& command : commands) command = {random.below(domain), 1, 0, 0};
}

// ---- Prefix tree --------------------------------------------------------------------------------

struct Entry {
    Key key;
    std::uint64_t value;
};

// 256 pointers: to nodes, or on the last level to entries; null where there is no key.
struct alignas(line_bytes) Node {
    void* slot[256];
};

// Memory of one AEU: from the front of a chunk, and nodes that came back.
class Arena {
  public:
    explicit Arena(std::size_t bytes)
        : memory_(new (std::align_val_t{line_bytes}) std::byte[bytes]),
          at_(memory_),
          end_(memory_ + bytes) {}
    Arena(const Arena&) = delete;
    ~Arena() { operator delete[](memory_, std::align_val_t{line_bytes}); }

    Entry* entry() { return static_cast<Entry*>(take(sizeof(Entry))); }
    // With undefined slots.
    Node* node() {
        if (free_ != nullptr) {
            Node* node = free_;
            free_ = static_cast<Node*>(node->slot[0]);
            return node;
        }
        return static_cast<Node*>(take(sizeof(Node)));
    }
    Node* empty_node() {
        Node* made = node();
        clear_lines(made, sizeof(Node) / line_bytes);
        return made;
    }
    void give_back(Node* node) {
        node->slot[0] = free_;
        free_ = node;
    }

  private:
    void* take(std::size_t bytes) {
        std::byte* taken = at_;
        if (bytes > static_cast<std::size_t>(end_ - at_)) grow();
        at_ += bytes;
        return taken;
    }
    [[gnu::noinline, noreturn]] static void grow() {
        std::fputs("instruction_counts: a chunk is too small\n", stderr);
        std::exit(1);
    }

    std::byte *memory_, *at_, *end_;
    Node* free_ = nullptr;
};

struct Tree {
    Node* root;
    unsigned levels;
};

[[gnu::always_inline]] inline unsigned digit(Key key, unsigned shift) { return (key >> shift) & 255; }

// Where the key's last-level node hangs; makes the nodes that are missing. Entries and nodes come
// from two chunks, so that entries lie densely.
[[gnu::noinline]] Node* leaf_of(Tree& tree, Arena& nodes, Key key) {
    Node* at = tree.root;
    for (unsigned shift = 8 * (tree.levels - 1); shift > 0; shift -= 8) {
        void*& slot = at->slot[digit(key, shift)];
        if (slot == nullptr) slot = nodes.empty_node();
        at = static_cast<Node*>(slot);
    }
    return at;
}

// Inserts pairs in the order of their keys: the last-level node is looked for once per node.
[[gnu::noinline]] void bulk_load(Tree& tree, Arena& nodes, Arena& entries,
                                 std::span<const Entry> pairs) {
    Key prefix = ~Key{0};
    Node* leaf = nullptr;
    for (const Entry& pair : pairs) {
        if (pair.key >> 8 != prefix) {
            prefix = pair.key >> 8;
            leaf = leaf_of(tree, nodes, pair.key);
        }
        Entry* entry = entries.entry();
        *entry = pair;
        leaf->slot[pair.key & 255] = entry;
    }
}

// Writes the pairs below `node` in the order of their keys; returns the end of what it wrote.
Entry* flatten(const Node* node, unsigned levels, Entry* to) {
    for (const void* child : node->slot) {
        if (child == nullptr) continue;
        if (levels == 1) {
            *to++ = *static_cast<const Entry*>(child);
        } else {
            to = flatten(static_cast<const Node*>(child), levels - 1, to);
        }
    }
    return to;
}

[[gnu::noinline]] Entry* flatten(const Tree& tree, Entry* to) {
    return flatten(tree.root, tree.levels, to);
}

// Calls `found(entry, command)` for each command whose key is in the tree. A group of commands goes
// down level by level: the misses of a level overlap, each slot is fetched a level ahead.
template <typename Found>
[[gnu::always_inline]] inline void walk(const Tree& tree, std::span<const Command> batch,
                                        Found found) {
    void* at[group_size];
    for (std::size_t done = 0; done < batch.size(); done += group_size) {
        const Command* commands = &batch[done];
        const std::size_t count = std::min(group_size, batch.size() - done);
        unsigned shift = 8 * (tree.levels - 1);
        for (std::size_t i = 0; i < count; ++i) {
            at[i] = tree.root;
            prefetch(&tree.root->slot[digit(commands[i].key, shift)]);
        }
        for (; shift > 0; shift -= 8) {
            for (std::size_t i = 0; i < count; ++i) {
                if (at[i] == nullptr) continue;
                auto* node = static_cast<Node*>(at[i]);
                auto* child = static_cast<Node*>(node->slot[digit(commands[i].key, shift)]);
                at[i] = child;
                prefetch(&child->slot[digit(commands[i].key, shift - 8)]);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (at[i] == nullptr) continue;
            at[i] = static_cast<Node*>(at[i])->slot[digit(commands[i].key, 0)];
            prefetch(at[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            auto* entry = static_cast<Entry*>(at[i]);
            if (entry != nullptr && entry->key == commands[i].key) found(*entry, commands[i]);
        }
    }
}

[[gnu::noinline]] std::uint64_t lookup(const Tree& tree, std::span<const Command> batch) {
    std::uint64_t sum = 0;
    walk(tree, batch, [&](const Entry& entry, const Command&) { sum += entry.value; });
    return sum;
}

[[gnu::noinline]] void upsert(const Tree& tree, std::span<const Command> batch) {
    walk(tree, batch, [](Entry& entry, const Command& command) { entry.value = command.value; });
}

[[gnu::noinline]] void upsert_shared(const Tree& tree, std::span<const Command> batch) {
    walk(tree, batch, [](Entry& entry, const Command& command) {
        std::atomic_ref(entry.value).exchange(command.value, std::memory_order_acq_rel);
    });
}

// ---- Link transfer: keys from `boundary` on leave one tree for another --------------------------

void copy_slots(Node* to, const Node* from, unsigned first) {
    for (unsigned slot = first; slot < 256; ++slot) to->slot[slot] = from->slot[slot];
}

// Cuts the keys from `boundary` on out of the tree: a new node per level takes the slots right of
// the boundary's path. Returns the root of what was cut out.
[[gnu::noinline]] Node* unlink(Tree& tree, Arena& nodes, Key boundary) {
    Node *left = tree.root, *cut = nodes.empty_node(), *right = cut;
    for (unsigned shift = 8 * (tree.levels - 1);; shift -= 8) {
        const unsigned at = digit(boundary, shift);
        const unsigned first = shift == 0 ? at : at + 1;  // an entry is not divided
        copy_slots(right, left, first);
        for (unsigned slot = first; slot < 256; ++slot) left->slot[slot] = nullptr;
        auto* child = static_cast<Node*>(left->slot[at]);
        if (shift == 0 || child == nullptr) return cut;
        Node* below = nodes.empty_node();
        right->slot[at] = below;
        left = child;
        right = below;
    }
}

// Hangs what was cut out at `boundary` into a tree whose keys all lie below it.
[[gnu::noinline]] void link(Tree& tree, Arena& nodes, Node* right, Key boundary) {
    Node* left = tree.root;
    for (unsigned shift = 8 * (tree.levels - 1);; shift -= 8) {
        const unsigned at = digit(boundary, shift);
        copy_slots(left, right, shift == 0 ? at : at + 1);
        auto* below = static_cast<Node*>(right->slot[at]);
        nodes.give_back(right);
        if (shift == 0 || below == nullptr) return;
        if (left->slot[at] == nullptr) {
            left->slot[at] = below;
            return;
        }
        left = static_cast<Node*>(left->slot[at]);
        right = below;
    }
}

// ---- Routing ------------------------------------------------------------------------------------

// A node of the partition table's CSB+-tree; its children (or, on the last level, the identifiers of
// its AEUs) lie side by side.
struct alignas(line_bytes) TableNode {
    Key bound[7];  // child k + 1 begins at bound[k]
    const void* first;
};
static_assert(sizeof(TableNode) == line_bytes);

using AeuId = std::uint32_t;

// Equal ranges of `domain` for 8^levels AEUs, all nodes full.
struct PartitionTable {
    PartitionTable(unsigned depth, Key domain) : levels(depth), nodes(depth) {
        const std::size_t aeus = std::size_t{1} << (3 * depth);
        for (std::size_t aeu = 0; aeu < aeus; ++aeu) ids.push_back(static_cast<AeuId>(aeu));
        for (unsigned level = depth; level-- > 0;) {
            const std::size_t count = std::size_t{1} << (3 * level);
            const Key width = domain / count;
            nodes[level].resize(count);
            for (std::size_t n = 0; n < count; ++n) {
                TableNode& node = nodes[level][n];
                for (Key k = 0; k < 7; ++k) node.bound[k] = n * width + (k + 1) * (width / 8);
                node.first = level + 1 == depth ? static_cast<const void*>(&ids[8 * n])
                                                : &nodes[level + 1][8 * n];
            }
        }
    }
    const TableNode* root() const { return nodes[0].data(); }

    unsigned levels;
    std::vector<std::vector<TableNode>> nodes;
    std::vector<AeuId> ids;
};

[[gnu::always_inline]] inline std::size_t child_of(const TableNode& node, Key key) {
    std::size_t child = 0;
    for (const Key bound : node.bound) child += key >= bound;
    return child;
}

struct Outgoing {
    Command* commands;
    std::uint32_t count, capacity;
    AeuId target;
};

// An owner's pair of incoming buffers. A descriptor: 1 bit active, 32 bits offset, 31 bits writers.
struct alignas(line_bytes) Incoming {
    std::atomic<std::uint64_t> descriptor;
    std::byte* data;
    std::uint64_t capacity;
};
struct Owner {
    std::atomic<std::uint32_t> writable;
    Incoming buffer[2];
};
constexpr unsigned offset_shift = 31;
constexpr std::uint64_t active_bit = std::uint64_t{1} << 63;

// Copies an outgoing buffer into its target's incoming buffer; false if that is full.
[[gnu::noinline]] bool flush(Outgoing& out, std::span<Owner> owners) {
    Owner& owner = owners[out.target];
    const std::uint64_t lines = (out.count * sizeof(Command) + line_bytes - 1) / line_bytes;
    const std::uint64_t bytes = lines * line_bytes;
    for (;;) {
        Incoming& in = owner.buffer[owner.writable.load(std::memory_order_acquire)];
        std::uint64_t seen = in.descriptor.load(std::memory_order_acquire);
        if ((seen & active_bit) == 0) continue;  // swapped just now
        const std::uint64_t offset = (seen & ~active_bit) >> offset_shift;
        if (offset + bytes > in.capacity) return false;
        if (!in.descriptor.compare_exchange_weak(seen, seen + (bytes << offset_shift) + 1,
                                                 std::memory_order_acq_rel)) {
            continue;
        }
        copy_lines(in.data + offset, reinterpret_cast<const std::byte*>(out.commands), lines);
        in.descriptor.fetch_sub(1, std::memory_order_release);
        out.count = 0;
        return true;
    }
}

// Looks up the target of each command, a group level by level, and appends it to that target's
// outgoing buffer.
[[gnu::noinline]] void route(const PartitionTable& table, std::span<const Command> batch,
                             std::span<Outgoing> outgoing, std::span<Owner> owners) {
    const TableNode* at[group_size];
    for (std::size_t done = 0; done < batch.size(); done += group_size) {
        const Command* commands = &batch[done];
        const std::size_t count = std::min(group_size, batch.size() - done);
        for (std::size_t i = 0; i < count; ++i) at[i] = table.root();
        for (unsigned level = 1; level < table.levels; ++level) {
            for (std::size_t i = 0; i < count; ++i) {
                at[i] = static_cast<const TableNode*>(at[i]->first) +
                        child_of(*at[i], commands[i].key);
                prefetch(at[i]);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t child = child_of(*at[i], commands[i].key);
            Outgoing& out = outgoing[static_cast<const AeuId*>(at[i]->first)[child]];
            out.commands[out.count++] = commands[i];
            if (out.count == out.capacity) flush(out, owners);
        }
    }
}

// The commands of one object and type that an AEU executes together.
struct Batch {
    Command* commands;
    std::uint32_t count, capacity;
};

[[gnu::noinline]] void execute(Batch& batch) { batch.count = 0; }

// Groups the commands of an incoming buffer by object and type.
[[gnu::noinline]] void receive(std::span<const Command> incoming, std::span<Batch> batches) {
    for (const Command& command : incoming) {
        Batch& batch = batches[command.object * types + command.type];
        batch.commands[batch.count++] = command;
        if (batch.count == batch.capacity) execute(batch);
    }
}

// ---- Scan: values below `bound` -----------------------------------------------------------------

// SSE2 compares no 64-bit integers: the sign of the difference is used. Right for |value| and
// |bound| below 2^62.
[[gnu::noinline]] std::uint64_t scan_sum(std::span<const std::int64_t> column, std::int64_t bound) {
    const __m128i bounds = _mm_set1_epi64x(bound);
    __m128i sum = _mm_setzero_si128();
    const auto* at = reinterpret_cast<const __m128i*>(column.data());
    for (const __m128i* end = at + column.size() / 2; at != end; at += 4) {
        for (int part = 0; part < 4; ++part) {
            const __m128i values = _mm_load_si128(at + part);
            const __m128i less = _mm_srai_epi32(_mm_sub_epi64(values, bounds), 31);
            const __m128i mask = _mm_shuffle_epi32(less, _MM_SHUFFLE(3, 3, 1, 1));
            sum = _mm_add_epi64(sum, _mm_and_si128(values, mask));
        }
    }
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(sum));
}

[[gnu::noinline]] void scan_bitmap(std::span<const std::int64_t> column, std::int64_t bound,
                                   std::uint8_t* bitmap) {
    const __m128i bounds = _mm_set1_epi64x(bound);
    const auto* at = reinterpret_cast<const __m128i*>(column.data());
    for (const __m128i* end = at + column.size() / 2; at != end; at += 4) {
        int bits = 0;
        for (int part = 0; part < 4; ++part) {
            const __m128i less = _mm_sub_epi64(_mm_load_si128(at + part), bounds);
            bits |= _mm_movemask_pd(_mm_castsi128_pd(less)) << (2 * part);
        }
        *bitmap++ = static_cast<std::uint8_t>(bits);
    }
}

// ---- Cases --------------------------------------------------------------------------------------

void check(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "instruction_counts: %s went wrong\n", what);
    std::exit(1);
}

template <typename Loop>
void count(const std::string& name, std::size_t units, Loop loop) {
    const std::string dump = name + ' ' + std::to_string(units);
    CALLGRIND_TOGGLE_COLLECT;
    loop();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(dump.c_str());
}

std::size_t tree_bytes(std::size_t keys, unsigned levels) {
    return (keys * levels + 64) * sizeof(Node);
}

void generating(std::size_t units) {
    constexpr Key domain = 1'000'000'000;
    std::vector<Command> commands(units);
    Random random(1);
    count("generate", units, [&] { generate(random, domain, commands); });
    check(std::ranges::all_of(commands, [](const Command& c) { return c.key < domain; }), "generate");
}

void tree_operations(std::size_t units, unsigned levels) {
    Random random(2);
    std::vector<Command> commands(units);
    generate(random, Key{1} << (8 * levels), commands);
    Arena nodes(tree_bytes(units, levels)), entries(units * sizeof(Entry));
    Tree tree{nodes.empty_node(), levels};
    std::vector<Entry> pairs;
    for (const Command& command : commands) pairs.push_back({command.key, 3});
    std::ranges::sort(pairs, {}, &Entry::key);
    bulk_load(tree, nodes, entries, pairs);

    const std::string of = "." + std::to_string(levels);
    std::uint64_t sum = 0;
    count("lookup" + of, units, [&] { sum = lookup(tree, commands); });
    check(sum == 3 * units, "lookup");
    count("upsert" + of, units, [&] { upsert(tree, commands); });
    check(lookup(tree, commands) == units, "upsert");
    for (Command& command : commands) command.value = 2;
    count("upsert_shared" + of, units, [&] { upsert_shared(tree, commands); });
    check(lookup(tree, commands) == 2 * units, "upsert_shared");
}

// Boundaries at keys of the tree, so that their paths are whole; a link undoes its unlink.
void link_transfers(std::size_t units, unsigned levels) {
    Random random(3);
    std::vector<Command> commands(units);
    generate(random, Key{1} << (8 * levels), commands);
    Arena nodes(tree_bytes(units, levels)), entries(units * sizeof(Entry));
    Tree tree{nodes.empty_node(), levels};
    std::vector<Entry> pairs;
    for (const Command& command : commands) pairs.push_back({command.key, 1});
    std::ranges::sort(pairs, {}, &Entry::key);
    bulk_load(tree, nodes, entries, pairs);

    count("link." + std::to_string(levels), units, [&] {
        for (const Command& command : commands) {
            link(tree, nodes, unlink(tree, nodes, command.key), command.key);
        }
    });
    check(lookup(tree, commands) == units, "link");
}

// Dense keys, as many as fill whole nodes.
void copy_transfer(std::size_t units) {
    units *= 256;
    constexpr unsigned levels = 4;
    std::vector<Entry> pairs(units), copied(units);
    for (std::size_t k = 0; k < units; ++k) pairs[k] = {k, k};
    Arena nodes(tree_bytes(units / 256, levels)), entries(units * sizeof(Entry));
    Tree tree{nodes.empty_node(), levels};
    count("rebuild", units, [&] { bulk_load(tree, nodes, entries, pairs); });
    Entry* end = nullptr;
    count("flatten", units, [&] { end = flatten(tree, copied.data()); });
    check(end == copied.data() + units, "flatten");
    check(std::memcmp(pairs.data(), copied.data(), units * sizeof(Entry)) == 0, "rebuild");
}

void routing(std::size_t units, unsigned levels) {
    constexpr Key domain = Key{1} << 40;
    const PartitionTable table(levels, domain);
    const std::size_t aeus = table.ids.size();
    Random random(4);
    std::vector<Command> commands(units), room(aeus * (units + 1));
    generate(random, domain, commands);
    std::vector<Outgoing> outgoing(aeus);
    for (std::size_t aeu = 0; aeu < aeus; ++aeu) {  // room for all: no flush is counted
        const auto capacity = static_cast<std::uint32_t>(units + 1);
        outgoing[aeu] = {&room[aeu * capacity], 0, capacity, static_cast<AeuId>(aeu)};
    }
    count("route." + std::to_string(levels), units,
          [&] { route(table, commands, outgoing, {}); });
    std::size_t sent = 0;
    for (std::size_t aeu = 0; aeu < aeus; ++aeu) {
        sent += outgoing[aeu].count;
        for (std::uint32_t k = 0; k < outgoing[aeu].count; ++k) {
            check(outgoing[aeu].commands[k].key / (domain / aeus) == aeu, "route");
        }
    }
    check(sent == units, "route");
}

void flushing(std::size_t units, unsigned lines) {
    struct alignas(line_bytes) Line {
        Command commands[line_bytes / sizeof(Command)];
    };
    std::vector<Line> from(lines), room(units * lines);
    const auto commands = static_cast<std::uint32_t>(lines * (line_bytes / sizeof(Command)));
    Outgoing out{from[0].commands, commands, commands, 0};
    for (std::uint32_t k = 0; k < commands; ++k) out.commands[k] = {k, 1, 0, 0};
    std::vector<Owner> owners(1);
    Incoming& in = owners[0].buffer[1];
    owners[0].writable = 1;
    in.descriptor = active_bit;
    in.data = reinterpret_cast<std::byte*>(room.data());
    in.capacity = room.size() * line_bytes;
    bool fits = true;
    count("flush." + std::to_string(lines), units, [&] {
        for (std::size_t k = 0; k < units; ++k) {
            out.count = commands;
            fits &= flush(out, owners);
        }
    });
    check(fits && in.descriptor == (active_bit | (in.capacity << offset_shift)), "flush");
    check(room.back().commands[0].key == commands - line_bytes / sizeof(Command), "flush");
}

void receiving(std::size_t units) {
    constexpr std::size_t objects = 4;
    Random random(5);
    std::vector<Command> commands(units), room(objects * types * (units + 1));
    generate(random, 1'000, commands);
    for (Command& command : commands) {
        command.object = static_cast<std::uint16_t>(random.below(objects));
        command.type = static_cast<std::uint16_t>(random.below(types));
    }
    std::vector<Batch> batches(objects * types);
    for (std::size_t k = 0; k < batches.size(); ++k) {  // room for all: no execution is counted
        batches[k] = {&room[k * (units + 1)], 0, static_cast<std::uint32_t>(units + 1)};
    }
    count("receive", units, [&] { receive(commands, batches); });
    std::size_t received = 0;
    for (const Batch& batch : batches) received += batch.count;
    check(received == units, "receive");
}

void scanning(std::size_t units) {
    struct alignas(line_bytes) Line {
        std::int64_t values[8];
    };
    std::vector<Line> lines(units);
    const std::span<std::int64_t> column(lines[0].values, 8 * units);
    Random random(6);
    constexpr std::int64_t bound = 10;  // one value in a hundred
    std::uint64_t expected = 0;
    std::size_t hits = 0;
    for (std::int64_t& value : column) {
        value = static_cast<std::int64_t>(random.below(1'000));
        if (value < bound) expected += static_cast<std::uint64_t>(value), ++hits;
    }
    std::uint64_t sum = 0;
    count("scan_sum", units, [&] { sum = scan_sum(column, bound); });
    check(sum == expected, "scan_sum");
    std::vector<std::uint8_t> bitmap(units);
    count("scan_bitmap", units, [&] { scan_bitmap(column, bound, bitmap.data()); });
    for (const std::uint8_t bits : bitmap) hits -= static_cast<std::size_t>(std::popcount(bits));
    check(hits == 0, "scan_bitmap");
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t base = argc == 2 ? std::strtoul(argv[1], nullptr, 10) / group_size : 0;
    if (base == 0) {
        std::fprintf(stderr, "usage: %s UNITS (at least %zu)\n", argv[0], group_size);
        return 2;
    }
    for (const std::size_t units : {group_size * base, 2 * group_size * base}) {
        generating(units);
        for (const unsigned levels : {3U, 4U}) {
            tree_operations(units, levels);
            link_transfers(units, levels);
        }
        copy_transfer(units);
        for (const unsigned levels : {2U, 3U}) routing(units, levels);
        for (const unsigned lines : {1U, 33U}) flushing(units, lines);
        receiving(units);
        scanning(units);
    }
    return 0;
}

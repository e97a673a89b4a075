// Runs real code on several threads through all interleavings, weak memory included.
//
// What is explored is an execution's state, not its schedule: a thread's state is what its atomic
// operations have returned so far, since its code does nothing but compute between them. To know
// what a thread does next, its function is called anew and given these results, until it asks for
// one operation more; this is remembered, so that it happens once for each history. States are
// plain values, are kept, and none is visited twice.
//
// Memory is that of C++20 with release and acquire, told by views (Kang et al., A promising
// semantics for relaxed-memory concurrency, POPL 2017, without promises): each atomic keeps all
// values that it has had, in modification order; a thread has a view, how far it is with each
// atomic; a load may return any value that is not older than the view, and with acquire takes over
// the view that was released with the value. A store goes anywhere after the view, not between a
// read-modify-write and what it read. A read-modify-write passes on the view of what it read
// (release sequence). What is not shown: loads that see stores which come later in program order
// (load buffering), fences, seq_cst, and that a weak exchange may fail for nothing.
//
// Cells are plain memory. Of each, the view also tells which write and which reads of each thread
// are known to have happened before: an access that does not know them all is a data race.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace numatwin::native::interleavings {

using Value = std::uint64_t;

inline constexpr std::size_t most_atomics = 4, most_cells = 12, most_threads = 4;

enum class Kind : std::uint8_t { load, store, add, exchange, await, put, take, join, merge, done };

struct Operation {
    Kind kind = Kind::done;
    std::uint8_t place = 0;  // atomic, cell or thread
    Value value = 0;         // stored, added, wanted; of done: what the thread returns
    Value expected = 0;
    std::memory_order order = std::memory_order_relaxed;
    std::memory_order on_failure = std::memory_order_relaxed;
    bool (*until)(Value) = nullptr;
};

/// Thrown by code under test, or by the explorer: what is wrong, and how it came to be.
struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// -- what code under test calls

class Script {
  public:
    explicit Script(const std::vector<Value>& results) : results_(results) { current = this; }
    ~Script() { current = nullptr; }

    struct Suspended {
        Operation operation;
    };
    static Value perform(const Operation& operation) {
        Script& script = *current;
        if (script.next_ == script.results_.size()) {
            throw Suspended{operation};
        }
        return script.results_[script.next_++];
    }
    static std::uint8_t new_atomic(Value initial) {
        current->initial.push_back(initial);
        return static_cast<std::uint8_t>(current->initial.size() - 1);
    }

    std::vector<Value> initial;  // of the atomics, as they are made

  private:
    static inline thread_local Script* current = nullptr;
    const std::vector<Value>& results_;
    std::size_t next_ = 0;
};

/// Stands for std::atomic. All threads make theirs in the same order.
template <class T>
class Atomic {
  public:
    Atomic(T initial) : place_(Script::new_atomic(initial)) {}
    T load(std::memory_order order) const {
        return static_cast<T>(
            Script::perform({.kind = Kind::load, .place = place_, .order = order}));
    }
    void store(T value, std::memory_order order) {
        Script::perform({.kind = Kind::store, .place = place_, .value = value, .order = order});
    }
    T fetch_add(T value, std::memory_order order) {
        return static_cast<T>(
            Script::perform({.kind = Kind::add, .place = place_, .value = value, .order = order}));
    }
    T fetch_sub(T value, std::memory_order order) {
        return fetch_add(static_cast<T>(T{0} - value), order);
    }
    bool compare_exchange_weak(T& expected, T value, std::memory_order order,
                               std::memory_order on_failure) {
        const T found = static_cast<T>(Script::perform({.kind = Kind::exchange,
                                                        .place = place_,
                                                        .value = value,
                                                        .expected = expected,
                                                        .order = order,
                                                        .on_failure = on_failure}));
        const bool exchanged = found == expected;
        expected = found;
        return exchanged;
    }
    /// Waits for a value of which `Until{}(value)` is true.
    template <class Until>
    void await(Until) const {
        Script::perform({.kind = Kind::await,
                         .place = place_,
                         .order = std::memory_order_acquire,
                         .until = [](Value value) { return Until{}(static_cast<T>(value)); }});
    }

  private:
    std::uint8_t place_;
};

inline void put(std::size_t cell, Value value) {
    Script::perform({.kind = Kind::put, .place = static_cast<std::uint8_t>(cell), .value = value});
}
/// Reads a cell for the last time before it is written again.
inline Value take(std::size_t cell) {
    return Script::perform({.kind = Kind::take, .place = static_cast<std::uint8_t>(cell)});
}
/// Waits for a thread's end; what it returned.
inline Value join(std::size_t thread) {
    return Script::perform({.kind = Kind::join, .place = static_cast<std::uint8_t>(thread)});
}
/// What the thread does from here on depends on `state` only, not on how it got here.
inline void merge(Value state) {
    Script::perform({.kind = Kind::merge, .value = state});
}

// -- the explorer

class Explorer {
  public:
    using Body = std::function<Value()>;
    /// Changes an operation before it is done, to see whether that is noticed.
    using Change = std::function<void(Operation&)>;

    explicit Explorer(std::vector<Body> threads, Change change = {})
        : bodies_(std::move(threads)), change_(std::move(change)) {}

    /// Visits all states. Throws Violation, with the steps that led to it.
    void run() {
        try {
            State start;
            for (std::size_t t = 0; t < bodies_.size(); ++t) {
                start.threads.push_back({node(t, none, 0), {}});
            }
            for (const Value initial : initial_) {
                start.atomics.push_back({Message{initial, {}, false}});
            }
            visit(std::move(start));
        } catch (const Violation& violation) {
            throw Violation(violation.what() + steps());
        }
    }
    std::size_t states() const { return seen_.size(); }
    /// What the threads returned, over all executions.
    const std::map<std::vector<Value>, std::size_t>& outcomes() const { return outcomes_; }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    // How far a thread is with each atomic, each cell's writes, each cell's reads by each thread.
    static constexpr std::size_t reads_of_cell = most_threads;
    static constexpr std::size_t places = most_atomics + most_cells * (1 + reads_of_cell);
    using View = std::array<std::uint8_t, places>;
    static std::size_t writes_to(std::size_t cell) { return most_atomics + cell; }
    static std::size_t reads_of(std::size_t cell, std::size_t thread) {
        return most_atomics + most_cells + cell * reads_of_cell + thread;
    }
    static void join_views(View& into, const View& from) {
        for (std::size_t i = 0; i < places; ++i) {
            into[i] = std::max(into[i], from[i]);
        }
    }

    struct Message {
        Value value;
        View view;
        bool follows;  // a read-modify-write of the one before
    };
    struct Thread {
        std::uint32_t node;
        View view;
    };
    struct State {
        std::vector<Thread> threads;
        std::vector<std::vector<Message>> atomics;
        std::array<Value, most_cells> cells{};
        View latest{};  // of cells: how many writes and reads there have been
    };
    // A thread's history, and what it does next.
    struct Node {
        std::uint32_t before;
        Value result;
        Operation next;
        std::map<Value, std::uint32_t> after;
    };

    static bool acquires(std::memory_order order) {
        return order == std::memory_order_acquire || order == std::memory_order_acq_rel;
    }
    static bool releases(std::memory_order order) {
        return order == std::memory_order_release || order == std::memory_order_acq_rel;
    }

    std::uint32_t node(std::size_t thread, std::uint32_t before, Value result) {
        std::vector<Value> results;
        if (before != none) {
            if (const auto known = nodes_[before].after.find(result);
                known != nodes_[before].after.end()) {
                return known->second;
            }
            results.push_back(result);
            for (std::uint32_t at = before; nodes_[at].before != none; at = nodes_[at].before) {
                results.push_back(nodes_[at].result);
            }
            std::reverse(results.begin(), results.end());
        }
        const Operation next = next_of(thread, results);
        nodes_.push_back({before, result, next, {}});
        auto made = static_cast<std::uint32_t>(nodes_.size() - 1);
        if (next.kind == Kind::merge) {
            const auto [same, is_new] = merged_.try_emplace({thread, next.value}, none);
            if (is_new) {
                same->second = node(thread, made, 0);
            }
            made = same->second;
        }
        if (before != none) {
            nodes_[before].after.emplace(result, made);
        }
        return made;
    }

    Operation next_of(std::size_t thread, const std::vector<Value>& results) {
        Operation next;
        Script script(results);
        try {
            next.value = bodies_[thread]();
        } catch (const Script::Suspended& suspended) {
            next = suspended.operation;
            if (change_) {
                change_(next);
            }
        }
        if (script.initial.size() > initial_.size()) {
            initial_ = script.initial;
        }
        return next;
    }

    std::string steps() const {
        static constexpr const char* names[] = {"load",  "store", "add", "exchange",
                                                "await", "put",   "get", "join"};
        std::ostringstream text;
        for (const Step& step : path_) {
            text << "\n  thread " << step.thread << ": "
                 << names[static_cast<std::size_t>(step.operation.kind)] << " of "
                 << int{step.operation.place} << std::hex << " (" << step.operation.value << ") -> "
                 << step.result << std::dec;
        }
        return text.str();
    }

    // -- steps

    const Operation& next(const State& state, std::size_t t) const {
        return nodes_[state.threads[t].node].next;
    }
    void proceed(State& state, std::size_t t, Value result) {
        path_.push_back({t, next(state, t), result});
        state.threads[t].node = node(t, state.threads[t].node, result);
    }

    // Plain accesses and joins happen as soon as they can: nothing depends on when. A race is seen
    // whichever of its two accesses comes second.
    void run_ahead(State& state) {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t t = 0; t < state.threads.size(); ++t) {
                const Operation operation = next(state, t);
                View& view = state.threads[t].view;
                if (operation.kind == Kind::put || operation.kind == Kind::take) {
                    access(state, t, operation);
                    moved = true;
                } else if (operation.kind == Kind::join &&
                           next(state, operation.place).kind == Kind::done) {
                    join_views(view, state.threads[operation.place].view);
                    proceed(state, t, next(state, operation.place).value);
                    moved = true;
                }
            }
        }
    }

    void access(State& state, std::size_t t, const Operation& operation) {
        const std::size_t cell = operation.place, writes = writes_to(cell);
        View& view = state.threads[t].view;
        bool races = view[writes] != state.latest[writes];
        if (operation.kind == Kind::put) {
            for (std::size_t u = 0; u < state.threads.size(); ++u) {
                races |= view[reads_of(cell, u)] != state.latest[reads_of(cell, u)];
            }
            view[writes] = ++state.latest[writes];
        } else {
            const std::size_t reads = reads_of(cell, t);
            view[reads] = ++state.latest[reads];
        }
        const Value result = std::exchange(state.cells[cell], operation.value);
        if (races) {
            path_.push_back({t, operation, result});
            throw Violation("data race");
        }
        proceed(state, t, result);
    }

    void visit(State state) {
        const std::size_t depth = path_.size();
        run_ahead(state);
        if (seen_.insert(key_of(state)).second) {
            bool moved = false, all_done = true;
            for (std::size_t t = 0; t < state.threads.size(); ++t) {
                const Operation operation = next(state, t);
                all_done &= operation.kind == Kind::done;
                if (operation.kind == Kind::store) {
                    moved |= visit_stores(state, t, operation);
                } else if (operation.kind <= Kind::await) {
                    moved |= visit_reads(state, t, operation);
                }
            }
            if (all_done) {
                std::vector<Value> outcome;
                for (std::size_t t = 0; t < state.threads.size(); ++t) {
                    outcome.push_back(next(state, t).value);
                }
                ++outcomes_[outcome];
            } else if (!moved) {
                throw Violation("stuck");
            }
        }
        path_.resize(depth);
    }

    bool visit_stores(const State& state, std::size_t t, const Operation& operation) {
        const std::size_t at = operation.place, size = state.atomics[at].size();
        for (std::size_t before = state.threads[t].view[at]; before < size; ++before) {
            if (before + 1 == size || !state.atomics[at][before + 1].follows) {
                State after = state;
                insert(after, t, operation, before, operation.value, false);
                step(std::move(after), t, 0);
            }
        }
        return true;
    }

    bool visit_reads(const State& state, std::size_t t, const Operation& operation) {
        const std::size_t at = operation.place, size = state.atomics[at].size();
        bool moved = false;
        for (std::size_t read = state.threads[t].view[at]; read < size; ++read) {
            const Value found = state.atomics[at][read].value;
            const bool adds = operation.kind == Kind::add;
            const bool exchanges = operation.kind == Kind::exchange && found == operation.expected;
            if ((operation.kind == Kind::await && !operation.until(found)) ||
                ((adds || exchanges) && read + 1 < size && state.atomics[at][read + 1].follows)) {
                continue;
            }
            State after = state;
            View& view = after.threads[t].view;
            const bool fails = operation.kind == Kind::exchange && !exchanges;
            view[at] = static_cast<std::uint8_t>(read);
            if (acquires(fails ? operation.on_failure : operation.order)) {
                join_views(view, state.atomics[at][read].view);
            }
            if (adds || exchanges) {
                insert(after, t, operation, read, adds ? found + operation.value : operation.value,
                       true);
            }
            step(std::move(after), t, found);
            moved = true;
        }
        return moved;
    }

    // A value comes after number `before`; the later ones move on by one, in all views.
    void insert(State& state, std::size_t t, const Operation& operation, std::size_t before,
                Value value, bool follows) {
        const std::size_t at = operation.place;
        const auto moves_on = [&](View& view) { view[at] += view[at] > before; };
        for (Thread& thread : state.threads) {
            moves_on(thread.view);
        }
        for (std::vector<Message>& messages : state.atomics) {
            for (Message& message : messages) {
                moves_on(message.view);
            }
        }
        View& view = state.threads[t].view;
        view[at] = static_cast<std::uint8_t>(before + 1);
        Message message{value, {}, follows};
        message.view[at] = view[at];
        if (releases(operation.order)) {
            message.view = view;
        }
        if (follows) {
            join_views(message.view, state.atomics[at][before].view);
        }
        state.atomics[at].insert(
            state.atomics[at].begin() + static_cast<std::ptrdiff_t>(before) + 1, message);
    }

    void step(State after, std::size_t t, Value result) {
        const std::size_t depth = path_.size();
        proceed(after, t, result);
        visit(std::move(after));
        path_.resize(depth);
    }

    // -- which states are the same

    using Key = std::pair<std::uint64_t, std::uint64_t>;
    struct KeyHash {
        std::size_t operator()(const Key& key) const { return key.first; }
    };

    // Without what no thread can tell: values that all are past, and how many accesses to a cell
    // there have been. 128 bits, so that two states are not taken for one.
    Key key_of(const State& state) const {
        Key key{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
        const auto mix = [&key](std::uint64_t value) {
            key.first = (key.first ^ value) * 0xff51afd7ed558ccd;
            key.first ^= key.first >> 32;
            key.second = (key.second + value) * 0xc4ceb9fe1a85ec53 + key.first;
            key.second ^= key.second >> 29;
        };
        View past{};
        for (std::size_t at = 0; at < state.atomics.size(); ++at) {
            past[at] = 0xff;
            for (std::size_t t = 0; t < state.threads.size(); ++t) {
                if (next(state, t).kind != Kind::done) {
                    past[at] = std::min(past[at], state.threads[t].view[at]);
                }
            }
        }
        const auto mix_view = [&](const View& view) {
            for (std::size_t at = 0; at < state.atomics.size(); ++at) {
                mix(std::max(view[at], past[at]) - past[at]);
            }
            std::uint64_t known = 0;
            for (std::size_t place = most_atomics; place < places; ++place) {
                known = known << 1 | (view[place] == state.latest[place]);
            }
            mix(known);
        };
        for (const Thread& thread : state.threads) {
            mix(thread.node);
            mix_view(thread.view);
        }
        for (std::size_t at = 0; at < state.atomics.size(); ++at) {
            const std::vector<Message>& messages = state.atomics[at];
            for (std::size_t i = past[at]; i < messages.size(); ++i) {
                mix(messages[i].value);
                mix(messages[i].follows);
                mix_view(messages[i].view);
            }
            mix(~std::uint64_t{at});
        }
        for (const Value cell : state.cells) {
            mix(cell);
        }
        return key;
    }

    std::vector<Body> bodies_;
    Change change_;
    std::vector<Value> initial_;
    std::vector<Node> nodes_;
    std::map<std::pair<std::size_t, Value>, std::uint32_t> merged_;
    std::unordered_set<Key, KeyHash> seen_;
    std::map<std::vector<Value>, std::size_t> outcomes_;
    struct Step {
        std::size_t thread;
        Operation operation;
        Value result;
    };
    std::vector<Step> path_;
};

}  // namespace numatwin::native::interleavings

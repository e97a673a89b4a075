// A worker's clients: which commands they make, and when.
//
// Closed without thinking: as many as the worker lets them. Closed with thinking: a batch; when all
// its answers are there, they think for an exponential time, and make the next. Open: commands
// arrive one by one, with exponential times in between, whether earlier ones are answered or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "systems/eris/random.hpp"
#include "systems/eris/world.hpp"

namespace numatwin::native {

/// Commands of one operation that were drawn together; those before `at` have been sent.
struct Drawn {
    std::uint32_t operation = 0;
    std::size_t count = 0, at = 0;
    std::uint64_t since_ns = 0;       // when the first of them was made
    std::vector<std::uint64_t> keys;  // none of scans

    std::size_t left() const noexcept { return count - at; }
};

class CommandMaker {
  public:
    /// `setup`: the world's, or the worker's copy of it.
    CommandMaker(World& world, const EngineSetup& setup, std::uint32_t worker);

    void set_phase(std::shared_ptr<const ClientPhase> phase) { phase_ = std::move(phase); }
    /// How many commands may be made in a round that begins now.
    std::size_t allowed(double now_ns);
    /// Draws at most so many, where none drawn before are left. Returns whether there are some.
    bool draw(double now_ns, std::size_t most);
    /// The first that are left, or null; their operation is `drawn->operation`.
    Drawn* front() noexcept { return at_ < used_ ? &drawn_[at_] : nullptr; }
    void pop() noexcept { ++at_; }
    /// When the next command arrives or thinking ends.
    double next_ns() const noexcept;

    Random& random() noexcept { return random_; }
    /// A range of values at random that lets through the operation's part of all.
    Scan scan(const OperationSetup& operation) noexcept;

  private:
    void add(std::uint32_t operation, std::size_t count, double since_ns);
    void mix(std::size_t count, double since_ns);

    const Control& control_;
    const EngineSetup& setup_;
    std::atomic<std::int64_t>& outstanding_;
    std::shared_ptr<const ClientPhase> phase_;
    Random random_;
    bool first_round_ = true, waiting_ = false;
    double think_until_ns_ = 0, next_arrival_ns_ = -1;
    std::vector<Drawn> drawn_;  // used again, with its keys' room
    std::size_t at_ = 0, used_ = 0;
    std::vector<std::size_t> of_operation_;
};

}  // namespace numatwin::native

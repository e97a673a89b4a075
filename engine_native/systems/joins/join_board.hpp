// What the nodes of a run share in addition to the network: the progress of each, numbers of tuples
// by partition, and figures. Nothing of it is used while an operator runs.
//
// One mapping: of this process and its children, or of a file. Each field has one writer, which
// publishes it by its step; others only read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "fabric/shared_board.hpp"
#include "systems/joins/join_setup.hpp"
#include "systems/joins/tuples.hpp"

namespace numatwin::native {

constexpr std::size_t phases_max = 3;

// Of a node in a round.
struct NodeFigures {
    std::int64_t began_ns, ended_ns;
    std::array<std::int64_t, phases_max> phase_ns;
    std::array<std::int64_t, phases_max> cpu_ns;  // on a processor, of each phase
    ResultTotals found;
    std::uint64_t rows;        // of the result
    std::uint64_t sent_bytes;  // to other nodes
};

class JoinBoard {
  public:
    // On memory of its own, or on the file `descriptor` (of at least bytes()).
    explicit JoinBoard(const JoinSetup& setup, int descriptor = -1);
    static std::uint64_t bytes(const JoinSetup& setup);

    // Waits until all nodes have come to this; looks at the network meanwhile. Throws
    // std::runtime_error where one has failed.
    void meet(std::uint32_t node, Fabric& fabric);
    // Until `done`, as above.
    void wait(Fabric& fabric, const std::function<bool()>& done) const;

    Contact& contact(std::uint32_t node) const { return slots_[node].contact; }
    // By partition, of a node's inner (0) or outer (1) table.
    std::span<std::uint64_t> counts(std::uint32_t node, std::uint32_t table) const {
        const std::uint64_t partitions = setup_.partitions;
        return {counts_ + (std::uint64_t{node} * 2 + table) * partitions, partitions};
    }
    NodeFigures& figures(std::uint32_t round, std::uint32_t node) const {
        return figures_[std::size_t{round} * setup_.nodes + node];
    }
    ResultTotals& expected(std::uint32_t node) const { return slots_[node].expected; }

    void add_rows(std::span<const ResultRow> rows);
    std::span<const ResultRow> rows() const { return {rows_, head_->rows.load()}; }

    void fail(std::string_view text) { head_->failure.tell(text); }
    std::string failure() const { return head_->failure.text(); }
    // All of it, by the sums of each round. Throws std::runtime_error.
    void check() const;

  private:
    struct alignas(64) Head {
        FirstFailure failure;
        alignas(64) std::atomic<std::uint64_t> rows{0};
    };
    struct alignas(64) Slot {
        std::atomic<std::uint32_t> step{0};  // how often it has met the others
        ResultTotals expected;
        Contact contact;
    };

    JoinSetup setup_;
    SharedMemory memory_;
    Head* head_;
    Slot* slots_;
    NodeFigures* figures_;
    std::uint64_t* counts_;
    ResultRow* rows_;
};

// A node of a run from its tables to its last round; all nodes as threads, and as processes.

// A failure is noted on the board.
void run_node(const JoinSetup& setup, JoinBoard& board, std::uint32_t node,
              Fabric& fabric) noexcept;

// Each node is a thread of this process, over plain memory. Throws std::runtime_error where the
// run failed, or a tuple was lost or taken twice.
void run_as_threads(const JoinSetup& setup, JoinBoard& board);

// Each node is a child of this process, over UCX. Throws as above; no child is left.
void run_as_processes(const JoinSetup& setup, JoinBoard& board);

}  // namespace numatwin::native

#include "systems/commits/roles.hpp"

#include <chrono>
#include <new>
#include <string>
#include <thread>

#include "memory/mapping.hpp"
#include "systems/commits/one_sided_client.hpp"
#include "systems/commits/one_sided_node.hpp"
#include "systems/commits/two_phase_client.hpp"
#include "systems/commits/two_phase_node.hpp"

namespace numatwin::native {
namespace {

using std::chrono::milliseconds;

void run_client(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
                const KeptConnections* kept) {
    const auto client = make_client(setup, board, role, fabric);
    board.publish_contact(role, fabric.contact());
    client->connect();
    board.role(role).state.store(RoleState::connected, std::memory_order_release);
    while (board.phase() == Phase::starting) {
        fabric.progress();  // servers may connect meanwhile
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    if (kept != nullptr) kept->keep_own();
    client->run();
}

void run_node(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric) {
    const auto node = make_node(setup, board, role - setup.clients, fabric);
    node->load();
    board.publish_contact(role, fabric.contact());
    node->serve();
}

}  // namespace

std::unique_ptr<CommitClient> make_client(const RunSetup& setup, Board& board, std::uint32_t client,
                                          Fabric& fabric) {
    if (setup.one_sided) return std::make_unique<OneSidedClient>(setup, board, client, fabric);
    return std::make_unique<TwoPhaseClient>(setup, board, client, fabric);
}

std::unique_ptr<CommitNode> make_node(const RunSetup& setup, Board& board, std::uint32_t node,
                                      Fabric& fabric) {
    if (setup.one_sided) return std::make_unique<OneSidedNode>(setup, board, node, fabric);
    return std::make_unique<TwoPhaseNode>(setup, board, node, fabric);
}

void run_role(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
              const KeptConnections* kept) noexcept {
    if (setup.crowded) fabric.spins = 1;
    try {
        if (role < setup.clients)
            run_client(setup, board, role, fabric, kept);
        else
            run_node(setup, board, role, fabric);
        board.role(role).state.store(RoleState::done, std::memory_order_release);
    } catch (const CommitClient::Left&) {
        board.role(role).state.store(RoleState::done, std::memory_order_release);
    } catch (const OutOfMemory& failure) {
        board.fail(role, failure.what());
    } catch (const std::bad_alloc&) {
        board.fail(role, role < setup.clients ? "no memory left for a client"
                                              : "no memory left for a server and its records");
    } catch (const std::exception& failure) {
        // Who sees a connection break is not who broke it: whoever reaps that one tells first.
        if (board.phase() == Phase::running) std::this_thread::sleep_for(milliseconds(300));
        board.fail(role, failure.what());
    }
}

}  // namespace numatwin::native

#include "systems/commits/commit_node.hpp"

#include <stdexcept>

namespace numatwin::native {

void CommitNode::serve() {
    greet();
    std::uint32_t idle = 0;
    while (board_.phase() != Phase::finished) {
        bool worked = fabric_.progress();
        while (fabric_.receive(message_)) {
            handle(message_);
            worked = true;
        }
        auto& state = board_.role(role_).state;
        if (state.load(std::memory_order_relaxed) == RoleState::ready && connected())
            state.store(RoleState::connected, std::memory_order_release);
        tick();
        if (worked) {
            idle = 0;
        } else if (++idle > fabric_.spins) {
            idle = 0;
            fabric_.sleep(std::chrono::milliseconds(busy() ? 1 : 20));
        }
    }
}

void CommitNode::send(std::uint32_t role, std::span<const std::byte> message) {
    if (peers_.empty()) peers_.assign(setup_.roles(), unknown);
    if (peers_[role] == lost) return;
    try {
        if (peers_[role] == unknown) peers_[role] = fabric_.connect(board_.contact(role));
        fabric_.send(peers_[role], message);
    } catch (const std::runtime_error&) {
        if (role >= setup_.clients) throw;
        peers_[role] = lost;
    }
}

int CommitNode::storage_index() const {
    for (std::size_t server = 0; server < setup_.storage.size(); ++server)
        if (is(setup_.storage[server])) return static_cast<int>(server);
    return -1;
}

}  // namespace numatwin::native

#include "systems/commits/two_phase_client.hpp"

#include <algorithm>

namespace numatwin::native {

void TwoPhaseClient::connect() {
    for (std::uint32_t node = 0; node < setup_.nodes; ++node) {
        peers_.push_back(connect_to(setup_.node_role(node)));
        fabric_.send(peers_.back(), message_.start(head(TwoPhase::hello)).bytes());
    }
    // Each answers over a connection of its own.
    for (std::uint32_t node = 0; node < setup_.nodes; ++node) await(TwoPhase::hello_back);
}

TwoPhaseHead TwoPhaseClient::head(TwoPhase::Type type) const {
    TwoPhaseHead made;
    made.type = type;
    made.from = made.client = client_;
    made.transaction = transaction_;
    made.rid = snapshot_;
    return made;
}

void TwoPhaseClient::post(std::uint32_t role, const TwoPhaseMessage& message) {
    TwoPhaseHead sent;
    std::memcpy(&sent, message.bytes().data(), sizeof sent);
    counters().messages[static_cast<std::size_t>(sent.type)].add();
    fabric_.send(peers_[role - setup_.clients], message.bytes());
}

TwoPhaseView TwoPhaseClient::await(TwoPhase::Type type) {
    for (std::uint32_t spun = 0;;) {
        if (!fabric_.receive(answer_)) {
            if (++spun <= fabric_.spins) continue;
            spun = 0;
            if (board_.phase() != Phase::starting) check_phase();
            may_die_here();
            fabric_.sleep(std::chrono::milliseconds(5));
            continue;
        }
        const TwoPhaseView found(answer_);
        if (found.head().type == type && found.head().transaction == transaction_) return found;
    }
}

std::int64_t TwoPhaseClient::fetch_snapshot() {
    post(setup_.timestamp_role(), message_.start(head(TwoPhase::snapshot_request)));
    return await(TwoPhase::snapshot).head().cid;
}

Cause TwoPhaseClient::transact() {
    const auto& keys = draw_.reads();
    seen_.assign(keys.size(), -1);
    stock_.assign(keys.size(), 0);
    for (std::uint32_t k = 0; k < keys.size(); ++k) {
        auto read = head(TwoPhase::read);
        read.slot = k;
        read.updates = 1;
        post(setup_.storage_role(setup_.server_of(keys[k])), message_.start(read).add_key(keys[k]));
    }
    for (std::size_t k = 0; k < keys.size(); ++k) {
        const TwoPhaseView record = await(TwoPhase::record);
        seen_[record.head().slot] = record.head().cid;
        if (record.rest().size() >= sizeof(std::int64_t))
            std::memcpy(&stock_[record.head().slot], record.rest().data(), sizeof(std::int64_t));
    }
    for (std::size_t k = 0; k < keys.size(); ++k) log(RowKind::read, keys[k], seen_[k]);
    if (*std::min_element(seen_.begin(), seen_.end()) < 0) return cause_snapshot;
    slow_down();

    // One of the managers in turn; what is new in each record goes along.
    const auto managers = static_cast<std::int64_t>(setup_.managers.size());
    const auto turn = static_cast<std::size_t>((client_ + transaction_) % managers);
    auto request = head(TwoPhase::commit_request);
    request.updates = setup_.updates;
    request.inserts = setup_.inserts;
    message_.start(request);
    for (std::size_t k = 0; k < writes(); ++k) message_.add_key(written_key(k));
    payload_.assign(std::max(setup_.record_bytes, setup_.changed_bytes), std::byte{0});
    for (std::size_t k = 0; k < writes(); ++k) {
        const bool update = k < setup_.updates;
        const std::int64_t first = update ? stock_[k] - 1 : written_key(k);
        std::memcpy(payload_.data(), &first, sizeof first);
        message_.add(payload_.data(), update ? setup_.changed_bytes : setup_.record_bytes);
    }
    may_die_here();
    post(setup_.node_role(setup_.managers[turn]), message_);  // (1)
    const TwoPhaseHead outcome = await(TwoPhase::outcome).head();
    if (outcome.vote != granted) return static_cast<Cause>(outcome.vote);
    cid_ = outcome.cid;
    counters().updates.add(setup_.updates);
    return granted;
}

}  // namespace numatwin::native

#include "systems/commits/two_phase.hpp"

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
    may_die_here(at_commit);
    post(setup_.node_role(setup_.managers[turn]), message_);  // (1)
    const TwoPhaseHead outcome = await(TwoPhase::outcome).head();
    if (outcome.vote != granted) return static_cast<Cause>(outcome.vote);
    cid_ = outcome.cid;
    counters().updates.add(setup_.updates);
    return granted;
}

// In huge pages: ten gigabytes in small ones take a minute of page faults.
void TwoPhaseNode::load() {
    if (storage_index() < 0) return;
    records_.emplace(setup_.blocks() * setup_.block_bytes(), Placement::anywhere(), true);
}

// Managers greet whom they will talk to.
void TwoPhaseNode::greet() {
    if (std::none_of(setup_.managers.begin(), setup_.managers.end(),
                     [this](std::uint32_t node) { return is(node); }))
        return;
    TwoPhaseHead hello;
    hello.type = TwoPhase::hello;
    hello.from = role_;
    for (std::uint32_t node = 0; node < setup_.nodes; ++node) {
        if (is(node)) continue;
        ++greeted_;
        send(setup_.node_role(node), message_.start(hello).bytes());
    }
}

// A message to itself is handled after the one at hand; it is not counted, as it takes no network.
void TwoPhaseNode::post(std::uint32_t role, const TwoPhaseMessage& message) {
    const auto bytes = message.bytes();
    if (role == role_) {
        own_.emplace_back(bytes.begin(), bytes.end());
        return;
    }
    TwoPhaseHead head;
    std::memcpy(&head, bytes.data(), sizeof head);
    auto& counters = board_.counters(role_);
    counters.messages[static_cast<std::size_t>(head.type)].add();
    counters.bytes.add(bytes.size());
    send(role, bytes);
}

void TwoPhaseNode::handle(std::span<const std::byte> message) {
    const std::int64_t began_ns = board_.now_ns();
    deliver(message);
    while (!own_.empty()) {
        const auto next = std::move(own_.front());
        own_.pop_front();
        deliver(next);
    }
    board_.counters(role_).busy_ns.add(static_cast<std::uint64_t>(board_.now_ns() - began_ns));
}

void TwoPhaseNode::deliver(std::span<const std::byte> message) {
    const TwoPhaseView view(message);
    const TwoPhaseHead& head = view.head();
    switch (head.type) {
        case TwoPhase::hello:
            return send(head.from, message_.start(answer_to(head, TwoPhase::hello_back)).bytes());
        case TwoPhase::hello_back:
            --greeted_;
            return;
        case TwoPhase::snapshot_request:
        case TwoPhase::timestamp_request:
        case TwoPhase::finished:
            return serve_timestamps(head);
        case TwoPhase::read:
            return read(view);
        case TwoPhase::prepare:
            return prepare(view);
        case TwoPhase::install:
            return install(view);
        case TwoPhase::rollback:
            return roll_back(view);
        case TwoPhase::commit_request:
            return manage(message);
        case TwoPhase::timestamp:
        case TwoPhase::vote:
        case TwoPhase::installed:
            return answered(head);
        default:
            return;
    }
}

TwoPhaseHead TwoPhaseNode::answer_to(const TwoPhaseHead& head, TwoPhase::Type type) const {
    TwoPhaseHead back = head;
    back.type = type;
    back.from = role_;
    back.updates = back.inserts = 0;
    return back;
}

void TwoPhaseNode::serve_timestamps(const TwoPhaseHead& head) {
    if (head.type == TwoPhase::finished) return counter_.finish(head.cid);
    const bool next = head.type == TwoPhase::timestamp_request;
    auto back = answer_to(head, next ? TwoPhase::timestamp : TwoPhase::snapshot);
    back.cid = next ? counter_.next() : counter_.highest();
    post(head.from, message_.start(back));
}

// Resource manager.

RecordBlock TwoPhaseNode::record(std::int64_t key) {
    return {records_->begin() + setup_.block_of(key) * setup_.block_bytes(), setup_.versions,
            setup_.record_bytes};
}

void TwoPhaseNode::read(const TwoPhaseView& view) {
    const RecordBlock found = record(view.key(0));
    const int at = found.visible(view.head().rid);
    auto back = answer_to(view.head(), TwoPhase::record);
    back.cid = at < 0 ? -1 : found.cid(static_cast<std::uint32_t>(at));
    message_.start(back);
    if (at >= 0) {
        const auto payload = found.payload(static_cast<std::uint32_t>(at));
        message_.add(payload.data(), payload.size());
    }
    post(view.head().from, message_);
}

// All records of this RM, or none.
std::int64_t TwoPhaseNode::vote_on(const TwoPhaseView& view) {
    const std::uint32_t updates = view.head().updates;
    if (setup_.sabotage != Sabotage::no_validation)
        for (std::uint32_t k = 0; k < updates; ++k) {
            const RecordBlock found = record(view.key(k));
            if (LockWord::is_locked(found.word())) return cause_locked;
            if (found.cid(0) > view.head().rid) return cause_conflict;
        }
    for (std::uint32_t k = 0; k < updates; ++k) {
        RecordBlock found = record(view.key(k));
        found.set_word(found.word() | LockWord::lock_bit);
    }
    return granted;
}

void TwoPhaseNode::prepare(const TwoPhaseView& view) {
    auto back = answer_to(view.head(), TwoPhase::vote);
    back.vote = vote_on(view);
    back.slot = static_cast<std::uint32_t>(storage_index());
    post(view.head().from, message_.start(back));
}

void TwoPhaseNode::install(const TwoPhaseView& view) {
    const TwoPhaseHead& head = view.head();
    const std::byte* payload = view.rest().data();
    for (std::uint32_t k = 0; k < view.keys(); ++k) {
        RecordBlock stored = record(view.key(k));
        const bool update = k < head.updates;
        const std::uint32_t bytes = update ? setup_.changed_bytes : setup_.record_bytes;
        if (update) stored.shift();
        std::memcpy(stored.payload(0).data(), payload, bytes);
        stored.set_word(LockWord::unlocked(head.cid));
        payload += bytes;
        log(RowKind::install, head.client, head.transaction, view.key(k), head.cid);
    }
    post(head.from, message_.start(answer_to(head, TwoPhase::installed)));
}

void TwoPhaseNode::roll_back(const TwoPhaseView& view) {
    for (std::uint32_t k = 0; k < view.keys(); ++k) {
        RecordBlock stored = record(view.key(k));
        stored.set_word(stored.word() & ~LockWord::lock_bit);
    }
}

// Transaction manager.

TwoPhaseHead TwoPhaseNode::head_for(const Managed& managed, TwoPhase::Type type) const {
    auto made = answer_to(TwoPhaseView(managed.request).head(), type);
    made.cid = managed.cid;
    made.vote = managed.vote;
    return made;
}

void TwoPhaseNode::manage(std::span<const std::byte> message) {
    const TwoPhaseView view(message);
    Managed& managed = managed_[id_of(view.head())];
    managed.request.assign(message.begin(), message.end());
    managed.at.resize(setup_.storage.size());
    managed.votes.assign(setup_.storage.size(), cause_snapshot);
    for (std::uint32_t k = 0; k < view.keys(); ++k)
        managed.at[setup_.server_of(view.key(k))].push_back(k);
    managed.left = 1;
    post(setup_.timestamp_role(),
         message_.start(head_for(managed, TwoPhase::timestamp_request)));  // (2)
    for (std::size_t server = 0; server < setup_.storage.size(); ++server) {
        if (!takes_part(managed, server)) continue;
        ++managed.left;
        send_updates(managed, server, TwoPhase::prepare);  // (3)
    }
}

void TwoPhaseNode::answered(const TwoPhaseHead& head) {
    const auto found = managed_.find(id_of(head));
    if (found == managed_.end()) return;
    Managed& managed = found->second;
    if (head.type == TwoPhase::timestamp) managed.cid = head.cid;
    if (head.type == TwoPhase::vote) {
        managed.votes[head.slot] = head.vote;
        managed.vote = std::max(managed.vote, head.vote);
    }
    if (--managed.left > 0) return;
    if (managed.decided)
        finish(found->first, managed, RowKind::commit);
    else
        decide(found->first, managed);
}

void TwoPhaseNode::decide(std::uint64_t id, Managed& managed) {
    managed.decided = true;
    const TwoPhaseView view(managed.request);
    const TwoPhaseHead& head = view.head();
    if (managed.vote == granted)
        for (std::uint32_t k = 0; k < view.keys(); ++k)
            log(RowKind::write, head.client, head.transaction, view.key(k), managed.cid);
    post(head.from, message_.start(head_for(managed, TwoPhase::outcome)));  // (6)
    for (std::size_t server = 0; server < setup_.storage.size(); ++server) {
        if (!takes_part(managed, server)) continue;
        if (managed.vote == granted)
            send_install(managed, server);  // (4)
        else if (managed.votes[server] == granted && !managed.at[server].empty())
            send_updates(managed, server, TwoPhase::rollback);
    }
    if (managed.vote != granted) finish(id, managed, RowKind::rolled_back);
}

void TwoPhaseNode::send_install(Managed& managed, std::size_t server) {
    const TwoPhaseView view(managed.request);
    auto install = head_for(managed, TwoPhase::install);
    for (const std::uint32_t k : managed.at[server])
        ++(k < setup_.updates ? install.updates : install.inserts);
    message_.start(install);
    for (const std::uint32_t k : managed.at[server]) message_.add_key(view.key(k));
    for (const std::uint32_t k : managed.at[server]) {
        const std::uint32_t updates = std::min(k, setup_.updates);
        const std::size_t at = std::size_t{updates} * setup_.changed_bytes +
                               std::size_t{k - updates} * setup_.record_bytes;
        message_.add(view.rest().data() + at,
                     k < setup_.updates ? setup_.changed_bytes : setup_.record_bytes);
    }
    ++managed.left;
    post(setup_.storage_role(server), message_);
}

void TwoPhaseNode::send_updates(const Managed& managed, std::size_t server, TwoPhase::Type type) {
    const TwoPhaseView view(managed.request);
    auto head = head_for(managed, type);
    for (const std::uint32_t k : managed.at[server]) head.updates += k < setup_.updates;
    message_.start(head);
    for (const std::uint32_t k : managed.at[server])
        if (k < setup_.updates) message_.add_key(view.key(k));
    post(setup_.storage_role(server), message_);
}

// (5). Before the message: whoever sees the timestamp done with sees this row before.
void TwoPhaseNode::finish(std::uint64_t id, Managed& managed, RowKind kind) {
    const TwoPhaseHead finished = head_for(managed, TwoPhase::finished);
    log(kind, finished.client, finished.transaction, managed.cid);
    post(setup_.timestamp_role(), message_.start(finished));
    managed_.erase(id);
}

}  // namespace numatwin::native

// RSI's remedies: leases on locks, and timestamps that are set in their owners' stead; the
// protocol: ../reference/one_sided.py.
#include <algorithm>

#include "systems/commits/kernel/one_sided.hpp"

namespace numatwin {

bool OneSidedCommits::has_expired(std::uint32_t client, std::uint32_t slot) {
    const Word& found = word(client, slot);
    return setup_.lease_ps != CommitSetup::none && found.status == cause_locked &&
           time_at(client) - found.since > setup_.lease_ps;
}

// One complaint for each owner of an expired lock, then these locks are broken.
void OneSidedCommits::complain_about_locks(std::uint32_t client) {
    OwnClient& own = own_[client];
    std::uint32_t expired = 0;
    for (std::uint32_t slot = 0; slot < words(); ++slot) {
        if (!word(client, slot).expired) continue;
        ++expired;
        bool is_new = slot >= own.reported;
        for (std::uint32_t before = 0; before < slot; ++before)
            if (word(client, before).expired &&
                word(client, before).owner == word(client, slot).owner)
                is_new = false;
        if (!is_new) continue;
        own.reported = slot + 1;
        return complain(client, word(client, slot).owner);
    }
    if (expired > 0) return post(client, expired * send_ps(break_lock), breaking);
    give_up(client);
}

void OneSidedCommits::complain(std::uint32_t client, std::int64_t owner) {
    const std::uint32_t message = request(client, complaint, timestamps());
    messages_[message].owner = owner;
    send_message(message);
}

void OneSidedCommits::handle_complaint(std::uint32_t message) {
    Message& f = messages_[message];
    if (f.applied) return end_complaint(message);
    f.refused = is_fenced(f.receiver, f.client);
    if (f.refused) return end_complaint(message);
    const std::int64_t owner = f.owner >= 0 ? f.owner : skip_stalled(f.client);
    if (owner < 0 || setup_.plant == not_fenced) return end_complaint(message);
    fence(owner, message);
}

void OneSidedCommits::end_complaint(std::uint32_t message) {
    messages_[message].applied = true;
    send_message(answer(message, complaint_done));
}

// Skips what can be skipped; the owner of a claim that has stood in the way for a lease, or -1.
std::int64_t OneSidedCommits::skip_stalled(std::uint32_t client) {
    const std::int64_t skipped = vector_.skip();
    if (skipped > 0) log(RowKind::skipped, client, skipped);
    if (setup_.lease_ps == CommitSetup::none || vector_.highest() == vector_.top()) return -1;
    const std::int64_t following = vector_.highest() + 1;
    if (suspect_ != following) {
        suspect_ = following;
        suspect_since_ = time_at(timestamps());
    }
    if (time_at(timestamps()) - suspect_since_ < setup_.lease_ps) return -1;
    return vector_.owner(following);
}

void OneSidedCommits::fence(std::int64_t owner, std::uint32_t message) {
    std::uint32_t& index = fence_of_[static_cast<std::size_t>(owner)];
    if (index != none) {
        if (fence_[index].known) return end_complaint(message);
        fence_[index].waiting.push_back(message);
        return;
    }
    index = static_cast<std::uint32_t>(fence_.size());
    fence_.emplace_back();
    fence_[index].left = static_cast<std::uint32_t>(setup_.storage.size());
    fence_[index].complaint = message;
    fenced_[setup_.timestamps].push_back(static_cast<std::uint32_t>(owner));
    for (std::uint32_t s = 0; s < setup_.storage.size(); ++s) {
        const std::uint32_t to = new_message(revoke, timestamps(), storage(s));
        messages_[to].client = static_cast<std::uint32_t>(owner);
        messages_[to].slot = s;
        messages_[to].cid = vector_.first_open(owner, setup_.skip_after_ps != CommitSetup::none);
        send_message(to);
    }
}

// A storage server refuses the client from now on.
void OneSidedCommits::shut_out(Message& f) {
    if (f.applied) return;
    f.applied = true;
    if (f.receiver != timestamps()) fenced_[f.receiver - clients()].push_back(f.client);
    if (setup_.undoes && setup_.plant != clocks_trusted) undo_at(f.slot, f.client, f.cid);
}

// What the owner has installed at a server and can no longer commit.
void OneSidedCommits::undo_at(std::uint32_t server, std::uint32_t owner, std::int64_t from_cid) {
    Installed& last = installed_[server * clients() + owner];
    if (last.cid < from_cid) return;
    for (const std::int64_t key : last.keys) {
        // A server that rejoined may have it from here.
        for (std::uint32_t copy = 0; key < setup_.records && copy < copies(); ++copy) {
            const std::uint32_t record = find_copy(key, copy);
            if (holder(key, copy) == server || !rejoins().empty())
                if (record_.newest(record) == last.cid) record_.undo(record);
        }
        Cluster::log(RowKind::undone, owner, -1, key, last.cid);
    }
    last = {};
}

bool OneSidedCommits::quiet() {
    return std::ranges::all_of(fence_, &Fence::known);
}

void OneSidedCommits::learn_of_fence(std::uint32_t client) {
    if (has_stopped(client)) return;
    stop(client);
    log(RowKind::fenced, client, 0);
    look_whether_quiet();
}

}  // namespace numatwin

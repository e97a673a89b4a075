
#include "systems/commits/one_sided_client.hpp"
#include "systems/commits/record_block.hpp"

namespace numatwin::native {

OneSidedNode::OneSidedNode(const RunSetup& setup, Board& board, std::uint32_t node, Fabric& fabric)
    : CommitNode(setup, board, node, fabric),
      is_timestamps_(node == setup.timestamps),
      bits_(setup.clients, setup.timestamp_bits, setup.timestamps_at()),
      retired_(setup.clients) {}

// A node may be both: its timestamps lie behind its records.
void OneSidedNode::load() {
    std::uint64_t bytes = setup_.blocks() * setup_.block_bytes();
    if (is_timestamps_) bytes = setup_.timestamps_at() + bits_.bytes();
    region_ = fabric_.expose(bytes);
}

void OneSidedNode::handle(std::span<const std::byte> message) {
    Complaint complaint;
    std::memcpy(&complaint, message.data(), sizeof complaint);
    std::int64_t owner = complaint.owner;
    if (owner == Complaint::about_snapshot) owner = skip_stalled();
    if (owner < 0 || retired_[static_cast<std::size_t>(owner)])
        answer(complaint.from);
    else
        fencing_.push_back({static_cast<std::uint32_t>(owner), complaint.from});
    for (const auto& one : fencing_)
        board_.role(one.owner).fence.store(1, std::memory_order_seq_cst);
}

// Who is fenced is killed, as no memory can be told to refuse a process that has mapped it. When
// it is gone, its timestamps count as set, and those who complained may break its locks.
void OneSidedNode::tick() {
    for (std::size_t k = 0; k < fencing_.size();) {
        const auto [owner, complainant] = fencing_[k];
        if (board_.role(owner).gone.load(std::memory_order_acquire) == 0) {
            ++k;
            continue;
        }
        if (!retired_[owner]) retire(owner);
        answer(complainant);
        fencing_.erase(fencing_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (!any_retired_) return;
    // Ahead of the run, which so never meets one of these unset.
    raise_floor();
    for (std::uint32_t owner = 0; owner < setup_.clients; ++owner)
        if (retired_[owner]) retire(owner);
}

void OneSidedNode::answer(std::uint32_t client) {
    const auto type = static_cast<std::uint32_t>(OneSided::complaint_done);
    send(client, {reinterpret_cast<const std::byte*>(&type), sizeof type});
}

void OneSidedNode::retire(std::uint32_t owner) {
    // Those only that it may have used are told: the rest were never anybody's.
    const std::int64_t used = retired_[owner] ? 0 : top();
    retired_[owner] = 1;
    any_retired_ = true;
    const std::int64_t end = floor() + bits_.lap();
    for (std::int64_t cid = bits_.next_of(owner, floor()); cid <= end; cid += setup_.clients) {
        if (is_set(cid)) continue;
        if (setup_.skip_after_ns > 0) claim(cid);
        if (cid <= used) log(RowKind::commit, owner, -1, cid);
        set(cid);
    }
    raise_floor();
}

std::int64_t OneSidedNode::skip_stalled() {
    raise_floor();
    const std::int64_t first = floor() + 1, last = top();
    std::int64_t skipped = 0;
    for (std::int64_t cid = first; cid <= last; ++cid) {
        if (is_set(cid) || !claim(cid)) continue;
        set(cid);
        ++skipped;
    }
    raise_floor();
    if (skipped > 0) log(RowKind::skipped, 0, -1, skipped);
    if (setup_.lease_ns == 0 || floor() == top()) return Complaint::about_nothing;
    // The run stands at a timestamp that is claimed: its owner has a lease's time.
    const std::int64_t following = floor() + 1;
    if (is_set(following)) return Complaint::about_nothing;  // it goes on meanwhile
    if (suspect_ != following) {
        suspect_ = following;
        suspect_since_ns_ = board_.now_ns();
    }
    if (board_.now_ns() - suspect_since_ns_ < setup_.lease_ns) return Complaint::about_nothing;
    return bits_.owner(following);
}

std::int64_t OneSidedNode::floor() {
    return static_cast<std::int64_t>(load_acquire(at(bits_.floor_at())));
}

void OneSidedNode::raise_floor() {
    const std::int64_t from = floor();
    const std::int64_t end = bits_.run_end(from, [this](std::uint64_t word) {
        return load_acquire(at(bits_.bits_at() + word * word_bytes));
    });
    // Clients raise it too; the run that was seen from an older floor is no longer of use then.
    compare_and_swap(at(bits_.floor_at()), static_cast<std::uint64_t>(from),
                     static_cast<std::uint64_t>(end));
}

// The highest timestamp that is set or claimed by an owner who is not retired.
std::int64_t OneSidedNode::top() {
    for (std::int64_t cid = floor() + bits_.lap(); cid > floor(); --cid)
        if (!retired_[static_cast<std::size_t>(bits_.owner(cid))] &&
            (is_set(cid) || is_claimed(cid)))
            return cid;
    return floor();
}

bool OneSidedNode::is_set(std::int64_t cid) {
    return bits_.is_set(load_acquire(at(bits_.bit(cid).at)), cid);
}

bool OneSidedNode::is_claimed(std::int64_t cid) {
    return setup_.skip_after_ns > 0 && bits_.is_claimed(load_acquire(at(bits_.claim_at(cid))), cid);
}

// Whether nobody had claimed it. Its owner may do so at the same time: one of the two succeeds.
bool OneSidedNode::claim(std::int64_t cid) {
    std::byte* word = at(bits_.claim_at(cid));
    std::uint64_t found = load_acquire(word);
    for (;;) {
        if (bits_.is_claimed(found, cid)) return false;
        const std::uint64_t before = compare_and_swap(word, found, bits_.claimed(found, cid));
        if (before == found) return true;
        found = before;
    }
}

void OneSidedNode::set(std::int64_t cid) {
    const TimestampBits::Bit bit = bits_.bit(cid);
    fetch_add(at(bit.at), bit.addend);
}

}  // namespace numatwin::native

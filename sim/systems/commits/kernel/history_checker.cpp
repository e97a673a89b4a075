// The checker of snapshot isolation, row by row.
#include "systems/commits/kernel/history_checker.hpp"

#include <algorithm>
#include <stdexcept>

#include "systems/commits/kernel/protocol.hpp"

namespace numatwin {
namespace {

constexpr std::size_t least_kept = 8;

std::string text(std::int64_t number) {
    return std::to_string(number);
}

}  // namespace

HistoryChecker::HistoryChecker(std::size_t clients, std::int64_t records, std::size_t versions)
    : records_(records), keep_(std::max(versions + 1, least_kept)), attempt_(clients) {}

void HistoryChecker::add(const Row& row) {
    const auto [time, kind, client, number, a, b] = row;
    now_ = time;
    if (kind <= static_cast<std::int64_t>(RowKind::abort) && kind >= 0 &&
        (client < 0 || client >= static_cast<std::int64_t>(attempt_.size())))
        throw std::invalid_argument("a row of no client: " + text(client));
    switch (static_cast<RowKind>(kind)) {
        case RowKind::begin:
            return begin(client, number, a);
        case RowKind::read:
            return read(client, number, a, b);
        case RowKind::write:
            return write(client, number, a, b);
        case RowKind::install:
            return install(client, number, a, b);
        case RowKind::undone:
            return undo(a, b);
        case RowKind::rolled_back:
            return roll_back(a);
        case RowKind::commit:
            if (const auto it = decided_.find(a); it != decided_.end() && it->second.pending > 0)
                finding(it->second.client, it->second.number,
                        "counts as committed while record " + text(first_pending(it->second)) +
                            " is not installed");
            return;
        case RowKind::outcome:
            if (const auto it = decided_.find(a); it != decided_.end()) {
                it->second.known = true;
                if (it->second.undone) finding(client, number, "was undone, then told committed");
            } else if (a > covered_ || void_.contains(a)) {
                finding(client, number, "was told committed, and wrote nothing");
            }
            return;
        case RowKind::abort:
            if (const Attempt& attempt = attempt_[static_cast<std::size_t>(client)];
                attempt.number == number && attempt.cid > 0)
                finding(client, number, "aborted after it was decided");
            return;
        default:
            return;
    }
}

void HistoryChecker::begin(std::int64_t client, std::int64_t number, std::int64_t rid) {
    attempt_[static_cast<std::size_t>(client)] = {number, rid, 0, false};
    if (rid <= covered_) return;
    covered_ = rid;
    while (!decided_.empty() && decided_.begin()->first <= rid) {
        const auto it = decided_.begin();
        if (it->second.pending == it->second.writes.size() && !it->second.known)
            void_.insert(it->first);  // its owner is fenced: nothing of it may come any more
        else if (it->second.pending > 0)
            finding(it->second.client, it->second.number,
                    "is covered by snapshot " + text(rid) + " while record " +
                        text(first_pending(it->second)) + " is not installed");
        decided_.erase(it);
    }
}

void HistoryChecker::read(std::int64_t client, std::int64_t number, std::int64_t key,
                          std::int64_t seen) {
    Attempt& attempt = attempt_[static_cast<std::size_t>(client)];
    if (seen < 0) {
        attempt.dropped = true;
        return;
    }
    const std::int64_t* const newest = versions_of(key);
    const auto* const found = std::find_if(
        newest, newest + keep_, [&](std::int64_t version) { return version <= attempt.rid; });
    if (found == newest + keep_ || *found < 0) {
        ++unchecked_;
    } else if (*found != seen) {
        finding(client, number,
                "read version " + text(seen) + " of record " + text(key) + ": its snapshot " +
                    text(attempt.rid) + " holds " + text(*found));
    }
}

void HistoryChecker::write(std::int64_t client, std::int64_t number, std::int64_t key,
                           std::int64_t cid) {
    Attempt& attempt = attempt_[static_cast<std::size_t>(client)];
    Decided& decided = decided_[cid];
    if (decided.writes.empty()) {
        decided.client = client;
        decided.number = number;
        decided.rid = attempt.rid;
        attempt.cid = cid;
        if (cid <= covered_)
            finding(
                client, number,
                "has CID " + text(cid) + ", which snapshot " + text(covered_) + " covers already");
        if (attempt.dropped) finding(client, number, "went on without a version that it read");
    } else if (decided.client != client || decided.number != number) {
        finding(client, number,
                "has CID " + text(cid) + ", which is that of transaction " + text(decided.number) +
                    " of client " + text(decided.client));
        return;
    }
    decided.writes.emplace_back(key, false);
    ++decided.pending;
}

void HistoryChecker::install(std::int64_t client, std::int64_t number, std::int64_t key,
                             std::int64_t cid) {
    const auto it = decided_.find(cid);
    if (it == decided_.end() || it->second.client != client || it->second.number != number)
        return finding(client, number,
                       "installed version " + text(cid) + " of record " + text(key) +
                           ", which is not decided any more");
    auto& writes = it->second.writes;
    const auto place = std::ranges::find(writes, std::pair(key, false));
    if (place == writes.end())
        return finding(client, number,
                       "installed record " + text(key) + ", which it does not write");
    place->second = true;
    --it->second.pending;
    if (key >= records_) return;
    std::int64_t* const newest = versions_of(key);
    if (cid == *newest) return;  // at another server that has the record
    if (cid < *newest)
        finding(client, number,
                "installed version " + text(cid) + " of record " + text(key) + " after " +
                    text(*newest));
    else if (it->second.rid < *newest)
        finding(client, number,
                "overwrote version " + text(*newest) + " of record " + text(key) +
                    ", which its snapshot " + text(it->second.rid) +
                    " does not hold: a lost update");
    std::copy_backward(newest, newest + keep_ - 1, newest + keep_);
    *newest = cid;
}

void HistoryChecker::undo(std::int64_t key, std::int64_t cid) {
    const auto it = decided_.find(cid);
    if (it == decided_.end())
        return finding(-1, -1,
                       "version " + text(cid) + " of record " + text(key) +
                           " was undone after it was committed");
    Decided& decided = it->second;
    if (decided.known) finding(decided.client, decided.number, "was told committed, then undone");
    decided.undone = true;
    if (const auto place = std::ranges::find(decided.writes, std::pair(key, true));
        place != decided.writes.end()) {
        place->second = false;
        ++decided.pending;
    }
    if (key >= records_) return;
    std::int64_t* const newest = versions_of(key);
    std::int64_t* const at = std::find(newest, newest + keep_, cid);
    if (at == newest + keep_) return;
    std::copy(at + 1, newest + keep_, at);
    newest[keep_ - 1] = -1;
}

void HistoryChecker::roll_back(std::int64_t cid) {
    const auto it = decided_.find(cid);
    if (it == decided_.end()) return;
    const Decided& decided = it->second;
    if (decided.known)
        finding(decided.client, decided.number, "was told committed, then rolled back");
    else if (decided.pending < decided.writes.size())
        finding(decided.client, decided.number, "was rolled back, and some of it is installed");
    decided_.erase(it);
}

void HistoryChecker::end() {
    for (const auto& [cid, decided] : decided_)
        if (decided.known && decided.pending > 0)
            finding(decided.client, decided.number,
                    "was told committed, and record " + text(first_pending(decided)) +
                        " is not installed in the end");
}

std::int64_t HistoryChecker::first_pending(const Decided& decided) {
    return std::ranges::find(decided.writes, false, &std::pair<std::int64_t, bool>::second)->first;
}

std::int64_t* HistoryChecker::versions_of(std::int64_t key) {
    const auto [it, fresh] = place_.try_emplace(key, version_.size());
    if (fresh) {
        version_.push_back(0);
        version_.insert(version_.end(), keep_ - 1, -1);
    }
    return version_.data() + it->second;
}

void HistoryChecker::finding(std::int64_t client, std::int64_t number, const std::string& what) {
    if (findings_.size() == most_findings) return;
    const std::string who =
        client < 0 ? "" : "transaction " + text(number) + " of client " + text(client) + " ";
    findings_.push_back(who + what + " (" + text(now_) + " ps)");
}

}  // namespace numatwin

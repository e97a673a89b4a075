// Checks a history for snapshot isolation as it comes, row by row, with bounded memory.
//
// A transaction is committed once a snapshot that was handed out covers its CID. Checked: what a
// snapshot, or the timestamp service, counts as committed is installed in full, at each server that
// has a copy, and nothing of it afterwards; who aborts installs nothing; reads see the newest
// version that their snapshot covers; of two transactions that write one record, the later one's
// snapshot covers the earlier one's CID; a CID belongs to one transaction, and to none below a
// snapshot that was handed out; what a client was told is not undone. All of a trace at once:
// ../history.py.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace numatwin {

// A row of a history: time, kind, client, transaction, a, b; see systems/commits/history.py.

using Row = std::array<std::int64_t, 6>;

class HistoryChecker {
  public:
    static constexpr std::size_t most_findings = 20;

    // Records below `records` keep so many versions; those above are created, and never read.
    HistoryChecker(std::size_t clients, std::int64_t records, std::size_t versions);

    void add(const Row& row);
    // Nothing is under way any more: what clients were told is installed.
    void end();

    const std::vector<std::string>& findings() const { return findings_; }
    // Reads whose version was too old to be known here.
    std::uint64_t unchecked_reads() const { return unchecked_; }
    // How many transactions it holds in memory.
    std::size_t held() const { return decided_.size(); }

  private:
    struct Attempt {
        std::int64_t number = -1, rid = 0, cid = 0;
        bool dropped = false;  // a version that it wanted to read
    };
    struct Decided {
        std::int64_t client = 0, number = 0, rid = 0;
        std::vector<std::pair<std::int64_t, bool>> writes;  // record, whether it is installed
        std::size_t pending = 0;
        bool known = false, undone = false;
    };

    void begin(std::int64_t client, std::int64_t number, std::int64_t rid);
    void read(std::int64_t client, std::int64_t number, std::int64_t key, std::int64_t seen);
    void write(std::int64_t client, std::int64_t number, std::int64_t key, std::int64_t cid);
    void install(std::int64_t client, std::int64_t number, std::int64_t key, std::int64_t cid);
    void undo(std::int64_t key, std::int64_t cid);
    void roll_back(std::int64_t cid);
    void finding(std::int64_t client, std::int64_t number, const std::string& what);
    static std::int64_t first_pending(const Decided& decided);
    std::int64_t* versions_of(std::int64_t key);

    std::int64_t records_;
    std::size_t keep_;
    std::vector<Attempt> attempt_;             // by client
    std::map<std::int64_t, Decided> decided_;  // by CID, above all snapshots handed out
    std::set<std::int64_t> void_;  // CIDs that are covered, of which nothing is installed
    std::int64_t covered_ = 0;     // by a snapshot that was handed out
    std::unordered_map<std::int64_t, std::size_t> place_;  // of a record's versions
    std::vector<std::int64_t> version_;  // `keep_` for each, the newest first; unknown: -1
    std::vector<std::string> findings_;
    std::uint64_t unchecked_ = 0;
    std::int64_t now_ = 0;
};

}  // namespace numatwin

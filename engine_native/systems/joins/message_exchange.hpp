// Entries that go to their owner in messages, gathered in one for each node.
//
//     message   sender, kind, table, entries; then these
//     end       after the last one of a table
//     credit    after an end, and every half a window of messages that were read: so many, to who
//               sent them
//
// No node has more than a window of messages under way to another: at the limit it reads what comes
// until it gets a credit.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "systems/joins/join_operator.hpp"

namespace numatwin::native {

template <class Entry>
class MessageExchange {
  public:
    // What came, of a sender's table.
    using Receive = std::function<void(std::uint32_t sender, std::uint32_t table,
                                       std::span<const std::byte> entries)>;

    MessageExchange(JoinNode& at, Receive receive) : at_(at), receive_(std::move(receive)) {
        to_.resize(at.setup.nodes);
        per_message_ = (at.setup.message_bytes - sizeof(Head)) / sizeof(Entry);
    }

    void append(std::uint32_t to, std::uint32_t table, const Entry& entry) {
        auto& peer = to_[to];
        open(peer);
        std::memcpy(&peer.message[peer.end], &entry, sizeof entry);
        peer.end += sizeof entry;
        if (peer.end == peer.message.size()) send(to, table);
    }
    // Bytes of another kind, in as many messages as it takes, whole words in each; the receiver
    // puts them together. Nothing else of a table is open meanwhile.
    void send_to_all(std::uint32_t table, std::span<const std::byte> bytes) {
        const std::size_t most = (at_.setup.message_bytes - sizeof(Head)) / word_bytes * word_bytes;
        for_others([&](std::uint32_t node) {
            auto& peer = to_[node];
            for (std::size_t at = 0; at < bytes.size(); at += most) {
                const auto piece = bytes.subspan(at, std::min(most, bytes.size() - at));
                open(peer);
                peer.message.resize(std::max(peer.message.size(), sizeof(Head) + piece.size()));
                std::memcpy(&peer.message[sizeof(Head)], piece.data(), piece.size());
                peer.end = sizeof(Head) + piece.size();
                send(node, table);
            }
            peer.message.clear();
        });
    }
    // All of a table has been appended.
    void finish(std::uint32_t table) {
        for_others([&](std::uint32_t node) {
            if (!to_[node].message.empty() && to_[node].end > sizeof(Head)) send(node, table);
            ++to_[node].under_way;
            tell(node, {at_.node, end, table, 0});
        });
    }
    // Until these tables of each other node have come whole, and all that was sent has been read:
    // a node that goes on to something else need not poll the network meanwhile.
    void wait_for(std::initializer_list<std::uint32_t> tables) {
        wait([&] {
            return std::ranges::all_of(
                       tables,
                       [&](std::uint32_t table) { return ended_[table] == at_.setup.nodes - 1; }) &&
                   std::ranges::all_of(to_, [](const To& to) { return to.under_way == 0; });
        });
        for (const std::uint32_t table : tables) ended_[table] = 0;
    }
    std::uint64_t take_sent_bytes() { return std::exchange(sent_bytes_, 0); }

  private:
    static constexpr std::uint32_t tables_max = 4;
    enum Kind : std::uint32_t { data, credit, end };
    struct Head {
        std::uint32_t sender, kind, table, entries;
    };
    struct To {
        std::vector<std::byte> message;
        std::size_t end = 0;
        std::uint32_t under_way = 0;  // not yet acknowledged
        std::uint32_t read = 0;       // of its messages, since the last credit
    };

    void open(To& peer) const {
        if (!peer.message.empty()) return;
        peer.message.resize(sizeof(Head) + per_message_ * sizeof(Entry));
        peer.end = sizeof(Head);
    }
    template <class Use>
    void for_others(Use use) const {
        for (std::uint32_t node = 0; node < at_.setup.nodes; ++node)
            if (node != at_.node) use(node);
    }
    // Reads what comes until then.
    template <class Done>
    void wait(Done done) {
        at_.board.wait(at_.fabric, [&] {
            while (receive_one()) {
            }
            return done();
        });
    }
    void tell(std::uint32_t to, const Head& head) {
        at_.fabric.send(at_.peers[to], std::as_bytes(std::span(&head, 1)));
    }
    void send(std::uint32_t to, std::uint32_t table) {
        auto& peer = to_[to];
        wait([&] { return peer.under_way < at_.setup.window; });
        const Head head{at_.node, data, table,
                        static_cast<std::uint32_t>((peer.end - sizeof(Head)) / sizeof(Entry))};
        std::memcpy(peer.message.data(), &head, sizeof head);
        ++peer.under_way;
        sent_bytes_ += peer.end;
        at_.fabric.send(at_.peers[to], std::span(peer.message).first(peer.end));
        peer.end = sizeof(Head);
    }
    bool receive_one() {
        if (!at_.fabric.receive(incoming_)) return false;
        Head head;
        std::memcpy(&head, incoming_.data(), sizeof head);
        auto& from = to_[head.sender];
        if (head.kind == credit) {
            from.under_way -= head.entries;
            return true;
        }
        if (head.kind == end)
            ++ended_[head.table];
        else
            receive_(head.sender, head.table, std::span(incoming_).subspan(sizeof head));
        if (++from.read >= at_.setup.window / 2 || head.kind == end)
            tell(head.sender, {at_.node, credit, 0, std::exchange(from.read, 0)});
        return true;
    }

    JoinNode& at_;
    Receive receive_;
    std::size_t per_message_;
    std::vector<To> to_;  // by node
    std::vector<std::byte> incoming_;
    std::array<std::uint32_t, tables_max> ended_{};  // by table: of so many others
    std::uint64_t sent_bytes_ = 0;
};

}  // namespace numatwin::native

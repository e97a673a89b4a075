// Connections between the processes of a run, some of which their parent cuts for a time.
//
// At both ends of a cut one the kernel drops all that arrives: what such a socket takes must have a
// longer time to live (IP_MINTTL, RFC 5082) than any sender gives. Nobody needs a privilege for
// that, and nothing breaks: TCP sends again, at its own times, until something arrives, as over a
// real path that is down. To close sockets would break UCX's endpoints, leave open what of the
// requests under way was done, and end who answers one of them (kept_connections.hpp).
#pragma once

#include <netinet/in.h>

#include <map>
#include <optional>
#include <utility>

#include "fabric/kept_connections.hpp"

namespace numatwin::native {

class CutConnections {
  public:
    CutConnections() = default;
    CutConnections(const CutConnections&) = delete;
    CutConnections& operator=(const CutConnections&) = delete;
    ~CutConnections() {
        for (const auto& [addresses, end] : ends_) ::close(end.descriptor);
    }

    // Those that processes have sent since.
    void take(const KeptConnections& kept) {
        kept.take([this](std::uint32_t role, int descriptor) { add(role, descriptor); });
    }
    // Cuts those between two roles of which `is_down` says so, and no others.
    template <class IsDown>
    void set(const IsDown& is_down) {
        for (auto& [addresses, end] : ends_) {
            if (!end.peer || is_down(end.role, *end.peer) == end.is_cut) continue;
            end.is_cut = !end.is_cut;
            const bool v6 = addresses.first.size() == sizeof(sockaddr_in6);
            set_option(end.descriptor, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
                       v6 ? IPV6_MINHOPCOUNT : IP_MINTTL, end.is_cut ? 255 : 0);
        }
    }

  private:
    struct End {
        int descriptor;
        std::uint32_t role;
        std::optional<std::uint32_t> peer{};  // whose the other end is, once that is here
        bool is_cut = false;
    };

    void add(std::uint32_t role, int descriptor) {
        const std::string own = address(descriptor, ::getsockname);
        const std::string other = address(descriptor, ::getpeername);
        End& end = ends_.insert({{own, other}, {descriptor, role}}).first->second;
        set_option(descriptor, SOL_SOCKET, SO_KEEPALIVE,
                   0);  // would break one that is cut and idle
        set_option(descriptor, SOL_SOCKET, SO_LINGER, linger{1, 0});  // else it outlives the run
        const auto peer = ends_.find({other, own});
        if (peer == ends_.end()) return;
        end.peer = peer->second.role;
        peer->second.peer = role;
    }
    static std::string address(int descriptor, int (*name)(int, sockaddr*, socklen_t*)) {
        sockaddr_storage found{};
        socklen_t bytes = sizeof found;
        name(descriptor, reinterpret_cast<sockaddr*>(&found), &bytes);
        return {reinterpret_cast<const char*>(&found), bytes};
    }
    template <class Value>
    static void set_option(int descriptor, int level, int option, Value value) {
        if (::setsockopt(descriptor, level, option, &value, sizeof value) != 0)
            throw std::system_error(errno, std::generic_category(), "a path cannot be cut");
    }

    std::map<std::pair<std::string, std::string>, End> ends_;  // by both addresses
};

}  // namespace numatwin::native

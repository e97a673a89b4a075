// Memory mapped from the host: where it lies, in what pages, and a clean error if there is none.
#pragma once

#include <cstddef>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace numatwin::native {

// Sizes and addresses in whole pages, lines or blocks.

/// The smallest multiple of `to` that is not below `bytes`.
constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
    return (bytes + to - 1) / to * to;
}

/// No memory left, or none allowed; what() is one line for the user.
class OutOfMemory final : public std::bad_alloc {
  public:
    explicit OutOfMemory(const std::string& message) : message_(message) {}
    const char* what() const noexcept override { return message_.what(); }

  private:
    std::runtime_error message_;  // its copies do not throw
};

/// Where memory shall lie.
struct Placement {
    enum class Kind { anywhere, node, interleaved };
    Kind kind = Kind::anywhere;
    int node = -1;  ///< of Kind::node

    static Placement anywhere() { return {}; }
    static Placement on_node(int node) { return {Kind::node, node}; }
    /// On a node of the host; below 0, anywhere.
    static Placement near(int node) { return node < 0 ? anywhere() : on_node(node); }
    /// Page by page over all nodes that this process may use.
    static Placement interleaved() { return {Kind::interleaved, -1}; }
};

/// "on node 1", "interleaved over all nodes" or "on this host".
std::string describe(Placement placement);

enum class Pages {
    base,         ///< of the host's usual size
    transparent,  ///< huge where the kernel finds some (MADV_HUGEPAGE)
    huge,         ///< of those that the administrator reserved (MAP_HUGETLB)
};

/// Anonymous zeroed memory, backed by pages from the start, so that a host without memory shows
/// here and not at some later access. Unmapped at its end.
class Mapping {
  public:
    /// Of `bytes`, rounded up to pages. Throws OutOfMemory, also where it would take what the host
    /// or its cgroup cannot spare, and std::invalid_argument for a node that does not exist.
    Mapping(std::size_t bytes, Placement placement, bool huge_pages);
    ~Mapping();
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&&) = delete;

    /// Its pages go to a node, a stretch at a time, until `stop`; whoever reads or writes them
    /// meanwhile goes on. Throws std::invalid_argument; what the host refuses stays where it is.
    void move(int node, const std::stop_token& stop);

    std::byte* begin() const { return begin_; }
    std::byte* end() const { return begin_ + bytes_; }
    std::size_t bytes() const { return bytes_; }
    Pages pages() const { return pages_; }
    /// Why the placement was refused; empty if it was not.
    const std::string& refusal() const { return refusal_; }

  private:
    bool map_reserved(Placement placement);
    void map_usual(Placement placement, bool huge_pages);
    bool populate(bool may_touch);
    void place(Placement placement);
    void unmap() noexcept;

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
    Pages pages_ = Pages::base;
    std::string refusal_;
};

/// What the kernel says when memory is bound to a node here; empty if it does as told.
std::string binding_refusal();

}  // namespace numatwin::native

// What this host has for the engine: nodes, the CPUs that it may use, memory, huge pages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace numatwin::native {

inline constexpr unsigned long nodes_max = 1024;  ///< the kernel's largest
using NodeMask = std::array<unsigned long, nodes_max / (8 * sizeof(unsigned long))>;

struct HostNode {
    int id;
    std::vector<int> cpus;  ///< those that this process may use
    std::uint64_t memory_bytes;
    std::uint64_t free_bytes;
    bool may_allocate;  ///< false: the cpuset forbids this node's memory
};

struct HostFacts {
    std::vector<HostNode> nodes;  ///< with memory or allowed CPUs
    std::uint64_t available_bytes;
    std::size_t page_bytes;
    std::size_t huge_page_bytes;  ///< 0: the host has none
    std::uint64_t huge_pages_free;
    std::string transparent_huge_pages;  ///< always, madvise or never
    std::string binding_refused;         ///< why mbind does not work here; empty if it does

    std::vector<int> cpus() const;  ///< all allowed ones, ascending
};

HostFacts host_facts();

/// For life: the calling thread runs on this CPU alone. Throws std::invalid_argument if the host
/// has no such CPU or the cpuset forbids it.
void pin_thread(int cpu);

/// What the calling thread has on its stack, its own variables too, lies on this host node from now
/// on, as far as the host allows it; a negative one changes nothing. (Its creator touched it
/// first.)
void move_stack(int node) noexcept;

/// While it lives, pages that the calling thread touches first come from this host node where it
/// has some; a negative one changes nothing.
class PreferredNode {
  public:
    explicit PreferredNode(int node) noexcept;
    ~PreferredNode();
    PreferredNode(const PreferredNode&) = delete;
    PreferredNode& operator=(const PreferredNode&) = delete;

  private:
    int mode_ = 0;
    NodeMask before_{};
    bool set_ = false;
};

}  // namespace numatwin::native

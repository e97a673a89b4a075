// What this host has for the engine: nodes, the CPUs that it may use, memory, huge pages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/described.hpp"

namespace numatwin::native {

inline constexpr unsigned long nodes_max = 1024;  ///< the kernel's largest
using NodeMask = std::array<unsigned long, nodes_max / (8 * sizeof(unsigned long))>;

struct HostNode {
    FIELDS_OF(HostNode);
    FIELD(int, id, "of the operating system");
    FIELD(std::vector<int>, cpus, "those that this process may use");
    FIELD(std::uint64_t, memory_bytes, "all of it");
    FIELD(std::uint64_t, free_bytes, "of it");
    FIELD(bool, may_allocate, "False: the cpuset forbids this node's memory");
    END_OF_FIELDS;
};

struct HostFacts {
    FIELDS_OF(HostFacts);
    FIELD(std::vector<HostNode>, nodes, "those with memory or CPUs that this process may use");
    FIELD(std::uint64_t, available_bytes,
          "what host and cgroups can still spare; 2^64 - 1 if unknown");
    FIELD(std::size_t, page_bytes, "of a page");
    FIELD(std::size_t, huge_page_bytes, "0: the host has none");
    FIELD(std::uint64_t, huge_pages_free, "of those set aside");
    FIELD(std::string, transparent_huge_pages, "always, madvise or never");
    FIELD(std::string, binding_refused, "why mbind does not work here; empty if it does");
    END_OF_FIELDS;

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

// How much memory the host and the cgroups of this process can still spare.

/// Where the kernel tells; tests have files of their own.
struct KernelFiles {
    std::string proc = "/proc";
    std::string sys = "/sys";
};

/// The least of MemAvailable and of what each cgroup (version 1 or 2) around this process has left;
/// page cache that can be dropped counts as left. UINT64_MAX where nothing is known.
std::uint64_t available_bytes(const KernelFiles& files = {});
/// Of one node: free, or page cache that can be dropped. UINT64_MAX where nothing is known, or the
/// node is the only one.
std::uint64_t node_available_bytes(int node, const KernelFiles& files = {});

/// For a message: in MiB, what is less than one in KiB.
std::string size_text(std::uint64_t bytes);

/// A field of a file such as /proc/meminfo, in its own unit; `otherwise` if it is not there.
std::uint64_t kernel_field(const std::string& path, const std::string& field,
                           std::uint64_t otherwise);
/// The number that a file is; `otherwise` if it is none ("max").
std::uint64_t kernel_number(const std::string& path, std::uint64_t otherwise);
/// A file's first line; empty if there is none.
std::string kernel_line(const std::string& path);

/// What is about to be populated by this process, so that two threads do not count on the same
/// free memory. Throws OutOfMemory if it would leave the host with less than a reserve of 1% (at
/// least 64 MiB) of its memory, or the node with nothing.
class Claim {
  public:
    Claim(std::uint64_t bytes, int node);  ///< of any node if it is negative
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

  private:
    std::uint64_t bytes_;
};

}  // namespace numatwin::native

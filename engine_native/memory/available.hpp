// How much memory the host and the cgroups of this process can still spare.
#pragma once

#include <cstdint>
#include <string>

namespace numatwin::native {

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

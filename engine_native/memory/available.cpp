#include "memory/available.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "memory/mapping.hpp"

namespace numatwin::native {
namespace {

constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t KiB = 1024, MiB = KiB * KiB;

std::uint64_t difference(std::uint64_t from, std::uint64_t taken) {
    return from > taken ? from - taken : 0;
}

/// What the cgroup in this folder has left, version 2 or 1.
std::uint64_t left_in(const std::string& folder) {
    std::uint64_t limit = kernel_number(folder + "/memory.max", unknown);
    std::uint64_t used = kernel_number(folder + "/memory.current", 0);
    std::string inactive = "inactive_file";
    if (limit == unknown) {
        limit = kernel_number(folder + "/memory.limit_in_bytes", unknown);
        used = kernel_number(folder + "/memory.usage_in_bytes", 0);
        inactive = "total_inactive_file";
    }
    if (limit == unknown) return unknown;
    const std::uint64_t droppable = kernel_field(folder + "/memory.stat", inactive, 0);
    return difference(limit, difference(used, droppable));
}

/// The least along the path of a cgroup, up to the root: each limits what is below.
std::uint64_t least_left(const std::string& root, std::string path) {
    std::uint64_t least = left_in(root);
    while (path.size() > 1) {
        least = std::min(least, left_in(root + path));
        path.resize(path.find_last_of('/'));
    }
    return least;
}

/// A line is "number:controllers:path"; version 2's is "0::path".
std::uint64_t left_in_cgroups(const KernelFiles& files) {
    std::ifstream file(files.proc + "/self/cgroup");
    std::uint64_t least = unknown;
    for (std::string line; std::getline(file, line);) {
        const std::size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers(1, ',');
        controllers.append(line, first + 1, second - first - 1).append(1, ',');
        const std::string path = line.substr(second + 1);
        if (controllers == ",,") {
            least = std::min(least, least_left(files.sys + "/fs/cgroup", path));
        } else if (controllers.find(",memory,") != std::string::npos) {
            least = std::min(least, least_left(files.sys + "/fs/cgroup/memory", path));
        }
    }
    return least;
}

/// Claimed by Claims that live. Relaxed: a sum to be careful with, it orders nothing.
std::atomic<std::uint64_t> claimed_bytes{0};

}  // namespace

std::string size_text(std::uint64_t bytes) {
    return bytes < MiB ? std::to_string(bytes / KiB) + " KiB"
                       : std::to_string(bytes / MiB) + " MiB";
}

std::string kernel_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::uint64_t kernel_number(const std::string& path, std::uint64_t otherwise) {
    std::istringstream line(kernel_line(path));
    std::uint64_t value;
    return line >> value ? value : otherwise;
}

std::uint64_t kernel_field(const std::string& path, const std::string& field,
                           std::uint64_t otherwise) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        // "MemFree:  12 kB", "Node 0 MemFree:  12 kB" and "inactive_file 12"
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            if (word != field && word != field + ":") continue;
            std::uint64_t value;
            return words >> value ? value : otherwise;
        }
    }
    return otherwise;
}

std::uint64_t available_bytes(const KernelFiles& files) {
    const std::uint64_t host = kernel_field(files.proc + "/meminfo", "MemAvailable", unknown);
    return std::min(host == unknown ? unknown : host * KiB, left_in_cgroups(files));
}

std::uint64_t node_available_bytes(int node, const KernelFiles& files) {
    const std::string nodes = files.sys + "/devices/system/node/node";
    // A node alone has what the host has, and some kernels count it less, growing bit by bit.
    if (node == 0 && !std::filesystem::exists(nodes + "1")) return unknown;
    const std::string path = nodes + std::to_string(node) + "/meminfo";
    const std::uint64_t free = kernel_field(path, "MemFree", unknown);
    if (free == unknown) return unknown;
    // Half of the page cache may be mapped or dirty: count the other half only.
    const std::uint64_t cache = kernel_field(path, "Active(file)", 0) +
                                kernel_field(path, "Inactive(file)", 0) +
                                kernel_field(path, "SReclaimable", 0);
    return (free + cache / 2) * KiB;
}

Claim::Claim(std::uint64_t bytes, int node) : bytes_(bytes) {
    const std::uint64_t others = claimed_bytes.fetch_add(bytes, std::memory_order_relaxed);
    const std::uint64_t total = kernel_field("/proc/meminfo", "MemTotal", 0) * KiB;
    const std::uint64_t left = difference(available_bytes(), std::max(64 * MiB, total / 100));
    const std::uint64_t on_node = node < 0 ? unknown : node_available_bytes(node);
    const std::uint64_t free = difference(std::min(left, on_node), others);
    if (bytes <= free) return;
    claimed_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    throw OutOfMemory("no memory left: " + size_text(bytes) + " more wanted, and " +
                      (on_node < left ? "node " + std::to_string(node) : "this host") +
                      " can spare " + size_text(free));
}

Claim::~Claim() {
    claimed_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

}  // namespace numatwin::native

// A block of a prefix tree that is not linked yet.
#pragma once

#include "storage/prefix_tree.hpp"

namespace numatwin::native {

class PrefixTree::Fresh {
  public:
    Fresh() = default;
    Fresh(PrefixTree& tree, std::size_t bytes)
        : tree_(&tree), block_(tree.allocate(bytes)), bytes_(bytes) {}
    Fresh(Fresh&& other) noexcept
        : tree_(other.tree_), block_(std::exchange(other.block_, nullptr)), bytes_(other.bytes_) {}
    Fresh& operator=(Fresh&& other) noexcept {
        std::swap(tree_, other.tree_);
        std::swap(block_, other.block_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Fresh() {
        if (block_ != nullptr) tree_->release(block_, bytes_);
    }
    /// The block, which from now on is the tree's.
    void* keep() noexcept { return std::exchange(block_, nullptr); }

  private:
    PrefixTree* tree_ = nullptr;
    void* block_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace numatwin::native

// Link transfer: the keys from a boundary on leave one prefix tree for another; no entry moves.
#pragma once

#include "prefix_tree.hpp"

inline void copy_slots(Node* to, const Node* from, unsigned first) {
    for (unsigned slot = first; slot < 256; ++slot) to->slot[slot] = from->slot[slot];
}

// Cuts the keys from `boundary` on out of the tree: a new node per level takes the slots right of
// the boundary's path. Returns the root of what was cut out.
[[gnu::noinline]] inline Node* unlink(Tree& tree, Arena& nodes, Key boundary) {
    Node *left = tree.root, *cut = nodes.empty_node(), *right = cut;
    for (unsigned shift = 8 * (tree.levels - 1);; shift -= 8) {
        const unsigned at = digit(boundary, shift);
        const unsigned first = shift == 0 ? at : at + 1;  // an entry is not divided
        copy_slots(right, left, first);
        for (unsigned slot = first; slot < 256; ++slot) left->slot[slot] = nullptr;
        auto* child = static_cast<Node*>(left->slot[at]);
        if (shift == 0 || child == nullptr) return cut;
        Node* below = nodes.empty_node();
        right->slot[at] = below;
        left = child;
        right = below;
    }
}

// Hangs what was cut out at `boundary` into a tree whose keys all lie below it.
[[gnu::noinline]] inline void link(Tree& tree, Arena& nodes, Node* right, Key boundary) {
    Node* left = tree.root;
    for (unsigned shift = 8 * (tree.levels - 1);; shift -= 8) {
        const unsigned at = digit(boundary, shift);
        copy_slots(left, right, shift == 0 ? at : at + 1);
        auto* below = static_cast<Node*>(right->slot[at]);
        nodes.give_back(right);
        if (shift == 0 || below == nullptr) return;
        if (left->slot[at] == nullptr) {
            left->slot[at] = below;
            return;
        }
        left = static_cast<Node*>(left->slot[at]);
        right = below;
    }
}

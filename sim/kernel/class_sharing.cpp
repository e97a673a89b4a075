// Max-min fair paces of classes, filled where a change reaches.
#include "kernel/class_sharing.hpp"

#include <algorithm>

namespace numatwin {
namespace {

// Rounded to multiples of 2^-20, 2^-34 and 2^-50: what is added is that large that a double has no
// finer bits.
double rounded_time(double time) {
    constexpr double shift = 1.5 * 0x1p32;
    return time + shift - shift;
}
double rounded_wanted(double use) {
    constexpr double shift = 1.5 * 0x1p18;
    return std::min(use, 2.0) + shift - shift;
}
double rounded_use(double use) {
    constexpr double shift = 1.5 * 0x1p2;
    return use + shift - shift;
}

}  // namespace

ClassSharing::Index ClassSharing::add_class(std::span<const Need> needs) {
    Class state;
    state.first = static_cast<std::uint32_t>(need_.size());
    for (const Need& need : needs) {
        const double time = rounded_time(need.time);
        if (time > 0) need_.push_back({.resource = need.resource, .time = time});
    }
    state.count = static_cast<std::uint32_t>(need_.size()) - state.first;
    class_.push_back(state);
    return static_cast<Index>(class_.size() - 1);
}

void ClassSharing::change(Index of, std::uint32_t members, double least_pace) {
    Class& state = class_[of];
    if (!state.changed) {
        if (members == state.shared_members && least_pace == state.least) return;
        state.changed = true;
        changed_.push_back(of);
    }
    state.members = members;
    state.asked_least = least_pace;
}

void ClassSharing::limit(Index resource, double room) {
    resource_[resource].room = rounded_use(room);
    limited_.push_back(resource);
}

std::span<const ClassSharing::Index> ClassSharing::share() {
    repaced_.clear();
    if (changed_.empty() && limited_.empty()) return repaced_;
    std::erase_if(changed_, [this](Index of) { return !update(of); });
    for (const Index of : changed_) reach_around(of);
    changed_.clear();
    for (const Index resource : limited_) reach_users(resource);
    limited_.clear();
    do fill();
    while (spread());
    commit();
    return repaced_;
}

// Takes over what change() has said of a class. Returns whether that is anything new.
bool ClassSharing::update(Index of) {
    Class& state = class_[of];
    state.changed = false;
    if (state.members == state.shared_members &&
        (state.members == 0 || state.asked_least == state.least))
        return false;
    if (state.shared_members == 0) enter(state, of);
    state.least = state.asked_least;
    const auto before = static_cast<double>(state.shared_members);
    const auto after = static_cast<double>(state.members);
    for (std::uint32_t k = state.first; k < state.first + state.count; ++k) {
        NeedState& need = need_[k];
        double& wanted = resource_[need.resource].wanted;
        wanted -= before * need.at_least;
        need.at_least = rounded_wanted(need.time / state.least);
        wanted += after * need.at_least;
    }
    if (state.members == 0) leave(state);
    return true;
}

// The class itself, and all users of what bounds any.
void ClassSharing::reach_around(Index of) {
    reach_bounding(class_[of]);
    if (class_[of].members > 0)
        reach(of);
    else
        repaced_.push_back(of);
}

void ClassSharing::enter(Class& state, Index of) {
    ++present_;
    for (std::uint32_t k = state.first; k < state.first + state.count; ++k) {
        std::vector<User>& user = resource_[need_[k].resource].user;
        need_[k].place = static_cast<std::uint32_t>(user.size());
        user.push_back({of, k});
    }
}

void ClassSharing::leave(Class& state) {
    --present_;
    for (std::uint32_t k = state.first; k < state.first + state.count; ++k) {
        NeedState& need = need_[k];
        Resource& resource = resource_[need.resource];
        const User last = resource.user.back();
        resource.user[need.place] = last;
        need_[last.need].place = need.place;
        resource.user.pop_back();
        resource.use -= need.use;
        need.use = 0;
    }
    if (state.binding != none) --resource_[state.binding].bound;
    state.binding = none;
    state.pace = infinity;
    state.shared_members = 0;
}

void ClassSharing::reach(Index of) {
    if (class_[of].reached) return;
    class_[of].reached = true;
    reached_.push_back(of);
}

// All users of the resource are filled.
void ClassSharing::reach_users(Index index) {
    Resource& resource = resource_[index];
    if (resource.reached) return;
    resource.reached = true;
    complete_.push_back(index);
    for (const User& user : resource.user) reach(user.of);
}

// All users of what the class uses and what bounds any are filled.
void ClassSharing::reach_bounding(const Class& state) {
    for (std::uint32_t k = state.first; k < state.first + state.count; ++k)
        if (resource_[need_[k].resource].bound > 0) reach_users(need_[k].resource);
}

// Finds the next paces of all classes that are reached; what others use stays.
void ClassSharing::fill() {
    gather();
    while (!rising_.empty()) {
        for (Filling& of : filling_) {
            // It only falls, but for rounding.
            of.pace = of.slope > 0 ? (of.free > 0 ? std::min(of.pace, of.slope / of.free) : of.pace)
                                   : 0.0;
            of.blocked = of.moved = false;
        }
        std::size_t kept = 0;
        for (Rising& rising : rising_) {
            std::uint32_t slowest = part_[rising.first].filling;
            for (std::uint32_t k = 1; k < rising.count; ++k) {
                const std::uint32_t other = part_[rising.first + k].filling;
                const double pace = filling_[other].pace, most = filling_[slowest].pace;
                if (pace > most ||
                    (pace == most && filling_[other].resource < filling_[slowest].resource))
                    slowest = other;
            }
            const double most = filling_[slowest].pace;
            if (class_[rising.of].least >= most) {
                freeze(rising, class_[rising.of].least, none);
                continue;
            }
            for (std::uint32_t k = 0; k < rising.count; ++k) {
                Filling& of = filling_[part_[rising.first + k].filling];
                if (of.pace < most) of.blocked = true;
            }
            rising.slowest = slowest;
            rising_[kept++] = rising;
        }
        rising_.resize(kept);
        kept = 0;
        for (const Rising& rising : rising_) {
            const Filling& slowest = filling_[rising.slowest];
            if (slowest.blocked || slowest.moved)
                rising_[kept++] = rising;
            else
                freeze(rising, slowest.pace, slowest.resource);
        }
        rising_.resize(kept);
    }
}

void ClassSharing::gather() {
    rising_.clear();
    part_.clear();
    for (const Filling& of : filling_) resource_[of.resource].filling = none;
    filling_.clear();
    for (const Index of : reached_) {
        Class& state = class_[of];
        const auto first = static_cast<std::uint32_t>(part_.size());
        const auto members = static_cast<double>(state.members);
        for (std::uint32_t k = state.first; k < state.first + state.count; ++k) {
            const NeedState& need = need_[k];
            Resource& resource = resource_[need.resource];
            if (!(resource.wanted > resource.room)) continue;
            if (resource.filling == none) {
                resource.filling = static_cast<Index>(filling_.size());
                filling_.push_back(
                    {need.resource, resource.room - resource.use, 0, infinity, false, false});
            }
            Filling& filling = filling_[resource.filling];
            const double slope = members * need.time;
            filling.free += need.use;
            filling.slope += slope;
            part_.push_back({resource.filling, slope});
        }
        const auto count = static_cast<std::uint32_t>(part_.size()) - first;
        if (count > 0) {
            rising_.push_back({of, first, count, 0});
        } else {
            state.next = state.least;
            state.next_binding = none;
        }
    }
}

void ClassSharing::freeze(const Rising& rising, double pace, Index binding) {
    Class& state = class_[rising.of];
    state.next = pace;
    state.next_binding = binding;
    const double rate = 1 / pace;
    for (std::uint32_t k = rising.first; k < rising.first + rising.count; ++k) {
        Filling& of = filling_[part_[k].filling];
        of.slope -= part_[k].slope;
        of.free -= rounded_use(part_[k].slope * rate);
        if (binding == none) of.moved = true;
    }
}

// Whether the paces found concern classes that were not filled. These are from now on, and whom
// they may concern in turn: filling some in vain costs less than filling all once more.
bool ClassSharing::spread() {
    const std::size_t filled = reached_.size();
    if (filled == present_) return false;
    for (std::size_t c = 0; c < filled; ++c) {
        const Class& state = class_[reached_[c]];
        if (state.next_binding != none) reach_users(state.next_binding);
        if (state.next != state.pace || state.members != state.shared_members)
            reach_bounding(state);
    }
    const std::size_t concerned = reached_.size();
    for (std::size_t c = filled; c < concerned; ++c) reach_bounding(class_[reached_[c]]);
    return concerned > filled;
}

void ClassSharing::commit() {
    for (const Index of : reached_) {
        Class& state = class_[of];
        state.reached = false;
        if (state.next != state.pace || state.members != state.shared_members) {
            const double rate = 1 / state.next;
            const auto members = static_cast<double>(state.members);
            for (std::uint32_t k = state.first; k < state.first + state.count; ++k) {
                NeedState& need = need_[k];
                const double use = rounded_use(members * need.time * rate);
                resource_[need.resource].use += use - need.use;
                need.use = use;
            }
        }
        if (state.next != state.pace) repaced_.push_back(of);
        if (state.next_binding != state.binding) {
            if (state.binding != none) --resource_[state.binding].bound;
            if (state.next_binding != none) ++resource_[state.next_binding].bound;
            state.binding = state.next_binding;
        }
        state.pace = state.next;
        state.shared_members = state.members;
    }
    reached_.clear();
    for (const Index resource : complete_) resource_[resource].reached = false;
    complete_.clear();
}

}  // namespace numatwin

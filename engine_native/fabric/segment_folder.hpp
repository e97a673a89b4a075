// The folder of the shared memory that UCX makes for this process and for those that it forks.
//
// UCX makes a POSIX segment under a name, fills it, and then takes the name away; whoever is killed
// meanwhile would leave it behind, forever. So all names lie in a folder of their own:
//
//     the maker           makes it and locks it; each process that it forks inherits this lock and
//                         an end of a pipe: held until the last has ended, however that came
//     its guard           a child in a session of its own, there before the folder: waits for the
//                         end of that pipe, then removes the folder with all that is in it
//     the next maker      removes folders whose lock it gets: here the guard was killed too
//
// A SysV segment has no name and belongs to no process; UCX marks it for removal right after it was
// made. Each process notes its id in the folder: who removes it also removes the segments of these
// that nobody has attached.
#pragma once

namespace numatwin::native {

// Has UCX put this process's segments into such a folder. It is made at the first call, in this
// process or the one that forked it, in UCX_POSIX_DIR, else /dev/shm; the variable names it then.
// Removed at its maker's end. Throws std::system_error.
void use_segment_folder();

}  // namespace numatwin::native

#include "fabric/segment_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace numatwin::native {
namespace {

namespace fs = std::filesystem;

constexpr auto variable = "UCX_POSIX_DIR", prefix = "numatwin-";

[[noreturn]] void fail(const std::string& where) {
    throw std::system_error(errno, std::generic_category(),
                            "a folder for shared memory in " + where);
}

// When each process noted itself, by id; in seconds.
std::map<pid_t, time_t> processes(const std::string& folder) {
    std::map<pid_t, time_t> found;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator(folder, gone)) {
        const auto name = entry.path().filename().string();
        struct stat noted{};
        if (name.find_first_not_of("0123456789") == std::string::npos &&
            ::stat(entry.path().c_str(), &noted) == 0)
            found[static_cast<pid_t>(std::stol(name))] = noted.st_mtime;
    }
    return found;
}

// Of these processes, with nobody attached. Another process may have got such an id meanwhile; what
// it has made and not attached yet is all that could be mistaken.
void remove_sysv_segments(const std::map<pid_t, time_t>& makers) {
    std::ifstream table("/proc/sysvipc/shm");
    std::string line;
    std::getline(table, line);  // names of columns
    while (std::getline(table, line)) {
        int id = 0;
        long maker = 0;
        shmid_ds segment{};
        if (std::sscanf(line.c_str(), "%*s %d %*s %*s %ld", &id, &maker) != 2) continue;
        const auto found = makers.find(static_cast<pid_t>(maker));
        if (found == makers.end() || ::shmctl(id, IPC_STAT, &segment) != 0) continue;
        if (segment.shm_nattch == 0 && segment.shm_perm.uid == ::geteuid() &&
            segment.shm_ctime >= found->second)
            ::shmctl(id, IPC_RMID, nullptr);
    }
}

void remove_whole(const std::string& folder) noexcept {
    try {
        remove_sysv_segments(processes(folder));
        std::error_code gone;
        fs::remove_all(folder, gone);
    } catch (const std::exception&) {
        // No memory: the next maker does it.
    }
}

void remove_folders_of_the_dead(const std::string& where) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(where, none)) {
        if (!entry.path().filename().string().starts_with(prefix)) continue;
        const int folder =
            ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folder < 0) continue;
        // Once it is locked: somebody else may have removed it before, and its maker made it again.
        struct stat found{};
        if (::flock(folder, LOCK_EX | LOCK_NB) == 0 && ::fstat(folder, &found) == 0 &&
            found.st_nlink > 0 && found.st_uid == ::geteuid())
            remove_whole(entry.path().string());
        ::close(folder);
    }
}

// `held` is the reading end of a pipe that nobody writes to: it ends with its last holder.
[[noreturn]] void guard(const std::string& folder, int held) {
    ::setsid();
    for (const int ends : {SIGINT, SIGTERM, SIGHUP}) ::signal(ends, SIG_IGN);
    ::prctl(PR_SET_NAME, "numatwin-guard");
    // The pipe's other end too; and others, at whose other ends somebody may wait for the maker's.
    ::dup2(held, 0);
    ::close_range(1, UINT_MAX, 0);
    char none;
    while (::read(0, &none, 1) < 0 && errno == EINTR) {
    }
    const int folder_file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_file < 0) ::_exit(0);  // its maker did not come so far, or removed it
    while (::flock(folder_file, LOCK_EX) != 0 && errno == EINTR) {
    }
    remove_whole(folder);
    ::_exit(0);
}

std::string new_path(const std::string& where) {
    std::uint64_t drawn;
    if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) fail(where);
    return where + "/" + prefix + std::to_string(drawn);
}

class SegmentFolder {
  public:
    SegmentFolder() : maker_(::getpid()) {
        const char* set = std::getenv(variable);
        const std::string where = set == nullptr ? "/dev/shm" : set;
        remove_folders_of_the_dead(where);
        path_ = new_path(where);
        set_guard();
        try {
            make_folder(where);
        } catch (...) {
            remove_whole(path_);
            if (lock_ >= 0) ::close(lock_);
            end_guard();
            throw;
        }
    }
    ~SegmentFolder() {
        if (::getpid() != maker_) return;
        remove_whole(path_);
        end_guard();
    }
    SegmentFolder(const SegmentFolder&) = delete;
    SegmentFolder& operator=(const SegmentFolder&) = delete;

    void note_process() const {
        const std::string note = path_ + "/" + std::to_string(::getpid());
        const int file = ::open(note.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0) fail(path_);
        ::close(file);
    }

  private:
    void make_folder(const std::string& where) {
        // Until it is locked another maker may take it for one of the dead.
        struct stat found{};
        do {
            if (lock_ >= 0) ::close(lock_);
            if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) fail(where);
            lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (lock_ < 0 && errno != ENOENT) fail(where);
        } while (lock_ < 0 || ::flock(lock_, LOCK_EX) != 0 || ::fstat(lock_, &found) != 0 ||
                 found.st_nlink == 0);
        if (::setenv(variable, path_.c_str(), 1) != 0) fail(where);
    }

    // Before there is a folder: who is killed then leaves none (but where all of its group are, and
    // the guard was not in a session of its own yet).
    void set_guard() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) fail(path_);
        // Those that come to the whole group pass the guard by until it ignores them.
        sigset_t all, before;
        ::sigfillset(&all);
        ::sigprocmask(SIG_BLOCK, &all, &before);
        guard_ = ::fork();
        if (guard_ == 0) guard(path_, ends[0]);
        const int failed = errno;
        ::sigprocmask(SIG_SETMASK, &before, nullptr);
        ::close(ends[0]);
        held_ = ends[1];
        if (guard_ >= 0) return;
        ::close(held_);
        errno = failed;
        fail(path_);
    }

    void end_guard() const {
        ::kill(guard_, SIGKILL);
        ::waitpid(guard_, nullptr, 0);
        ::close(held_);
    }

    pid_t maker_;
    std::string path_;
    int held_ = -1;  // its last holder's end wakes the guard
    int lock_ = -1;  // passed on like it: no other maker removes the folder
    pid_t guard_ = -1;
};

}  // namespace

void use_segment_folder() {
    static const SegmentFolder folder;
    folder.note_process();
}

}  // namespace numatwin::native

#include "rsi/segment_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
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
        struct stat found{};
        if (::fstat(folder, &found) == 0 && found.st_uid == ::geteuid() &&
            ::flock(folder, LOCK_EX | LOCK_NB) == 0)
            remove_whole(entry.path().string());
        ::close(folder);
    }
}

[[noreturn]] void guard(const std::string& folder) {
    ::setsid();
    for (const int ends : {SIGINT, SIGTERM, SIGHUP}) ::signal(ends, SIG_IGN);
    ::prctl(PR_SET_NAME, "numatwin-guard");
    // The lock too; and pipes, at whose other ends somebody may wait for the maker's end.
    ::close_range(0, UINT_MAX, 0);
    const int waited = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (waited < 0) ::_exit(0);
    while (::flock(waited, LOCK_EX) != 0 && errno == EINTR) {
    }
    remove_whole(folder);
    ::_exit(0);
}

class SegmentFolder {
  public:
    SegmentFolder() : maker_(::getpid()) {
        const char* set = std::getenv(variable);
        const std::string where = set == nullptr ? "/dev/shm" : set;
        remove_folders_of_the_dead(where);
        // Until it is locked another maker may take it for one of the dead.
        struct stat found{};
        do {
            if (lock_ >= 0) ::close(lock_);
            path_ = where + "/" + prefix + "XXXXXX";
            if (::mkdtemp(path_.data()) == nullptr) fail(where);
            lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (lock_ < 0 && errno != ENOENT) fail(where);
        } while (lock_ < 0 || ::flock(lock_, LOCK_EX) != 0 || ::fstat(lock_, &found) != 0 ||
                 found.st_nlink == 0);
        guard_ = ::fork();
        if (guard_ == 0) guard(path_);
        if (guard_ < 0 || ::setenv(variable, path_.c_str(), 1) != 0) {
            remove_whole(path_);
            fail(where);
        }
    }
    ~SegmentFolder() {
        if (::getpid() != maker_) return;
        remove_whole(path_);
        ::kill(guard_, SIGKILL);
        ::waitpid(guard_, nullptr, 0);
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
    pid_t maker_;
    std::string path_;
    int lock_ = -1;
    pid_t guard_ = -1;
};

}  // namespace

void use_segment_folder() {
    static const SegmentFolder folder;
    folder.note_process();
}

}  // namespace numatwin::native

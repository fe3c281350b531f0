// Where a library of CUDA may lie, and opening it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace bitale::cuda {

struct LibraryName {
    std::string title;        // "NVRTC", for people
    std::string stem;         // "libnvrtc"
    std::vector<int> majors;  // accepted versions of the file name, the preferred one first
    std::string wheel;        // its folder below nvidia/ in Python packages of CUDA 12: "cuda_nvrtc"
};

// Paths to try, in order: the folders of cuda_home in BITALE_FLAGS (separated by colons); the loader's own
// search; $CUDA_HOME and $CUDA_PATH; the toolkit's default prefix; the Python packages of NVIDIA in the
// virtual environment, of the user, and of the python3 on PATH.
std::vector<std::string> library_candidates(const LibraryName& name);

// Path behind all links, size and time of a file; empty where there is none.
std::string file_identity(const std::string& path);

// A library that stays open for the life of the process, or the reason why there is none. The first candidate
// that can be opened and serves; where none does, the first that can be opened and `comes_close`.
class SharedLibrary {
  public:
    enum class Serves : std::uint8_t { yes, comes_close, no };
    struct Verdict {
        Serves serves = Serves::yes;
        std::string why = "";  // it does not; empty: that needs no words
    };
    using Judge = std::function<Verdict(const SharedLibrary&)>;

    explicit SharedLibrary(const LibraryName& name, const Judge& judge = nullptr);  // null: all serve
    bool found() const { return handle_ != nullptr; }
    const std::string& path() const { return path_; }        // of the file that was opened, or its bare name
    const std::string& problem() const { return problem_; }  // the first, of the loader or of what it opened
    // Files that are there and do not serve, each with the reason.
    const std::vector<std::string>& passed_over() const { return passed_over_; }
    void* symbol(const char* name) const;

  private:
    void* handle_ = nullptr;
    std::string path_, problem_;
    std::vector<std::string> passed_over_;
};

}  // namespace bitale::cuda

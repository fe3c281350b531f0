// The words of a thread's last error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace bitale::cuda {

// For thread_local variables: no destructor, for which the C library would allocate when a thread first meets
// it, and end the process where it finds no memory; nor any other memory. What does not fit is cut off.
class Words {
  public:
    constexpr Words() = default;
    Words& operator=(std::string_view words) {
        size_ = std::min(words.size(), most);
        std::copy_n(words.data(), size_, text_);
        text_[size_] = 0;
        return *this;
    }
    void clear() { *this = std::string_view(); }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    const char* c_str() const { return text_; }

  private:
    static constexpr std::size_t most = 2047;
    std::size_t size_ = 0;
    char text_[most + 1] = {};
};

}  // namespace bitale::cuda

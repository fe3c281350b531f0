// Log: what BITALE_DEBUG asks for, and warnings; one line or block per call, to stderr.
#pragma once

#include <functional>
#include <string>

namespace bitale {

// Whether BITALE_DEBUG reaches the level: ask before building an expensive text.
bool logs(int level);
void log(int level, const std::string& text);  // nothing unless logs(level)
// Always shown, once per text and process; once per `about`, if it is given: a text may hold names that
// differ each time.
void warn(const std::string& text, const std::string& about = {});

// Sends everything to `sink` while it lives; nests. For tests.
class ScopedLog {
  public:
    using Sink = std::function<void(const std::string& line)>;
    explicit ScopedLog(Sink sink);
    ~ScopedLog();
    ScopedLog(const ScopedLog&) = delete;
    ScopedLog& operator=(const ScopedLog&) = delete;

  private:
    Sink before_;
};

}  // namespace bitale

#include "graph/base/log.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "graph/base/options.h"
#include "graph/base/turns.h"

namespace bitale {

namespace {

struct Output {
    ForkMutex mutex{ForkMutex::Rank::log};
    ScopedLog::Sink sink;
    std::set<std::string> warned;
};

Output& output() {
    static Output& o = *new Output;
    return o;
}

void write(const std::string& text) {
    Output& o = output();
    const std::lock_guard lock(o.mutex);
    if (o.sink) return o.sink(text);
    std::fprintf(stderr, "[bitale] %s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
}

}  // namespace

bool logs(int level) { return options().debug >= level; }

void log(int level, const std::string& text) {
    if (logs(level)) write(text);
}

void warn(const std::string& text, const std::string& about) {
    {
        const std::lock_guard lock(output().mutex);
        // A redirected log sees every warning: tests must not depend on what ran before them.
        if (!output().warned.insert(about.empty() ? text : about).second && !output().sink) return;
    }
    write("warning: " + text);
}

ScopedLog::ScopedLog(Sink sink) {
    const std::lock_guard lock(output().mutex);
    before_ = std::move(output().sink);
    output().sink = std::move(sink);
}

ScopedLog::~ScopedLog() {
    const std::lock_guard lock(output().mutex);
    output().sink = std::move(before_);
}

}  // namespace bitale

#include "codegen/kernel/hazards.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "codegen/kernel/places.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

class HazardWalker {
  public:
    explicit HazardWalker(const KernelIR& kernel) : kernel_(kernel) {}

    Touched run(const Segment& segment) {
        walk(segment.body);
        return std::move(touched_);
    }

  private:
    void walk(const Stmts& body) {
        for (const Stmt& s : body) {
            for_each_place(s, [&](int place, Use use) {
                const Place& p = kernel_.places[static_cast<std::size_t>(place)];
                if (p.scope != Place::Scope::global) return;
                if (use != Use::written) touched_.read.insert(p.buffer);
                if (use != Use::read) touched_.written.insert(p.buffer);
            });
            walk(s.body);
        }
    }

    const KernelIR& kernel_;
    Touched touched_;
};

}  // namespace

Touched touched_by(const KernelIR& kernel, const Segment& segment) {
    return HazardWalker(kernel).run(segment);
}

void verify_phases(const KernelIR& kernel) {
    for (const Phase& phase : kernel.phases) {
        std::vector<Touched> touched;
        // Of each buffer the first two segments that write it: of two, one is another than the reader.
        std::map<int, std::vector<std::size_t>> writers;
        for (std::size_t at = 0; at < phase.segments.size(); ++at) {
            touched.push_back(touched_by(kernel, phase.segments[at]));
            for (const int buffer : touched.back().written)
                if (std::vector<std::size_t>& list = writers[buffer]; list.size() < 2) list.push_back(at);
        }
        for (std::size_t reader = 0; reader < touched.size(); ++reader)
            for (const int buffer : touched[reader].read)
                if (const auto found = writers.find(buffer); found != writers.end())
                    for (const std::size_t writer : found->second)
                        BITALE_CHECK(writer == reader, "a task of \"" + phase.segments[writer].title +
                                                           "\" writes what a task of \"" +
                                                           phase.segments[reader].title +
                                                           "\" reads in the same phase");
    }
}

}  // namespace bitale

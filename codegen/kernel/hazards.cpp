#include "codegen/kernel/hazards.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "codegen/nest/walk.h"
#include "graph/base/check.h"

namespace bitale {

namespace {

class Walker {
  public:
    explicit Walker(const KernelIR& kernel) : kernel_(kernel) {}

    Touched run(const Segment& segment) {
        walk(segment.body);
        return std::move(touched_);
    }

  private:
    void add(std::set<int>& to, int place) {
        if (place < 0) return;
        const Place& p = kernel_.places[static_cast<std::size_t>(place)];
        if (p.scope == Place::Scope::global) to.insert(p.buffer);
    }

    void read(const Scalar& value) {
        if (value) for_each_read(value, [&](const ScalarNode& s) { add(touched_.read, s.operand); });
    }

    void walk(const Stmts& body) {
        for (const Stmt& s : body) {
            statement(s);
            walk(s.body);
        }
    }

    void statement(const Stmt& s) {
        read(s.value);
        switch (s.kind) {
            case Stmt::Kind::set:
            case Stmt::Kind::put:
            case Stmt::Kind::leave:
            case Stmt::Kind::nonzeros:
            case Stmt::Kind::apart:
            case Stmt::Kind::together: add(touched_.written, s.place); return;
            case Stmt::Kind::accumulate:
            case Stmt::Kind::exchange:
                add(touched_.read, s.place);
                add(touched_.written, s.place);
                return;
            case Stmt::Kind::fetch: add(touched_.read, s.number); return;
            case Stmt::Kind::draw:
                add(touched_.written, s.place);
                add(touched_.written, s.number);
                return;
            case Stmt::Kind::sort:
                add(touched_.written, s.place);
                add(touched_.written, s.number);
                return;
            case Stmt::Kind::search: add(touched_.read, s.place); return;
            case Stmt::Kind::total:
                add(touched_.read, s.number);
                add(touched_.written, s.place);
                return;
            default: return;
        }
    }

    const KernelIR& kernel_;
    Touched touched_;
};

}  // namespace

Touched touched_by(const KernelIR& kernel, const Segment& segment) { return Walker(kernel).run(segment); }

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
